// SPDX-License-Identifier: Apache-2.0

/// The names of the machine's users.
enum UserName {
    /// The user's name, if it can be looked up. That may take as long as a directory service does: not for the bus's
    /// thread.
    static func name(of uid: UInt32) -> String? { UserEntry(.uid(uid))?.name }

    /// The user's name, if it can be looked up within a moment.
    static func nameAtOnce(of uid: UInt32) -> String? {
        if case .known(let entry) = UserLookup.shared.entry(.uid(uid)) { entry?.name } else { nil }
    }

    /// The number of the user of a name, if there is one.
    /// - Throws: ``Late`` if it can't be told within a moment.
    static func uidAtOnce(of name: String) throws(Late) -> UInt32? {
        guard case .known(let entry) = UserLookup.shared.entry(.name(name)) else { throw Late() }
        return entry?.uid
    }

    /// The machine's users can't be looked up at the moment.
    struct Late: Error {}

    /// The user in a sentence, by name and number.
    static func text(of uid: UInt32) -> String { text(nameAtOnce(of: uid), uid) }

    /// A user in a sentence.
    static func text(_ name: String?, _ uid: UInt32) -> String { name.map { "\($0) (\(uid))" } ?? "the user \(uid)" }
}
