// SPDX-License-Identifier: Apache-2.0

internal import PlaceAddress

/// The account that an administrator has ready for each user.
public struct DefaultAccount: Equatable, Sendable {
    /// Where it lives; `%u` stands for the user's name, `%U` for the number, `%%` for `%`.
    public var address = ""
    /// A file with the certificates to trust for its server, in PEM; `nil`: those of the system.
    public var authorityFile: String?

    /// Where a user's account lives; `nil` where there is none, or the user has no name.
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

    /// Whether an address says nothing that can't be expanded.
    static func isAddress(_ text: Substring) -> Bool {
        var rest = text
        while let percent = rest.firstIndex(of: "%") {
            rest = rest[rest.index(after: percent)...]
            guard let next = rest.popFirst(), "uU%".contains(next) else { return false }
        }
        return PlaceKind.schemes.contains { text.hasPrefix($0 + "://") } && !text.contains { $0.isWhitespace }
    }
}
