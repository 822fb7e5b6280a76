// SPDX-License-Identifier: Apache-2.0

internal import ManagedDefaults
internal import SDBus
internal import StoreBus
internal import StoreEngine

/// Which domains there are for a caller. The rules are those of stores: what is not the caller's does not exist for it.
extension Clients {
    /// All domains of the user that a path names.
    func findDomains(at path: String, for peer: Peer) -> Located<UserDomains>? {
        let client = client(peer)
        guard let target = DomainTarget(path), target.domain == nil, let uid = visibleUser(target, client) else {
            return nil
        }
        return find(uid, client) { $0.domains }
    }

    /// The layer that a path is for a caller; `nil`: there is none for it.
    func findLayer(at path: String, for peer: Peer) -> Located<UserStore>? {
        let client = client(peer)
        if let store = client.store(at: path) { return .object(store) }
        guard let target = DomainTarget(path), let domain = target.domain, let uid = visibleUser(target, client) else {
            return nil
        }
        func mayOpen(_ manifests: UserManifests) -> Bool {
            manifests.access(of: client.identity, to: domain) != .none
        }
        guard mayOpen(daemon.users.manifests(of: uid)) else { return nil }
        let identifier = Store.layerIdentifier(ofDomain: domain, isHost: target.isHost)
        return .unloaded { [unowned self] in
            try load(identifier, of: uid, at: path, client, peer) { mayOpen($0.manifests) }
        }
    }

    /// The same, loaded.
    func layer(at path: String, for peer: Peer) throws -> UserStore? { try findLayer(at: path, for: peer)?.loaded() }

    /// The user that a path names, if the caller may see it. A look of root's does not make anybody's data.
    private func visibleUser(_ target: DomainTarget, _ client: Client) -> UInt32? {
        let uid = target.uid ?? client.uid
        guard uid == client.uid || client.isRoot, client.identity.engine != .unknown,
            uid == client.uid || daemon.users.known.contains(uid)
        else { return nil }
        return uid
    }

    /// The objects right below a path that are the caller's own. Only the list of a user's domains is in the data.
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
        guard daemon.users.known.contains(client.uid), let user = try? daemon.users.user(client.uid) else { return [] }
        let names = ((try? user.domains.names()) ?? []).filter {
            user.domains.access(of: client.identity, to: $0) != .none
        }
        return names.prefix(Self.mostChildren).compactMap { try? BusNames.domainPath(uid: user.uid, domain: $0) }
    }

    private func hostPaths(below prefix: String, for peer: Peer) -> [String] {
        guard let target = DomainTarget(prefix), target.domain != nil, !target.isHost,
            findLayer(at: prefix, for: peer) != nil
        else { return [] }
        return [prefix + BusNames.hostSuffix]
    }

    /// Refuses a subscription to a domain beyond what a user may have.
    func checkDomainSubscriptions(of client: Client) throws(BusError) {
        let bound = daemon.configuration.bounds.domainSubscriptions
        guard client.share.subscriptions[.domains] < bound else {
            throw .limitsExceeded("A user may have \(bound) subscriptions to domains. End some with Unsubscribe.")
        }
    }
}
