// SPDX-License-Identifier: Apache-2.0

internal import EventLoop
internal import RemoteAddress

/// The address of a resource on a server.
package struct HTTPAddress: Hashable, Sendable {
    /// Whether it uses TLS.
    package let isSecure: Bool
    /// A name, an address, or an IPv6 address in brackets; in lower case.
    package let host: String
    /// The port, even if it is the default.
    package let port: Int
    /// The path: begins with a slash, is percent-encoded, and includes the query if there is one.
    package var path: String

    /// Makes an address from its parts.
    package init(isSecure: Bool, host: String, port: Int? = nil, path: String) {
        self.isSecure = isSecure
        self.host = host.lowercased()
        self.port = port ?? (isSecure ? 443 : 80)
        self.path = path
    }

    /// Parses an `http://` or `https://` address; `nil` if it is invalid or contains a user.
    package init?(_ text: some StringProtocol) {
        let text = String(text)
        guard let colon = text.firstRange(of: "://") else { return nil }
        switch text[..<colon.lowerBound].lowercased() {
        case "http": isSecure = false
        case "https": isSecure = true
        default: return nil
        }
        let rest = text[colon.upperBound...].prefix { $0 != "#" }
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        guard let (host, port) = Self.split(authority) else { return nil }
        self.host = host.lowercased()
        self.port = port ?? (isSecure ? 443 : 80)
        let path = rest.dropFirst(authority.count)
        self.path = path.hasPrefix("/") ? String(path) : "/" + path
        guard self.path.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
    }

    /// Splits `HOST` or `HOST:PORT`; `nil` if it is neither.
    package static func split(_ authority: some StringProtocol) -> (host: String, port: Int?)? {
        var (host, port): (String, Int?) = (String(authority), nil)
        let end = host.hasPrefix("[") ? host.lastIndex(of: "]") ?? host.endIndex : host.startIndex
        if let colon = host[end...].lastIndex(of: ":") {
            let digits = host[host.index(after: colon)...]
            if !digits.isEmpty {
                guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(digits),
                    (1...65535).contains(number)
                else { return nil }
                port = number
            }
            host = String(host[..<colon])
        }
        return isHost(host) ? (host, port) : nil
    }

    private static func isHost(_ host: String) -> Bool {
        if host.hasPrefix("[") {
            return host.hasSuffix("]") && host.dropFirst().dropLast().allSatisfy { $0.isHexDigit || ":.%".contains($0) }
        }
        // libcurl can look up names that are not ASCII.
        return !host.isEmpty
            && host.unicodeScalars.allSatisfy {
                $0.value > 0x9F || $0.properties.isAlphabetic || ("0"..."9").contains($0)
                    || "-._".unicodeScalars.contains($0)
            }
    }

    /// The address as text, without the path.
    package var origin: String { (isSecure ? "https://" : "http://") + authority }

    /// The host, and the port unless it is the default.
    var authority: String { port == (isSecure ? 443 : 80) ? host : "\(host):\(port)" }

    /// Whether the traffic never leaves this machine.
    package var isLoopback: Bool { RemoteAddress.isLoopback(host) }

    func hasSameOrigin(as other: HTTPAddress) -> Bool {
        (isSecure, host, port) == (other.isSecure, other.host, other.port)
    }

    /// Resolves a `Location` header against this address (RFC 3986); `nil` if the result isn't an HTTP address, or
    /// contains a user.
    @BusActor
    func resolving(_ location: String, by curl: Curl) -> HTTPAddress? {
        // libcurl would resolve these to the folder.
        if location.isEmpty || location.hasPrefix("#") { return self }
        return curl.resolve(location, from: description).flatMap { HTTPAddress($0) }
    }
}

extension HTTPAddress: CustomStringConvertible {
    /// The address as text.
    package var description: String { origin + path }
}
