// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import RemoteAddress
internal import SDBus

/// The credentials that a user signs in with. They never appear in a log, an error or a property.
package struct BackendCredentials: Equatable, Sendable, Codable {
    /// The user name.
    package var user: String?
    /// The password.
    package var password: String?
    /// The bearer token.
    package var token: String?
    /// The certificates of a private authority, in PEM.
    package var certificateAuthority: [UInt8]?

    /// Fills in missing credentials from others. A password counts as a token here, and a token as a password.
    func completed(by others: BackendCredentials) -> BackendCredentials {
        var credentials = self
        credentials.user = user ?? others.user
        if password == nil, token == nil { (credentials.password, credentials.token) = (others.password, others.token) }
        credentials.certificateAuthority = certificateAuthority ?? others.certificateAuthority
        return credentials
    }

    /// Returns a text without the secrets, as far as these are long enough not to be in any text.
    func removed(from text: String) -> String {
        let pair = password.map { Data("\(user ?? ""):\($0)".utf8).base64EncodedString() }
        return [pair, password, token].compactMap(\.self).filter { $0.count >= 4 }
            .reduce(text) { $0.replacingOccurrences(of: $1, with: "…") }
    }

    /// Refuses values that can't be credentials, because they would be stored.
    func check() throws(BusError) {
        for (name, secret) in [("user", user), ("password", password), ("token", token)] {
            guard let secret else { continue }
            if secret.utf8.count > 8192 {
                throw .invalidArguments("The option \"\(name)\" may have at most 8192 bytes.")
            }
            if secret.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) {
                throw .invalidArguments(
                    "The option \"\(name)\" contains a control character, such as a line feed. Leave it out.")
            }
        }
        if let certificateAuthority, !Self.isBounded(authority: certificateAuthority) {
            throw Self.tooMuchAuthority
        }
    }

    /// The error for certificates that are too many or too long.
    static let tooMuchAuthority = BusError.invalidArguments("The option \"ca-pem\" has \(authorityBound).")
    /// The most bytes of certificates.
    static let longestAuthority = 64 << 10

    /// Whether certificates are few enough: the event loop decodes them again for each connection.
    package static func isBounded(authority: [UInt8]) -> Bool {
        authority.count <= longestAuthority && PEM.blocks(in: authority) <= 16
    }

    /// What a sentence says that refuses certificates.
    package static let authorityBound =
        "64 KiB and 16 certificates at most; give only those of the server's authority"
}

extension BackendCredentials {
    init(_ options: [String: Option]) {
        self.init(
            user: options.string("user"), password: options.string("password"), token: options.string("token"),
            certificateAuthority: options.bytes("ca-pem"))
    }
}
