// SPDX-License-Identifier: Apache-2.0

/// A kind of remote, for code that has no backend: to read settings, to check an address, to ask for a password.
/// Backends use these kinds too. What is still written elsewhere: docs/decisions/0102.
package struct BackendKind: Hashable, Sendable {
    /// The scheme of its addresses. That of a server's address has an `s` appended if the connection is encrypted.
    package let name: String
    /// What follows the two slashes in the example of an address.
    private let place: String
    /// What signing in may ask for, in this order; empty for a kind without a server.
    package let credentials: [Credential]

    /// A credential that a server may ask for.
    package enum Credential: Sendable { case user, password, token, authority }

    /// A directory on this machine.
    package static let folder = BackendKind(name: "folder", place: "/PATH", credentials: [])
    /// A directory of a WebDAV server.
    package static let webDAV = BackendKind(name: "webdav", place: "HOST/PATH", credentials: server)
    /// A prefix of an etcd cluster.
    package static let etcd = BackendKind(name: "etcd", place: "HOST/PREFIX", credentials: server)
    /// All kinds.
    package static let all = [folder, webDAV, etcd]

    private static let server: [Credential] = [.user, .password, .token, .authority]

    /// The schemes of all kinds.
    package static let schemes = all.flatMap(\.schemes)

    /// Returns the kind of an address; `nil` if it has none of them.
    package static func find(_ url: String) -> BackendKind? {
        let scheme = RemoteAddress.scheme(of: url)
        return all.first { $0.schemes.contains(scheme) }
    }

    private var isServer: Bool { !credentials.isEmpty }

    /// The schemes of its addresses, the preferred one first.
    package var schemes: [String] { isServer ? [scheme(isSecure: true), name] : [name] }

    /// Returns the scheme of a server's address, with or without TLS.
    package func scheme(isSecure: Bool) -> String { isSecure ? name + "s" : name }

    /// An example of an address.
    package var example: String { "\(schemes[0])://\(place)" }

    /// Returns a warning to show before signing in; `nil` if there is none.
    /// - Parameter hosts: the servers, with or without ports.
    package func warning(isSecure: Bool, hosts: [String]) -> String? {
        guard isServer, !isSecure, !hosts.allSatisfy(RemoteAddress.isLoopback) else { return nil }
        return "The connection is not encrypted: anyone on the network path can read and change the password and all "
            + "values. Use \(scheme(isSecure: true)):// if the server has TLS."
    }
}
