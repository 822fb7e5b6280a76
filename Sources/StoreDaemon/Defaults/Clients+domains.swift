// SPDX-License-Identifier: Apache-2.0

internal import ManagedDefaults
internal import SDBus
internal import StoreBus
internal import StoreEngine

/// The domains that a caller can reach. As with stores, other users' domains don't exist for it.
extension Clients {
    /// Returns the domains of the user that a path names.
    func findDomains(at path: String, for peer: Peer) -> Located<UserDomains>? {
        let client = client(peer)
        guard let target = DomainTarget(path), target.domain == nil, let uid = visibleUser(target, client) else {
            return nil
        }
        return find(uid, client) { $0.domains }
    }

    /// Returns the layer at a path; `nil` if none exists for the caller.
    func findLayer(at path: String, for peer: Peer) -> Located<UserStore>? {
        let client = client(peer)
        if let store = client.store(at: path) { return .object(store) }
        guard let target = DomainTarget(path), let domain = target.domain, let uid = visibleUser(target, client) else {
            return nil
        }
        func mayOpen(_ manifests: UserManifests) -> Bool {
            manifests.access(of: client.identity, to: domain) != .none
        }
        guard mayOpen(users.manifests(of: uid)) else { return nil }
        let identifier = DomainLayer(of: domain, isHost: target.isHost).identifier
        return .unloaded { [unowned self] in
            try load(identifier, of: uid, at: path, client, peer) { mayOpen($0.manifests) }
        }
    }

    /// Returns the same, loaded.
    func layer(at path: String, for peer: Peer) throws -> UserStore? { try findLayer(at: path, for: peer)?.loaded() }

    /// Returns the user that a path names, if the caller may see it. Root's access doesn't create a user's data.
    private func visibleUser(_ target: DomainTarget, _ client: Client) -> UInt32? {
        let uid = target.uid ?? client.uid
        guard uid == client.uid || client.isRoot, client.identity.engine != .unknown,
            uid == client.uid || users.known.contains(uid)
        else { return nil }
        return uid
    }

    /// Returns the caller's own objects right below a path. Only the list of a user's domains is in the database.
    func domainChildren(of prefix: String, for peer: Peer) -> [String] {
        let client = client(peer)
        let path = BusNames.defaultsPath(uid: client.uid)
        guard client.identity.engine != .unknown else { return [] }
        if prefix == BusNames.defaultsRoot { return [path] }
        let paths = prefix == path ? domainPaths(of: client) : hostPaths(below: prefix, for: peer)
        noteSent(paths.reduce(0) { $0 + $1.utf8.count }, to: peer)
        return paths
    }

    private func domainPaths(of client: Client) -> [String] {
        guard users.known.contains(client.uid), let user = try? users.user(client.uid) else { return [] }
        let access = user.manifests.access(of: client.identity)
        let names = ((try? user.domains.names()) ?? []).filter { access($0) != .none }
        return names.prefix(Self.mostChildren).compactMap { try? BusNames.domainPath(uid: user.uid, domain: $0) }
    }

    private func hostPaths(below prefix: String, for peer: Peer) -> [String] {
        guard let target = DomainTarget(prefix), target.domain != nil, !target.isHost,
            findLayer(at: prefix, for: peer) != nil
        else { return [] }
        return [prefix + BusNames.hostSuffix]
    }

    /// Refuses subscriptions to domains beyond the user's bound.
    func checkDomainSubscriptions(of client: Client, adding count: Int = 1) throws(BusError) {
        let bound = service.configuration.bounds.domainSubscriptions
        guard client.share.subscriptions[.domains] + count <= bound else {
            throw .limitsExceeded("A user may have \(bound) subscriptions to domains. End some with Unsubscribe.")
        }
    }
}
