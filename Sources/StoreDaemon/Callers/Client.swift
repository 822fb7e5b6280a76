// SPDX-License-Identifier: Apache-2.0

internal import SDBus

/// A connection that calls the service: its identity, and what it holds.
///
/// The peer owns this object, and not the other way round, so a connection that holds nothing is freed with it.
@BusActor
final class Client: PeerContext {
    /// The connection's unique name.
    let name: String
    let uid: UInt32
    let identity: CallerIdentity
    let delivery: Delivery
    /// Whether all of its calls are refused, because its user id is no user of the machine: see ``SubordinateUsers``.
    let isSubordinate: Bool
    /// The budget that all of the user's connections share.
    var share: UserShare { delivery.share }
    private var stores: [String: UserStore] = [:]
    /// The paths among them of stores that the client, in its sandbox, may not open now. A manifest that is replaced is
    /// away for a moment, so subscriptions stay; nothing is sent meanwhile.
    private var closed: Set<String> = []
    private var accounts: [String: UserAccount] = [:]

    /// The most stores that a client may hold without a subscription.
    private static let maximumStores = 64

    /// - Parameter isSubordinate: whether the user id is one that `/etc/subuid` grants to a user.
    init(_ peer: Peer, _ identity: CallerIdentity, delivery: Delivery, isSubordinate: Bool) {
        name = peer.uniqueName
        uid = peer.credentials.uid
        self.identity = identity
        self.delivery = delivery
        self.isSubordinate = isSubordinate
    }

    /// The number of calls that are answered after a piece of work.
    var callsUnderWay = 0
    /// The number of the client's subscriptions. Two paths of one object count as two.
    private(set) var subscriptions = SubscriptionCount()

    var isRoot: Bool { uid == 0 }
    /// Whether the client is, or may be, an app in a sandbox.
    var isSandboxed: Bool { identity.engine != .host }

    // MARK: Held objects

    /// Counts a subscription that begins, or that ends if the difference is -1.
    func noteSubscription(_ kind: SubscriptionCount.Kind, by difference: Int) {
        subscriptions[kind] += difference
        share.subscriptions[kind] += difference
    }

    /// Returns the store that the client has reached by a path before.
    func store(at path: String) -> UserStore? { closed.contains(path) ? nil : stores[path] }

    /// Keeps a store in memory until the client leaves.
    func hold(_ store: UserStore, at path: String) {
        if stores[path] === store { return }
        // This precedes the release of others, because the store may be held only through another path.
        store.hold()
        if stores.count >= Self.maximumStores, unsubscribedStores.count >= Self.maximumStores { forgetPaths() }
        stores.updateValue(store, forKey: path)?.release()
    }

    /// Notes an account that the client is subscribed to.
    func hold(_ account: UserAccount, at path: String) { accounts[path] = account }

    private var unsubscribedStores: [String: UserStore] {
        stores.filter { !$0.value.tells(self, at: $0.key) }
    }

    /// Forgets which stores paths lead to, because the manifests have changed. Stores with a subscription stay.
    func forgetPaths() {
        closed = []
        for (path, store) in stores {
            let isClosed = isSandboxed && !store.mayBeOpened(by: identity)
            store.suspend(self, isClosed)
            if store.tells(self, at: path) {
                if isClosed { closed.insert(path) }
                continue
            }
            stores[path] = nil
            store.release()
        }
    }

    /// Releases everything, because the connection has ended.
    func leave() {
        release { _ in true }
        delivery.close()
    }

    /// Releases what the client holds of a user's data. Its calls find what is there afterwards.
    func leave(_ user: User) { release { $0 === user } }

    private func release(where isWanted: (User?) -> Bool) {
        for (path, store) in stores where isWanted(store.user) {
            store.unsubscribe(self)
            stores[path] = nil
            store.release()
        }
        for (path, account) in accounts where isWanted(account.user) {
            account.notices.unsubscribe(self, at: path)
            accounts[path] = nil
        }
    }
}

/// The number of subscriptions. Those to domains are counted separately.
struct SubscriptionCount {
    enum Kind {
        case objects, domains
    }

    private var objects = 0
    private var domains = 0

    subscript(kind: Kind) -> Int {
        get { kind == .objects ? objects : domains }
        set { if kind == .objects { objects = newValue } else { domains = newValue } }
    }
}

/// The owner of a subscription. A connection may have one for each path of an object.
struct SubscriptionKey: Hashable {
    let client: ObjectIdentifier
    let path: String

    @BusActor
    init(_ client: Client, _ path: String) {
        self.client = ObjectIdentifier(client)
        self.path = path
    }
}
