// SPDX-License-Identifier: Apache-2.0

package import RemoteAddress
package import Replication

/// A server's address, split into its parts.
package struct ServerURL {
    /// Whether the connection uses TLS.
    package let isSecure: Bool
    /// One or several hosts, with or without ports.
    package let authority: Substring
    /// What follows the authority, as it was written.
    package let rest: Substring

    /// What a user has to know about hosts, as a clause of an error.
    package static let hostRule = "a port is 1 to 65535, and an IPv6 address is in brackets"

    /// Splits an address.
    /// - Parameters:
    ///   - kind: the kind of remote that the address must be for.
    ///   - flaw: makes the error to throw, from a clause that says what is wrong.
    package init(
        _ url: String, of kind: BackendKind, flaw: (_ clause: String) -> RemoteError
    ) throws(RemoteError) {
        let scheme = RemoteAddress.scheme(of: url)
        let rest = url.dropFirst(scheme.count)
        guard rest.hasPrefix(":"), kind.schemes.contains(scheme) else {
            throw flaw("it must begin with \(kind.schemes.map { $0 + "://" }.joined(separator: " or "))")
        }
        isSecure = scheme != kind.name
        guard rest.hasPrefix("://") else { throw flaw("two slashes must follow the colon, as in \(kind.example)") }
        authority = RemoteAddress.authority(of: url)
        guard !authority.contains("@") else {
            throw flaw("the user and the password belong in the options, not in the address")
        }
        self.rest = rest[authority.endIndex...]
    }
}
