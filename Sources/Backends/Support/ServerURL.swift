// SPDX-License-Identifier: Apache-2.0

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
    ///   - scheme: without the `s` that asks for TLS.
    ///   - example: what may follow the two slashes.
    ///   - flaw: makes an error of what is wrong.
    package init(
        _ url: String, scheme: String, example: String, flaw: (_ clause: String) -> RemoteError
    ) throws(RemoteError) {
        let name = url.prefix { $0 != ":" }
        guard name.endIndex < url.endIndex, [scheme, scheme + "s"].contains(name.lowercased()) else {
            throw flaw("it begins with \(scheme)s:// or \(scheme)://")
        }
        isSecure = name.lowercased() != scheme
        let rest = url[name.endIndex...].dropFirst()
        guard rest.hasPrefix("//") else {
            throw flaw("two slashes follow the colon, as in \(scheme)s://\(example)")
        }
        authority = rest.dropFirst(2).prefix { !"/?#".contains($0) }
        guard !authority.contains("@") else {
            throw flaw("who signs in is said with the options user and password, not in the address")
        }
        self.rest = rest[authority.endIndex...]
    }
}
