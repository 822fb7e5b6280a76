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

    init(_ store: Store, of user: User, daemon: Daemon) throws {
        self.store = store
        self.user = user
        self.daemon = daemon
        path = try BusNames.storePath(uid: user.uid, identifier: store.identifier)
    }

    /// Goes on with the same store of a new database.
    func replace(_ store: Store) {
        self.store = store
    }

    // MARK: Holders

    // Counted, and not left to weak references: these make every use of the object slower.
    private var holders = 0

    /// Somebody uses the store: it stays in memory.
    func hold() {
        holders += 1
    }

    /// Somebody does not use the store any more; after the last one it leaves the memory.
    func release() {
        holders -= 1
        if holders == 0 { user.letGo(self) }
    }

    // MARK: Subscribers

    /// Subscribes a client through a path; again changes what it is told.
    func subscribe(_ client: Client, _ peer: Peer, at path: String, includingLocal: Bool) {
        let key = SubscriptionKey(client, path)
        if let subscription = subscriptions[key] {
            subscription.includesLocal = includingLocal
            return
        }
        subscriptions[key] = StoreSubscription(
            client, peer, path: path, includesLocal: includingLocal, connection: daemon.connection)
        user.account.subscribersChanged(by: 1)
    }

    /// Ends the subscription of a client through a path, if there is one.
    func unsubscribe(_ client: Client, at path: String) {
        guard let subscription = subscriptions.removeValue(forKey: SubscriptionKey(client, path)) else { return }
        subscription.cancel()
        user.account.subscribersChanged(by: -1)
    }

    func isSubscribed(_ client: Client, at path: String) -> Bool {
        subscriptions[SubscriptionKey(client, path)] != nil
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
