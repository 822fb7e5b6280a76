// SPDX-License-Identifier: Apache-2.0

internal import RemoteAddress

/// The account that an administrator offers to each user.
package struct DefaultAccount: Equatable, Sendable {
    /// The account's URL: `%u` stands for the user's name, `%U` for the user id, `%%` for `%`.
    package var address = ""
    /// A file with the certificates to trust for the account's server, in PEM; `nil` if the system's are trusted.
    package var authorityFile: String?

    /// Returns the URL of a user's account; `nil` if there is none, or it needs a name and the user has none.
    func address(user: String?, uid: UInt32) -> String? {
        var expanded = ""
        var rest = address[...]
        while let character = rest.popFirst() {
            guard character == "%" else {
                expanded.append(character)
                continue
            }
            switch rest.popFirst() {
            case "u": guard let user else { return nil }; expanded += PercentCoding.encode(user)
            case "U": expanded += "\(uid)"
            default: expanded += "%"
            }
        }
        return expanded.isEmpty ? nil : expanded
    }

    /// Whether an address has only placeholders that can be expanded, a known scheme, and no white space.
    static func isAddress(_ text: Substring) -> Bool {
        var rest = text
        while let percent = rest.firstIndex(of: "%") {
            rest = rest[rest.index(after: percent)...]
            guard let next = rest.popFirst(), "uU%".contains(next) else { return false }
        }
        return BackendKind.schemes.contains { text.hasPrefix($0 + "://") } && !text.contains { $0.isWhitespace }
    }
}
