// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication
internal import SDBus
internal import StoreBus
internal import StoreEngine
internal import SyncEngine

/// A store as the bus shows it: its data, its user and its subscribers.
@BusActor
final class UserStore {
    let user: User
    let path: String
    private(set) var store: Store
    private var subscriptions: [SubscriptionKey: StoreSubscription] = [:]
    private let connection: BusConnection

    var identifier: String { store.identifier }
    /// The layer that the store is; `nil` if it is an app's store.
    let layer: DomainLayer?
    /// The most bytes that its values take in a message; `nil` if they have not been added up.
    private var knownWeight: Int?

    /// About the memory that its values take, in bytes, rather too much than too little: what is removed or replaced
    /// counts until ``measure()``, because a change for which there is room may still fail.
    private(set) var memory = 0
    /// Whether the user has it in use, so that its memory counts against the user's share.
    var isInUse = false

    /// - Parameter connection: sends the signals.
    init(_ store: Store, of user: User, on connection: BusConnection) throws {
        self.store = store
        self.user = user
        self.connection = connection
        layer = DomainLayer(store.identifier)
        path =
            if let layer {
                try BusNames.domainPath(uid: user.uid, domain: layer.domain, isHost: layer.isHost)
            } else {
                try BusNames.storePath(uid: user.uid, identifier: store.identifier)
            }
        measure()
    }

    /// Measures how much memory its values take.
    func measure() { count(Self.memory(of: store) - memory) }

    /// About the memory that a store's values take, in bytes.
    static func memory(of store: Store) -> Int { store.memory(memory) }

    /// About the memory that values take in a store, in bytes.
    nonisolated static func memory(of values: [(Key, Value)]) -> Int {
        values.reduce(0) { $0 + memory($1.0, $1.1) }
    }

    /// Returns at most about the memory that a plan takes in a store besides what it replaces, in bytes.
    static func growth(of store: Store, by plan: JoinPlan) -> Int {
        let vector = (plan.vector.dots.count - store.vector.dots.count) * MemoryLayout<Dot>.stride
        let entries = memory(of: plan.taken, store.limits)
        return vector + entries - memory(of: store.present(Array(plan.taken.keys)))
    }

    /// Returns at most about the memory that entries take, in bytes. Large ones are decoded to know it.
    private static func memory(of entries: [Key: Entry], _ limits: Limits) -> Int {
        let bytes = entries.values.reduce(0) { $0 + ($1.value?.count ?? 0) }
        let isSmall = bytes < 16 << 10
        return entries.reduce(0) { sum, entry in
            let bytes = entry.value.value ?? []
            // The encoding of an empty dictionary has two bytes.
            if isSmall { return sum + memory(entry.key, nil) + 32 * bytes.count }
            let value = try? Value(encoded: bytes, limits: limits)
            return sum + memory(entry.key, value) + (value == nil ? bytes.count : 0)
        }
    }

    /// About the memory that an entry takes, in bytes.
    nonisolated private static func memory(_ key: Key, _ value: Value?) -> Int {
        entryMemory + 2 * key.string.utf8.count + (value?.memory ?? 0)
    }

    nonisolated private static let entryMemory = 300

    /// Throws if the stores in use, this one among them, would take too much memory. A store that only this call uses
    /// isn't released to make room: it would be written to, and then be too large to be loaded.
    func makeRoom(for bytes: Int) throws {
        hold()
        defer { release() }
        try user.makeRoom(for: bytes)
    }

    /// Counts memory of values that are to be written.
    func noteGrown(by bytes: Int) { if bytes > 0 { count(bytes) } }

    private func count(_ bytes: Int) {
        memory += bytes
        if isInUse { user.noteMemory(grownBy: bytes) }
    }

    /// The most bytes that its values take in a message.
    var weight: Int {
        if let knownWeight { return knownWeight }
        var weight = 0
        store.forEachValue { weight += Value.entrySize($0.text, $1) }
        knownWeight = weight
        return weight
    }

    /// Notes a staged change, after which the values have this weight; `nil` if it isn't known.
    func noteStaged(weight: Int?) {
        knownWeight = weight
        user.domains.sizes.note(store)
    }

    /// Forgets the weight, because a commit failed or the values have changed for another reason.
    func forgetWeight() {
        knownWeight = nil
        if layer != nil { user.domains.sizes.forget() }
    }

    /// Switches to the same store in a new database.
    func replace(_ store: Store) {
        self.store = store
        forgetWeight()
        measure()
    }

    // MARK: Holders

    // Counted, because weak references would make every use of the object slower.
    private var holders = 0

    /// Notes that a client uses the store, which keeps it in memory.
    func hold() {
        holders += 1
    }

    /// Notes that a client no longer uses the store. After the last one, it is released.
    func release() {
        holders -= 1
        if holders == 0 { user.letGo(self) }
    }

    // MARK: Subscribers

    /// Subscribes a client through a path, or changes which changes it gets.
    /// - Parameter path: the path from which signals are sent.
    func subscribe(_ client: Client, _ peer: Peer, at path: String, includingLocal: Bool) {
        let key = SubscriptionKey(client, path)
        if let subscription = subscriptions[key] {
            subscription.includesLocal = includingLocal
            return
        }
        subscriptions[key] = StoreSubscription(
            client, peer, path: path, includesLocal: includingLocal, signal: signal,
            connection: connection)
        count(client, path, by: 1)
    }

    /// Ends a client's subscription through a path, if there is one.
    func unsubscribe(_ client: Client, at path: String) {
        guard let subscription = subscriptions.removeValue(forKey: SubscriptionKey(client, path)) else { return }
        subscription.cancel()
        count(client, path, by: -1)
    }

    /// A subscription to a domain counts once, although it is to the layer for this host as well.
    private func count(_ client: Client, _ path: String, by difference: Int) {
        guard let layer else {
            user.account.notices.noteStoreSubscriptions(by: difference)
            return client.noteSubscription(.objects, by: difference)
        }
        if !layer.isHost || path.hasSuffix(BusNames.hostSuffix) { client.noteSubscription(.domains, by: difference) }
    }

    func isSubscribed(_ client: Client, at path: String) -> Bool {
        subscriptions[SubscriptionKey(client, path)] != nil
    }

    /// Holds back the changes for a client, or sends them again.
    func suspend(_ client: Client, _ isSuspended: Bool) {
        for subscription in subscriptions.values where subscription.client === client {
            subscription.isSuspended = isSuspended
        }
    }

    /// Ends all subscriptions of a client.
    func unsubscribe(_ client: Client) {
        for subscription in subscriptions.values where subscription.client === client {
            unsubscribe(client, at: subscription.path)
        }
    }

    /// Whether a caller may open the store, or the domain of which it is a layer.
    func mayBeOpened(by caller: CallerIdentity) -> Bool {
        guard let layer else { return user.manifests.isEntitled(caller, to: identifier) }
        return user.domains.access(of: caller, to: layer.domain) != .none
    }

    /// Whether a client that has reached the store by a path gets its changes. Those of a domain's layer for this host
    /// are also sent from the domain's path.
    func tells(_ client: Client, at path: String) -> Bool {
        if isSubscribed(client, at: path) { return true }
        let isHost = layer?.isHost == true
        return isHost && isSubscribed(client, at: String(path.dropLast(BusNames.hostSuffix.utf8.count)))
    }

    private var signal: ChangeSignal { layer.map { .domain(isHost: $0.isHost) } ?? .store }

    /// Notifies each subscriber of what has changed for it.
    /// - Parameter keys: returns the keys that have changed for a subscriber.
    func notifyEach(_ reason: StoreNotice.Reason, keys: (Peer) -> ChangedKeys) {
        for subscription in subscriptions.values {
            let changed = keys(subscription.peer)
            if changed.keys.isEmpty { continue }
            subscription.add(StoreChange(reason: reason, keys: changed, generation: store.generation, info: [:]))
        }
    }

    /// Notifies the subscribers of a committed change.
    /// - Parameter writer: the client that made the change, which is not notified.
    func notify(
        _ reason: StoreNotice.Reason, keys: [Key], except writer: Client? = nil, info: [String: Value] = [:]
    ) {
        if subscriptions.isEmpty { return }
        let change = StoreChange(
            reason: reason, keys: ChangedKeys(Set(keys)), generation: store.generation, info: info)
        for subscription in subscriptions.values {
            if subscription.client === writer { continue }
            if reason == .localChange && !subscription.includesLocal { continue }
            subscription.add(change)
        }
    }
}

extension Store {
    /// Returns the present values of keys, as far as there are any.
    func present(_ keys: [Key]) -> [(Key, Value)] { keys.compactMap { key in value(for: key).map { (key, $0) } } }
}
