// SPDX-License-Identifier: Apache-2.0

/// A note that an account had another identifier before its present key: the one that it had when it was unencrypted,
/// or that of a former key.
///
/// By such a note, a device that had left the account recognizes the data that it still holds of it. Only a holder of
/// the key can write one, because whatever a device holds under that identifier is uploaded to the account.
package typealias FormerName = KeyNote<FormerNameKind>

/// The only kind of such a note.
package enum FormerNameKind: UInt8, NoteKind {
    case known = 3
}

extension FormerName {
    /// Makes a note that the account of a key was known by another identifier.
    package init(_ name: KeyIdentifier, of key: AccountKey) { self.init(from: key, to: name, .known) }

    /// The account's key.
    package var key: KeyIdentifier { first }

    /// The account's former identifier.
    package var name: KeyIdentifier { second }
}
