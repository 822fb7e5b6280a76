// SPDX-License-Identifier: Apache-2.0

/// The names of the machine's users.
enum UserName {
    /// Returns a user's name, if it can be looked up. This takes as long as a directory service does, so don't call it
    /// on the bus's thread.
    static func name(of uid: UInt32) -> String? { UserEntry(.uid(uid))?.name }

    /// Returns a user's name, if it can be looked up within a moment.
    static func nameAtOnce(of uid: UInt32) -> String? {
        if case .known(let entry) = UserLookup.shared.entry(.uid(uid)) { entry?.name } else { nil }
    }

    /// Returns the id of the user of a name; `nil` if there is none.
    /// - Throws: ``Late`` if it can't be looked up within a moment.
    static func uidAtOnce(of name: String) throws(Late) -> UInt32? {
        guard case .known(let entry) = UserLookup.shared.entry(.name(name)) else { throw Late() }
        return entry?.uid
    }

    /// The lookup of a user has not finished yet.
    struct Late: Error {}

    /// Returns the user for a sentence, by name and user id.
    static func text(of uid: UInt32) -> String { text(nameAtOnce(of: uid), uid) }

    /// Returns a user for a sentence.
    static func text(_ name: String?, _ uid: UInt32) -> String { name.map { "\($0) (\(uid))" } ?? "the user \(uid)" }
}
