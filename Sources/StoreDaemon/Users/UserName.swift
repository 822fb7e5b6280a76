// SPDX-License-Identifier: Apache-2.0

internal import Files

/// The names of the machine's users.
enum UserName {
    /// Returns a user's name, if it can be looked up. This takes as long as a directory service does, so don't call it
    /// on the bus's thread.
    static func name(of uid: UInt32) -> String? {
        if case .known(let entry) = UserEntry.lookUp(.uid(uid)) { entry.name } else { nil }
    }

    /// Returns a user's name, if it can be looked up within a moment.
    static func nameAtOnce(of uid: UInt32) -> String? {
        if case .known(let entry) = UserLookup.shared.entry(.uid(uid)) { entry.name } else { nil }
    }

    /// Returns the user for a sentence, by name and user id.
    static func text(of uid: UInt32) -> String { text(nameAtOnce(of: uid), uid) }

    /// Returns a user for a sentence.
    static func text(_ name: String?, _ uid: UInt32) -> String { name.map { "\($0) (\(uid))" } ?? "the user \(uid)" }
}
