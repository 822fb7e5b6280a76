// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A proxy that the environment names.
package struct HTTPProxy: Equatable, Sendable {
    /// The proxy's host, with the port if one is given.
    package let place: String
    /// The variable that names the proxy: `https_proxy`, `all_proxy`…
    package let variable: String

    init(place: String, variable: String) { (self.place, self.variable) = (place, variable) }

    /// Parses libcurl's message that it uses a proxy. The message has the variable's name and its whole value,
    /// including the proxy's password.
    init?(said text: String) {
        guard text.hasPrefix(Self.beginning), let middle = text.firstRange(of: " == '") else { return nil }
        variable = String(text[..<middle.lowerBound].dropFirst(Self.beginning.count))
        guard variable.lowercased() != "no_proxy" else { return nil }
        let value = text[middle.upperBound...].prefix { !$0.isNewline }.dropLast()
        let authority = value.firstRange(of: "://").map { value[$0.upperBound...] } ?? value
        let host = authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
        place = String(host.prefix { $0 != "/" })
    }

    private static let beginning = "Uses proxy env variable "

    /// Whether any variable is set, so that libcurl's messages need parsing.
    static var isInEnvironment: Bool {
        ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"].contains { (name: String) in
            getenv(name) != nil
        }
    }
}

extension HTTPProxy: CustomStringConvertible {
    /// The proxy as part of a sentence.
    package var description: String { "\(place) (\(variable))" }
}
