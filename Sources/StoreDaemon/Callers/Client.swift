// SPDX-License-Identifier: Apache-2.0

internal import SDBus

/// A connection that calls the service: who it is, and what it holds.
///
/// The peer owns this object, so this doesn't own the peer: a connection that holds nothing is forgotten with it.
@BusActor
final class Client: PeerContext {
    /// The connection's unique name.
    let name: String
    let uid: UInt32
    let identity: CallerIdentity
    let delivery: Delivery
    /// Whether all of its calls are refused: its user is none of the machine, see ``SubordinateUsers``.
    let isSubordinate: Bool
    /// What all of the user's connections have together.
    var share: UserShare { delivery.share }
    private var stores: [String: UserStore] = [:]
    private var accounts: [String: UserAccount] = [:]

    /// A client may hold so many stores that it is not subscribed to.
    private static let maximumStores = 64

    /// - Parameter isSubordinate: whether the user is none, but an id that a user has beside the own one.
    init(_ peer: Peer, delivery: Delivery, isSubordinate: Bool) {
        name = peer.uniqueName
        uid = peer.credentials.uid
        self.delivery = delivery
        self.isSubordinate = isSubordinate
        identity = uid == 0 ? .root : CallerIdentity.of(pid: peer.credentials.pid)
    }

    /// Calls that are answered once a piece of work is done.
    var callsUnderWay = 0
    /// How many subscriptions the client has; through two paths of one object, two.
    private(set) var subscriptions = SubscriptionCount()

    var isRoot: Bool { uid == 0 }
    /// Whether it is an app in a sandbox, or may be.
    var isSandboxed: Bool { identity.engine != .host }

    // MARK: What it holds

    /// Counts a subscription that begins, or one that ends if the difference is -1.
    func noteSubscription(_ kind: SubscriptionCount.Kind, by difference: Int) {
        subscriptions[kind] += difference
        share.subscriptions[kind] += difference
    }

    /// The store that a path led this client to before.
    func store(at path: String) -> UserStore? { stores[path] }

    /// Keeps a store in memory as long as the client is there.
    func hold(_ store: UserStore, at path: String) {
        if stores[path] === store { return }
        // Before others are let go of: this one may be held through another path only.
        store.hold()
        if stores.count >= Self.maximumStores, unsubscribedStores.count >= Self.maximumStores { forgetPaths() }
        stores.updateValue(store, forKey: path)?.release()
    }

    /// Remembers an account that the client is subscribed to.
    func hold(_ account: UserAccount, at path: String) { accounts[path] = account }

    private var unsubscribedStores: [String: UserStore] {
        stores.filter { !$0.value.tells(self, at: $0.key) }
    }

    /// Forgets where paths led, since the manifests are others; what is subscribed to stays.
    func forgetPaths() {
        for (path, store) in unsubscribedStores {
            stores[path] = nil
            store.release()
        }
    }

    /// Gives everything up: the connection is gone.
    func leave() {
        for store in stores.values {
            store.unsubscribe(self)
            store.release()
        }
        for (path, account) in accounts { account.subscribers.remove(self, at: path) }
        stores = [:]
        accounts = [:]
        delivery.close()
    }
}

/// How many subscriptions there are. Those to domains are counted apart.
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

/// Whose subscription it is: a connection may have one for each path of an object.
struct SubscriptionKey: Hashable {
    let client: ObjectIdentifier
    let path: String

    @BusActor
    init(_ client: Client, _ path: String) {
        self.client = ObjectIdentifier(client)
        self.path = path
    }
}

extension CallerIdentity {
    /// Root is asked nothing more.
    static let root = CallerIdentity(engine: .host, applicationIdentifier: "")
}
