// SPDX-License-Identifier: Apache-2.0

/// A kind of remote, as everybody has to know it who has no backend at hand: who reads settings, who types an address,
/// who is asked for a password. Backends are made of these kinds, so that nothing of this is written twice.
package struct PlaceKind: Hashable, Sendable {
    /// What its addresses begin with; those of servers with an `s` where the connection is encrypted.
    package let name: String
    /// What follows the two slashes.
    private let place: String
    /// What signing in may ask for, in this order; a kind without a server asks for nothing.
    package let credentials: [Credential]

    /// Something that a server asks for.
    package enum Credential: Sendable { case user, password, token, authority }

    /// A directory of this machine.
    package static let folder = PlaceKind(name: "folder", place: "/PATH", credentials: [])
    /// A folder of a WebDAV server.
    package static let webDAV = PlaceKind(name: "webdav", place: "HOST/PATH", credentials: server)
    /// A prefix of an etcd cluster.
    package static let etcd = PlaceKind(name: "etcd", place: "HOST/PREFIX", credentials: server)
    /// All that there are.
    package static let all = [folder, webDAV, etcd]

    private static let server: [Credential] = [.user, .password, .token, .authority]

    /// The schemes of all kinds.
    package static let schemes = all.flatMap(\.schemes)

    /// The kind of an address; `nil` if it is of none.
    package static func find(_ url: String) -> PlaceKind? {
        let scheme = PlaceAddress.scheme(of: url)
        return all.first { $0.schemes.contains(scheme) }
    }

    private var isServer: Bool { !credentials.isEmpty }

    /// The schemes of its addresses; the first is to be preferred.
    package var schemes: [String] { isServer ? [scheme(isSecure: true), name] : [name] }

    /// The scheme of an address at a server, with TLS or without.
    package func scheme(isSecure: Bool) -> String { isSecure ? name + "s" : name }

    /// What an address looks like.
    package var example: String { "\(schemes[0])://\(place)" }

    /// What to know before signing in; `nil` if there is nothing.
    /// - Parameter hosts: the servers, with or without ports.
    package func warning(isSecure: Bool, hosts: [String]) -> String? {
        guard isServer, !isSecure, !hosts.allSatisfy(PlaceAddress.isLoopback) else { return nil }
        return "The connection is not encrypted: everybody on the way can read the password and all values, and change "
            + "them. Use \(scheme(isSecure: true)):// if the server has TLS."
    }
}
