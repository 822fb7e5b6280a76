// SPDX-License-Identifier: Apache-2.0

/// The address of an account's remote, as people write it: what the service, its backends and the command line ask of it.
package enum PlaceAddress {
    /// What to know before signing in there; `nil` if there is nothing.
    ///
    /// It looks at no more than what is sent where, and finds nothing in an address that is none: signing in says
    /// what is wrong with that.
    package static func warning(of url: String) -> String? {
        guard let kind = PlaceKind.find(url) else { return nil }
        let scheme = scheme(of: url)
        let hosts = authority(of: url).split(separator: ",").map(String.init)
        return kind.warning(isSecure: scheme != kind.name, hosts: hosts)
    }

    /// What an address begins with, in small letters.
    package static func scheme(of url: String) -> String { url.prefix { $0 != ":" }.lowercased() }

    /// What follows the scheme and two slashes, up to the path: hosts, and perhaps who signs in. RFC 3986, 3.2.
    package static func authority(of url: String) -> Substring {
        let rest = url.drop { $0 != ":" }.dropFirst()
        return (rest.hasPrefix("//") ? rest.dropFirst(2) : rest).prefix { !"/?#".contains($0) }
    }

    /// Whether what is sent to a host never leaves this machine.
    /// - Parameter member: a name, an address, or an IPv6 address in brackets; perhaps with a port.
    package static func isLoopback(_ member: some StringProtocol) -> Bool {
        if member.hasPrefix("[") { return member.prefix { $0 != "]" } == "[::1" }
        let host = member.prefix { $0 != ":" }.lowercased()
        return host == "localhost" || host.hasSuffix(".localhost")
            || (host.hasPrefix("127.") && host.utf8.allSatisfy { $0 == 0x2E || (0x30...0x39).contains($0) })
    }
}
