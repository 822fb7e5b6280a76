// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication
internal import SDBus
internal import StoreBus
internal import StoreEngine
internal import SyncEngine

/// A store as the bus has it: what is stored, whose it is, and who is told of changes.
@BusActor
final class UserStore {
    let user: User
    let path: String
    private(set) var store: Store
    private var subscriptions: [SubscriptionKey: StoreSubscription] = [:]
    unowned let daemon: Daemon

    var identifier: String { store.identifier }
    /// Of which domain it is a layer; `nil`: it is an app's store.
    let layer: (domain: String, isHost: Bool)?
    /// What its values take in a message at most, as far as it was added up.
    private var knownWeight: Int?

    init(_ store: Store, of user: User, daemon: Daemon) throws {
        self.store = store
        self.user = user
        self.daemon = daemon
        layer = Store.layer(store.identifier)
        path =
            if let layer {
                try BusNames.domainPath(uid: user.uid, domain: layer.domain, isHost: layer.isHost)
            } else {
                try BusNames.storePath(uid: user.uid, identifier: store.identifier)
            }
    }

    /// What its values take in a message at most.
    var weight: Int {
        if let knownWeight { return knownWeight }
        var weight = 0
        store.forEachValue { weight += Value.entrySize($0.text, $1) }
        knownWeight = weight
        return weight
    }

    /// A change was staged after which its values take so much; `nil`: that is to be added up.
    func noteStaged(weight: Int?) {
        knownWeight = weight
        user.domains.sizes.note(store)
    }

    /// What was staged was not committed, or its values are others for another reason.
    func forgetWeight() {
        knownWeight = nil
        if layer != nil { user.domains.sizes.forget() }
    }

    /// Goes on with the same store of a new database.
    func replace(_ store: Store) {
        self.store = store
        forgetWeight()
    }

    // MARK: Holders

    // Counted, and not left to weak references: these make every use of the object slower.
    private var holders = 0

    /// A client uses the store: it stays in memory.
    func hold() {
        holders += 1
    }

    /// A client no longer uses the store. After the last one it is released.
    func release() {
        holders -= 1
        if holders == 0 { user.letGo(self) }
    }

    // MARK: Subscribers

    /// Subscribes a client through a path; again changes what it is told.
    /// - Parameter path: where changes are told to come from.
    func subscribe(_ client: Client, _ peer: Peer, at path: String, includingLocal: Bool) {
        let key = SubscriptionKey(client, path)
        if let subscription = subscriptions[key] {
            subscription.includesLocal = includingLocal
            return
        }
        subscriptions[key] = StoreSubscription(
            client, peer, path: path, includesLocal: includingLocal, signal: signal,
            connection: daemon.connection)
        count(client, path, by: 1)
    }

    /// Ends the subscription of a client through a path, if there is one.
    func unsubscribe(_ client: Client, at path: String) {
        guard let subscription = subscriptions.removeValue(forKey: SubscriptionKey(client, path)) else { return }
        subscription.cancel()
        count(client, path, by: -1)
    }

    /// A subscription to a domain is one, though it is to the domain's layer for this host as well.
    private func count(_ client: Client, _ path: String, by difference: Int) {
        guard let layer else {
            user.account.subscribersChanged(by: difference)
            return client.noteSubscription(.objects, by: difference)
        }
        if !layer.isHost || path.hasSuffix(BusNames.hostSuffix) { client.noteSubscription(.domains, by: difference) }
    }

    func isSubscribed(_ client: Client, at path: String) -> Bool {
        subscriptions[SubscriptionKey(client, path)] != nil
    }

    /// Ends all subscriptions of a client.
    func unsubscribe(_ client: Client) {
        for subscription in subscriptions.values where subscription.client === client {
            unsubscribe(client, at: subscription.path)
        }
    }

    /// Whether a client that was led here by a path is told of changes: this host's layer of a domain tells from the
    /// domain's path as well.
    func tells(_ client: Client, at path: String) -> Bool {
        if isSubscribed(client, at: path) { return true }
        let isHost = layer?.isHost == true
        return isHost && isSubscribed(client, at: String(path.dropLast(BusNames.hostSuffix.utf8.count)))
    }

    private var signal: ChangeSignal { layer.map { .domain(isHost: $0.isHost) } ?? .store }

    /// Tells each subscriber what changed for it.
    /// - Parameter keys: the keys that changed for a subscriber.
    func notifyEach(_ reason: StoreNotice.Reason, keys: (Peer) -> Set<Key>) {
        for subscription in subscriptions.values {
            let keys = keys(subscription.peer)
            if keys.isEmpty { continue }
            subscription.add(StoreChange(reason: reason, keys: keys, generation: store.generation, info: [:]))
        }
    }

    /// Tells the subscribers of a change that was committed.
    /// - Parameter writer: who made it, and is not told of it.
    func notify(
        _ reason: StoreNotice.Reason, keys: [Key], except writer: Client? = nil, info: [String: Value] = [:]
    ) {
        if subscriptions.isEmpty { return }
        let change = StoreChange(reason: reason, keys: Set(keys), generation: store.generation, info: info)
        for subscription in subscriptions.values {
            if subscription.client === writer { continue }
            if reason == .localChange && !subscription.includesLocal { continue }
            subscription.add(change)
        }
    }
}
