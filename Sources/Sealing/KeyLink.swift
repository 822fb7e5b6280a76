// SPDX-License-Identifier: Apache-2.0

/// A statement that one key of an account leads to another, with a proof that its author had the first.
package typealias KeyLink = KeyNote<LinkKind>

/// How one key leads to another.
package enum LinkKind: UInt8, NoteKind {
    /// The second key has replaced the first.
    case replaced = 1
    /// A device that had the first key has joined the second.
    case joined = 2
    /// A device that was moving the account to the first key has given way to the second. Since servers and folders may
    /// bring back its marker, the link decides which marker counts. But anyone who can write to the remote can make a
    /// device give way, so the link locks out nobody who has a key.
    case gaveWay = 4
}
