// SPDX-License-Identifier: Apache-2.0

internal import SDBus

/// A connection that calls the service: who it is, and what it holds.
@BusActor
final class Client {
    let peer: Peer
    let identity: CallerIdentity
    private(set) lazy var delivery = makeDelivery(self)
    private let makeDelivery: (Client) -> Delivery
    private var stores: [String: UserStore] = [:]
    private var accounts: [UserAccount] = []

    /// A client may hold so many stores that it is not subscribed to.
    private static let maximumStores = 64

    init(_ peer: Peer, delivery: @escaping (Client) -> Delivery) {
        self.peer = peer
        makeDelivery = delivery
        identity = peer.credentials.uid == 0 ? .root : CallerIdentity.of(pid: peer.credentials.pid)
    }

    /// Calls that are answered once a piece of work is done.
    var callsUnderWay = 0

    var uid: UInt32 { peer.credentials.uid }
    var isRoot: Bool { uid == 0 }
    /// Whether it is an app in a sandbox, or may be.
    var isSandboxed: Bool { identity.engine != .host }

    /// The store that a path led this client to before.
    func store(at path: String) -> UserStore? { stores[path] }

    /// Keeps a store in memory as long as the client is there.
    func hold(_ store: UserStore, at path: String) {
        if stores.count >= Self.maximumStores { forgetPaths() }
        if stores[path] === store { return }
        if stores.isEmpty && accounts.isEmpty { peer.hold() }
        store.hold()
        stores.updateValue(store, forKey: path)?.release()
    }

    func hold(_ account: UserAccount) {
        if accounts.contains(where: { $0 === account }) { return }
        if stores.isEmpty && accounts.isEmpty { peer.hold() }
        accounts.append(account)
    }

    /// How many subscriptions the client has.
    var subscriptions: Int {
        Set(stores.values.filter { $0.isSubscribed(self) }.map(ObjectIdentifier.init)).count
            + accounts.count { $0.isSubscribed(self) }
    }

    /// Forgets where paths led, since the manifests are others; what is subscribed to stays.
    func forgetPaths() {
        let unsubscribed = stores.filter { !$0.value.isSubscribed(self) }
        for (path, store) in unsubscribed {
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
        for account in accounts { account.unsubscribe(self) }
        stores = [:]
        accounts = []
        delivery.close()
    }
}

extension CallerIdentity {
    /// Root is asked nothing more.
    static let root = CallerIdentity(engine: .host, applicationIdentifier: "")
}
