// SPDX-License-Identifier: Apache-2.0

// A device of the core form: real stamps, version vectors, joins and schedules, with entries in memory. It handles
// origins, heads and cycles as the engine does. CoreProcess runs its cycles.

internal import PropertyList
internal import Replication
internal import StoreEngine
internal import SyncEngine

/// A device with the rules of sync only.
final class CoreDevice: SimulatedDevice {
    let number: Int
    unowned let world: World<CoreDevice>
    var isGone = false
    var clock: Int64 = 0
    var disk = CoreDisk()
    /// The disk as of the last sync.
    var synced = CoreDisk()
    /// The word that `/run` keeps of the last process's proper end.
    private var endWord: UInt64?
    private(set) var process: CoreProcess?
    private var backup: CoreDisk?
    private var snapshot: (disk: CoreDisk, synced: CoreDisk, process: CoreProcess)?

    init(number: Int, world: World<CoreDevice>) {
        self.number = number
        self.world = world
    }

    var origin: Origin? { disk.origin }
    var isRunning: Bool { process != nil }
    var place: Int? { disk.place }
    var isSignedIn: Bool { disk.isSignedIn }
    var isSettled: Bool { process != nil && disk.isSignedIn && disk.current.isDownloaded && !isPending }
    var lacksParts: Bool { process?.unread.isEmpty == false }
    var isPending: Bool { disk.current.replicas.contains { $0.isPending } }

    func drawOrigin() -> Origin { Origin(bits: world.chance.next()) }

    // MARK: The process

    func start() {
        let isAsLeft = endWord != nil && endWord == disk.endWord
        endWord = nil
        if disk.origin == nil || Rule.freshOrigins.isOn && !isAsLeft {
            disk.leave(for: drawOrigin())
            disk.renewDefaults()
        }
        beginProcess()
    }

    /// Starts another process in place of the present one.
    private func beginProcess(copying other: CoreProcess? = nil) {
        process?.end()
        let cluster = disk.isSignedIn ? disk.place.flatMap { world.places[$0].cluster } : nil
        if let cluster {
            process = RowProcess(self, cluster, key: disk.place.flatMap { world.keys.isEmpty ? nil : world.keys[$0] })
        } else {
            process = other.map { CoreProcess(self, copying: $0) } ?? CoreProcess(self)
        }
        process?.begin()
    }

    func stop(_ ending: StopKind) {
        process?.end()
        process = nil
        switch ending {
        case .restart:
            disk.endWord = world.chance.next()
            endWord = disk.endWord
        case .crash, .reboot: break
        case .powerCut: disk = synced
        }
        world.trace.note(world.timeline.now, 5, UInt64(number), line: "device \(number) ends: \(ending)")
    }

    func dieAfter(writes: Int?) {
        guard let process else { return }
        process.client.deathAfter = writes
        process.client.onDeath = { [unowned self, unowned process] in
            guard self.process === process else { return }
            stop(.crash)
            world.startLater(self, 10 * second)
        }
    }

    func end() {
        process?.end()
        process = nil
        isGone = true
    }

    // MARK: The disk

    func backUp() { backup = disk }

    func restore() -> Bool {
        guard let backup else { return false }
        disk = backup
        synced = disk
        return true
    }

    func takeSnapshot() {
        snapshot = process.map { (disk, synced, CoreProcess(self, copying: $0)) }
    }

    func revert() {
        guard let snapshot else { return }
        (disk, synced) = (snapshot.disk, snapshot.synced)
        beginProcess(copying: snapshot.process)
    }

    func copyDisk(of other: CoreDevice, isFork: Bool) {
        disk = other.disk
        synced = other.disk
        guard isFork else { return }
        // A fork copies the memory of the running machine too.
        if let process = other.process { beginProcess(copying: process) }
    }

    func forgetTombstones(_ chance: inout Chance) -> Bool {
        for store in disk.current.replicas.indices {
            disk.update(store) { replica in
                for key in replica.state.entries.keys.sorted() where chance.happens(0.7) {
                    replica.forget(key, world.now(self))
                }
            }
        }
        return true
    }

    // MARK: The account

    func signIn(to place: Place<CoreBlob>) {
        guard process != nil, !isSignedIn || self.place != place.number else { return }
        if self.place == nil { world.noteEntry(self, to: place.number) }
        if self.place != place.number {
            disk.enter(place.number, as: drawOrigin())
        }
        disk.isSignedIn = true
        synced = disk
        beginProcess()
    }

    func signOut(keepingValues: Bool) {
        disk.isSignedIn = false
        if !keepingValues {
            disk.current = CoreDisk.Account()
            disk.place = nil
            disk.leave(for: drawOrigin())
        }
        beginProcess()
    }

    func syncNow() { process?.request() }
    func noteHint() { process?.noteHint() }

    // MARK: Writing and reading

    func write(store: Int, key: Int, number: Int64, removes: Bool) {
        guard process != nil, let origin = disk.origin else { return }
        let name = world.names.keys[key]
        let old = disk.replica(store)
        if removes, old.state.entries[name]?.value == nil { return }
        let stamp = Stamp(
            after: old.state.entries[name]?.stamp, wall: world.now(self), origin: origin,
            isProvisional: !old.isDownloaded)
        let known = old.state.vector
        disk.update(store) { $0.write(name, removes ? nil : Value.integer(number).encoded(), stamp) }
        if let former = old.state.entries[name], stamp < former.stamp {
            world.report("I4: a write is less than what it replaces")
        }
        world.acknowledge(
            self, store: store, key: key, number: number, removes: removes,
            disk.replica(store).state.entries[name].map(\.version), knowing: known)
        process?.noteChange()
    }

    func writeLocal(number: Int64) {}

    func state(of store: Int) -> StoreState { disk.replica(store).state }

    func values(of store: Int) -> [Int: Int64] {
        var values: [Int: Int64] = [:]
        for (key, entry) in disk.replica(store).state.entries {
            guard let encoded = entry.value, let index = Names.index(of: key),
                case .integer(let number)? = try? Value.decode(encoded, limits: .standard).0
            else { continue }
            values[index] = number
        }
        return values
    }

    func check() -> String? { nil }
    func overflow(of store: Int) -> [String] { [] }

    static var hasTasks: Bool { false }
    static func tear(_ blob: CoreBlob) -> CoreBlob? { .torn }
    static func summary(of blob: CoreBlob) -> String {
        switch blob {
        case .marker: "marker"
        case .torn: "torn"
        case .segment(let segment): StoreState(entries: segment.entries).summary
        case .head(let head): "\(head.identity.sequence), " + head.parts.map(\.summary).joined(separator: "; ")
        }
    }
    static var pollsUntilNoticed: UInt64 { 4 }
    static var junk: [(String, CoreBlob)] { [("h/0123456789abcdef", .torn), ("s/0", .torn), ("h/desktop.ini", .torn)] }
}

extension CoreReplica {
    /// Forgets a tombstone that was uploaded, unless its stamp is in the future.
    mutating func forget(_ key: Key, _ now: UInt64) {
        guard let entry = state.entries[key], entry.value == nil, entry.stamp.wall < now else { return }
        if Rule.keepPending.isOn, let sequence = own[key], sequence > published { return }
        state.entries[key] = nil
        own[key] = nil
        if !Rule.keepOrigins.isOn { pruneVector() }
    }

    /// Forgets the origins of which no entry is left.
    private mutating func pruneVector() {
        let living = Set(state.entries.values.map(\.stamp.origin))
        state.vector = state.vector.filter { living.contains($0.origin) }
    }
}

extension World {
    /// The time by a device's clock, in milliseconds since 1970.
    func now(_ device: Device) -> UInt64 { UInt64(max(0, Int64(timeline.now / 1000) + device.clock)) }
}
