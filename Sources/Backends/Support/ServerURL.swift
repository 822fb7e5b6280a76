// SPDX-License-Identifier: Apache-2.0

package import PlaceAddress
package import Replication

/// What a server's address begins with, and the rest of it.
package struct ServerURL {
    /// With TLS.
    package let isSecure: Bool
    /// One host or several, with ports.
    package let authority: Substring
    /// What follows, as it is written.
    package let rest: Substring

    /// Takes an address apart.
    /// - Parameters:
    ///   - kind: what its addresses begin with.
    ///   - flaw: makes an error of what is wrong.
    package init(
        _ url: String, of kind: PlaceKind, flaw: (_ clause: String) -> RemoteError
    ) throws(RemoteError) {
        let scheme = PlaceAddress.scheme(of: url)
        let rest = url.dropFirst(scheme.count)
        guard rest.hasPrefix(":"), kind.schemes.contains(scheme) else {
            throw flaw("it begins with \(kind.schemes.map { $0 + "://" }.joined(separator: " or "))")
        }
        isSecure = scheme != kind.name
        guard rest.hasPrefix("://") else { throw flaw("two slashes follow the colon, as in \(kind.example)") }
        authority = PlaceAddress.authority(of: url)
        guard !authority.contains("@") else {
            throw flaw("who signs in is said with the options user and password, not in the address")
        }
        self.rest = rest[authority.endIndex...]
    }
}
