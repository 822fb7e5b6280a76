// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication
internal import StoreEngine
internal import SyncEngine

/// The disk of a device of the core form. It is a value: a copy is a backup, a clone, or the synced state.
struct CoreDisk {
    private(set) var origin: Origin?
    /// The word that the last process wrote if it ended properly.
    var endWord: UInt64?
    /// The name of the head that the device publishes.
    private(set) var headName = ""
    var publications: UInt64 = 0
    var formerOrigins: [Origin] = []
    /// How often the device published under each former origin.
    var formerCounts: [Origin: UInt64] = [:]
    /// The remote whose account is current, signed in or not; `nil` if the device never signed in.
    var place: Int?
    var isSignedIn = false
    /// The account in ``place``, or the values of a device without an account.
    var current = Account()
    private var others: [Int: Account] = [:]

    struct Account {
        var replicas: [CoreReplica] = []
        var isDownloaded = false
        /// The digests of the heads that the last pull found and that are joined.
        var heads: Set<Bits128> = []
        var own: HeadIdentity?
        /// When the device last uploaded, by its own clock.
        var pushed: UInt64 = 0
        /// When it last collected garbage, by the same clock.
        var collected: UInt64 = 0
        var observations = Observations()
        /// In a cluster: the account's identifier, and the cursor of the last pull.
        var account: String?
        var cursor: [UInt8]?
    }

    func replica(_ store: Int) -> CoreReplica {
        store < current.replicas.count ? current.replicas[store] : newReplica
    }

    private var newReplica: CoreReplica { CoreReplica(isDownloaded: place != nil && current.isDownloaded) }

    /// Changes a replica in place.
    mutating func update<T>(_ store: Int, _ body: (inout CoreReplica) -> T) -> T {
        while current.replicas.count <= store { current.replicas.append(newReplica) }
        return body(&current.replicas[store])
    }

    /// Continues under another origin.
    mutating func leave(for origin: Origin) {
        if let former = self.origin { formerOrigins.append(former) }
        if let former = self.origin { formerCounts[former] = publications }
        self.origin = origin
        headName = CoreHead.name(of: origin)
        publications = 0
    }

    /// Enters an account under a new origin. Values that were written without an account come along as defaults.
    mutating func enter(_ place: Int, as origin: Origin) {
        if self.place == place { return }
        let offered = self.place == nil ? current.replicas : []
        leave(for: origin)
        if let former = self.place { others[former] = current }
        self.place = place
        current = others.removeValue(forKey: place) ?? Account()
        for (store, replica) in offered.enumerated() {
            for (key, entry) in replica.state.entries.sorted(by: { $0.key < $1.key }) where entry.value != nil {
                offer(key, entry, to: store)
            }
        }
    }

    private mutating func offer(_ key: Key, _ entry: Entry, to store: Int) {
        guard let origin else { return }
        update(store) { replica in
            if replica.state.entries[key] != nil { return }
            let stamp = Stamp(
                isProvisional: true, wall: entry.stamp.wall, counter: entry.stamp.counter, origin: origin)
            replica.write(key, entry.value, stamp)
        }
    }

    /// Gives provisional writes new dots under the present origin.
    mutating func renewDefaults() {
        guard place != nil, let origin else { return }
        for store in current.replicas.indices { current.replicas[store].renewDefaults(under: origin) }
        for place in others.keys {
            for store in others[place, default: Account()].replicas.indices {
                others[place]?.replicas[store].renewDefaults(under: origin)
            }
        }
    }

    /// Gives entries that were written under shared origins new dots.
    mutating func redot(from left: Set<Origin>) {
        guard let origin else { return }
        for store in current.replicas.indices {
            update(store) { replica in
                replica.state.vector = replica.state.vector.filter { !left.contains($0.origin) }
                for (key, entry) in replica.state.entries.sorted(by: { $0.key < $1.key })
                where left.contains(entry.stamp.origin) { replica.redot(key, entry, under: origin) }
            }
        }
    }
}

extension CoreReplica {
    mutating func write(_ key: Key, _ value: [UInt8]?, _ stamp: Stamp) {
        sequence += 1
        state.entries[key] = Entry(stamp: stamp, n: sequence, value: value)
        state.vector.insert(Dot(origin: stamp.origin, n: sequence))
        own[key] = sequence
        lastOwn = sequence
    }

    /// Gives an entry the next dot under an origin.
    mutating func redot(_ key: Key, _ entry: Entry, under origin: Origin) {
        let old = entry.stamp
        let stamp = Stamp(isProvisional: old.isProvisional, wall: old.wall, counter: old.counter, origin: origin)
        write(key, entry.value, stamp)
    }

    mutating func renewDefaults(under origin: Origin) {
        if isDownloaded { return }
        state.vector = VersionVector()
        for (key, entry) in state.entries.sorted(by: { $0.value.n < $1.value.n }) { redot(key, entry, under: origin) }
    }

    mutating func carryOut(_ plan: JoinPlan) {
        for (key, entry) in plan.taken {
            state.entries[key] = entry
            own[key] = nil
        }
        for key in plan.dropped {
            state.entries[key] = nil
            own[key] = nil
        }
        sequence += UInt64(plan.taken.count + plan.dropped.count)
        state.vector = plan.vector
    }
}

extension CoreReplica: Joinable {
    var vector: VersionVector { state.vector }
    var keys: [Key] { state.keys }
    func version(of key: Key) -> EntryVersion? { state.version(of: key) }
    func entry(for key: Key) -> Entry? { state.entries[key] }
    func isProvisionalHere(_ key: Key) -> Bool {
        own[key] != nil && state.entries[key]?.stamp.isProvisional == true
    }
}
