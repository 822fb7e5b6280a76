// SPDX-License-Identifier: Apache-2.0

/// A note that an account was known by another identifier before it was under its key: the one that it had in plain, or
/// that of a former key.
///
/// A device that had left the account by then finds what it has of it again. Only a holder of the key can say so:
/// whatever is here under that identifier is uploaded to the account.
package typealias FormerName = KeyNote<FormerNameKind>

/// The one thing that such a note says.
package enum FormerNameKind: UInt8, NoteKind {
    case known = 3
}

extension FormerName {
    /// Says that the account of a key was known by another identifier.
    package init(_ name: KeyIdentifier, of key: AccountKey) { self.init(from: key, to: name, .known) }

    /// The account's key.
    package var key: KeyIdentifier { first }

    /// What the account was called before.
    package var name: KeyIdentifier { second }
}
