// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The address of an account's remote, as users write it.
package enum RemoteAddress {
    /// Returns a warning to show before signing in there; `nil` if there is none.
    ///
    /// It depends only on the scheme and the hosts. There is none for what is not an address: signing in says what is
    /// wrong with that.
    package static func warning(of url: String) -> String? {
        guard let kind = BackendKind.find(url) else { return nil }
        let scheme = scheme(of: url)
        let hosts = hosts(in: authority(of: url)).split(separator: ",").map(String.init)
        return kind.warning(isSecure: scheme != kind.name, hosts: hosts)
    }

    /// Returns an address's scheme, in lower case.
    package static func scheme(of url: String) -> String { url.prefix { $0 != ":" }.lowercased() }

    /// Returns what is between the two slashes and the path: hosts, and perhaps a user (RFC 3986, section 3.2).
    package static func authority(of url: String) -> Substring {
        let rest = url.drop { $0 != ":" }.dropFirst()
        return (rest.hasPrefix("//") ? rest.dropFirst(2) : rest).prefix { !"/?#".contains($0) }
    }

    /// Returns an authority without a user.
    private static func hosts(in authority: Substring) -> Substring {
        authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
    }

    /// Whether two addresses are certainly of one remote: they may differ in the case of the scheme and the hosts, in what
    /// is percent-encoded, and in slashes at the end; those of folders also in how many slashes are between two names.
    package static func areSame(_ first: String, _ second: String) -> Bool {
        Normalized(first) == Normalized(second)
    }

    private struct Normalized: Equatable {
        let scheme: String
        let authority: String
        let path: [String]

        init(_ url: String) {
            scheme = RemoteAddress.scheme(of: url)
            let authority = RemoteAddress.authority(of: url)
            // In a user's name, case counts.
            let hosts = RemoteAddress.hosts(in: authority)
            self.authority = authority[..<hosts.startIndex] + hosts.lowercased()
            let isFolder = scheme == BackendKind.folder.name
            var names = url[authority.endIndex...].split(separator: "/", omittingEmptySubsequences: isFolder)
            while names.last?.isEmpty == true { names.removeLast() }
            path = names.map { PercentCoding.decode($0) ?? String($0) }
        }
    }

    /// Whether what is sent to a host never leaves this machine.
    /// - Parameter member: a name, an IPv4 address, or an IPv6 address in brackets; with or without a port.
    package static func isLoopback(_ member: some StringProtocol) -> Bool {
        if member.hasPrefix("[") { return member.prefix { $0 != "]" } == "[::1" }
        let host = member.prefix { $0 != ":" }.lowercased()
        return host == "localhost" || host.hasSuffix(".localhost")
            || (host.hasPrefix("127.") && isIPv4(host))
    }

    /// Whether a host is an address of IPv4 with its four numbers. Anything else of digits and dots is looked up.
    package static func isIPv4(_ host: String) -> Bool {
        var address = in_addr()
        return inet_pton(AF_INET, host, &address) == 1
    }
}
