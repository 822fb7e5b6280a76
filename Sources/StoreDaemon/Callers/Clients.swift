// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import Replication
internal import SDBus
internal import StoreBus

/// The clients that hold something, and the objects that clients can reach.
@BusActor
final class Clients {
    let users: Users
    let service: ServiceContext
    let shares: UserShares
    private let manifests: ManifestDirectories
    private let subordinates: SubordinateUsers
    private var present: [ObjectIdentifier: Presence] = [:]
    var kinds = CallKinds()

    /// A client whose disconnection must be noticed.
    private struct Presence {
        let client: Client
        let peer: Peer
    }

    init(
        of users: Users, in service: ServiceContext, sharing shares: UserShares, manifests: ManifestDirectories,
        subordinates: SubordinateUsers
    ) {
        self.users = users
        self.service = service
        self.shares = shares
        self.manifests = manifests
        self.subordinates = subordinates
    }

    /// Returns the client behind a peer.
    func client(_ peer: Peer) -> Client {
        if let client = peer.context as? Client { return client }
        let uid = peer.credentials.uid
        if let (user, owner) = users.former(of: uid) {
            leave(user)
            // With what is known now. The data is opened again only once its owner is known.
            try? user.directory.prepare(for: owner, logger: service.logger, time: service.environment.time())
        }
        let range = subordinates.range(of: uid)
        let key = range.map(UserShares.Key.subordinates) ?? .user(uid)
        let client = Client(
            peer, ExaminedCaller.identity(of: peer), delivery: makeDelivery(to: peer, key), isSubordinate: range != nil)
        peer.context = client
        return client
    }

    private func makeDelivery(to peer: Peer, _ key: UserShares.Key) -> Delivery {
        Delivery(to: peer.uniqueName, shares.share(of: key), on: service.connection) { [unowned self] in
            service.writes.commit()
        }
    }

    var isEmpty: Bool { present.isEmpty }

    /// Makes the disconnection of a client noticed.
    func keep(_ client: Client, _ peer: Peer) {
        guard present.updateValue(Presence(client: client, peer: peer), forKey: ObjectIdentifier(client)) == nil else {
            return
        }
        client.share.presentClients += 1
        peer.hold()
    }

    func left(_ peer: Peer) {
        guard let client = peer.context as? Client else { return }
        client.leave()
        peer.context = ExaminedCaller(client.identity)
        guard present.removeValue(forKey: ObjectIdentifier(client)) != nil else { return }
        client.share.presentClients -= 1
        peer.release()
    }

    /// Releases what clients hold of a user's data, and closes it, because it becomes another user's or is removed.
    func leave(_ user: User) {
        service.writes.commit()
        for presence in present.values { presence.client.leave(user) }
        users.close(user)
    }

    /// Has clients look up their stores again.
    /// - Parameter uid: the user whose stores are looked up again; `nil` for all users'.
    func forgetPaths(of uid: UInt32? = nil) {
        for client in present.values.map(\.client) where uid == nil || client.uid == uid || client.isRoot {
            client.forgetPaths()
        }
    }

    /// Refuses a subscription beyond the bounds of a connection or a user.
    func checkSubscriptions(of client: Client) throws(BusError) {
        let bounds = service.configuration.bounds
        if client.subscriptions[.objects] >= bounds.subscriptionsPerConnection {
            throw .limitsExceeded("A connection may have \(bounds.subscriptionsPerConnection) subscriptions.")
        }
        if client.share.subscriptions[.objects] >= bounds.subscriptions {
            throw .limitsExceeded("A user may have \(bounds.subscriptions) subscriptions.")
        }
    }

    // MARK: Paths

    /// Returns the store at a path; `nil` if none exists for the caller.
    func findStore(at path: String, for peer: Peer) throws(BusError) -> Located<UserStore>? {
        let client = client(peer)
        if let store = client.store(at: path) { return .object(store) }
        guard let target = PathTarget(path), let identifier = target.identifier,
            let uid = reachableUser(target, client)
        else { return nil }
        guard client.identity.engine != .unknown else { return nil }
        // The store's manifest may have been installed a moment ago.
        if !declares(identifier) { manifests.readIfChanged() }
        guard mayLookUp(uid, client, unless: declares(identifier)) else { return nil }
        let isEntitled = users.manifests(of: uid).isEntitled(client.identity, to: identifier)
        do {
            guard try isEntitled || holdsData(identifier, uid, client) else { return nil }
        } catch {
            throw BusError(mapping: error, for: client)
        }
        return .unloaded { [unowned self] in
            try load(identifier, of: uid, at: path, client, peer) { [unowned self] user in
                try user.manifests.isEntitled(client.identity, to: identifier) || holdsData(identifier, uid, client)
            }
        }
    }

    /// Whether apps of any user may have the store, because a manifest for all users declares it or none is needed.
    private func declares(_ identifier: String) -> Bool {
        manifests.manifests.declares(identifier)
            || (service.configuration.allowsUndeclared && Manifest.isName(identifier))
    }

    /// Returns the same, loaded.
    func store(at path: String, for peer: Peer) throws -> UserStore? {
        try findStore(at: path, for: peer)?.loaded()
    }

    /// Loads a store for a client, which holds it then.
    /// - Parameter mayOpen: decides again once the user's data is open, when it is certain whose it is.
    func load(
        _ identifier: String, of uid: UInt32, at path: String, _ client: Client, _ peer: Peer,
        if mayOpen: @BusActor (User) throws -> Bool
    ) throws(BusError) -> UserStore {
        // Loading a store may commit, and may set a damaged database aside.
        service.writes.commit()
        do {
            let user = try users.user(uid)
            guard try mayOpen(user) else { throw BusError.unknownObject(path) }
            let store = try user.store(identifier)
            hold(store, at: path, client, peer)
            return store
        } catch {
            throw BusError(mapping: error, for: client)
        }
    }

    func hold(_ store: UserStore, at path: String, _ client: Client, _ peer: Peer) {
        keep(client, peer)
        client.hold(store, at: path)
    }

    func hold(_ account: UserAccount, at path: String, _ client: Client, _ peer: Peer) {
        keep(client, peer)
        client.hold(account, at: path)
    }

    /// Returns the account at a path; `nil` if none exists for the caller.
    func findAccount(at path: String, for peer: Peer) -> Located<UserAccount>? {
        let client = client(peer)
        guard let target = PathTarget(path), target.identifier == nil, let uid = reachableUser(target, client),
            client.identity.engine != .unknown, mayLookUp(uid, client)
        else { return nil }
        return find(uid, client) { $0.account }
    }

    /// Returns an object of a user, whose data is opened when it is needed.
    func find<Object>(_ uid: UInt32, _ client: Client, _ object: @escaping @BusActor (User) -> Object) -> Located<
        Object
    > {
        if let user = users.openUser(uid) { return .object(object(user)) }
        return .unloaded { [unowned self] in
            do { return object(try users.user(uid)) } catch { throw BusError(mapping: error, for: client) }
        }
    }

    /// Compares the user ids before any lookup, so that nothing reveals anything about another user.
    private func reachableUser(_ target: PathTarget, _ client: Client) -> UInt32? {
        let uid = target.uid ?? client.uid
        return uid == client.uid || client.isRoot ? uid : nil
    }

    /// Whether a caller may reach a user. Without data, root may only for declared stores, and if the user exists.
    private func mayLookUp(_ uid: UInt32, _ client: Client, unless isDeclared: Bool = false) -> Bool {
        if uid == client.uid || users.known.contains(uid) { return true }
        return isDeclared && UserName.nameAtOnce(of: uid) != nil
    }

    /// Whether root may open a store because it holds data. To find out, the user's data is opened.
    private func holdsData(_ identifier: String, _ uid: UInt32, _ client: Client) throws -> Bool {
        guard client.isRoot else { return false }
        service.writes.commit()
        return try users.user(uid).storeIdentifiers().contains(identifier)
    }

    /// Returns the caller's own objects right below a path: the stores that hold values or that it may open.
    func children(of prefix: String, for peer: Peer) -> [String] {
        let client = client(peer)
        let path = BusNames.accountPath(uid: client.uid)
        guard client.identity.engine != .unknown else { return [] }
        if prefix == BusNames.usersPath { return [path] }
        guard prefix == path, let user = try? users.user(client.uid) else { return [] }
        let stores = client.isSandboxed ? [] : (try? user.storesWithValues()) ?? []
        let identifiers = Set(stores.filter(user.manifests.declares)).union(user.manifests.entitled(client.identity))
            .sorted()
        let paths = identifiers.prefix(Self.mostChildren).compactMap {
            try? BusNames.storePath(uid: user.uid, identifier: $0)
        }
        noteSent(paths.reduce(0) { $0 + $1.utf8.count }, to: peer)
        return paths
    }

    /// The most stores that introspection lists. ListStores lists all.
    static let mostChildren = 4096
}

/// The target of a path below the root of the users.
struct PathTarget: Equatable {
    /// The user id; `nil` if the path names the caller's own user.
    let uid: UInt32?
    /// The store's identifier; `nil` if the path names the account.
    let identifier: String?

    init?(_ path: String) {
        let prefix = BusNames.usersPath + "/"
        guard path.hasPrefix(prefix) else { return nil }
        let parts = path.dropFirst(prefix.count).split(separator: "/", omittingEmptySubsequences: false)
        guard let user = parts.first, parts.count <= 2 else { return nil }
        if user == "self" {
            uid = nil
        } else {
            // "u01" would be a second name of the same object. The greatest number is no user, because setuid(2) takes
            // it for "leave it as it is".
            guard user.first == "u", let number = UInt32(user.dropFirst()), number < .max, user == "u\(number)" else {
                return nil
            }
            uid = number
        }
        guard parts.count == 2 else {
            identifier = nil
            return
        }
        guard let decoded = ObjectPath.decode(path, prefix: prefix + user), !decoded.isEmpty,
            (try? ObjectPath.encode(prefix: prefix + user, label: decoded)) == path
        else { return nil }
        identifier = decoded
    }
}
