// SPDX-License-Identifier: Apache-2.0

/// Says that one key of an account leads to another, with a proof that whoever said so had the first.
package typealias KeyLink = KeyNote<LinkKind>

/// How one key leads to another.
package enum LinkKind: UInt8, NoteKind {
    /// The second was made in the place of the first.
    case replaced = 1
    /// A device had the first, and has gone over to the second.
    case joined = 2
    /// A device that was moving the account to the first has given way to the second. Its marker may come back: servers
    /// and folders undo what was removed. What anybody may have put there makes a device give way, so this decides
    /// which marker counts, and shuts nobody out who has a key.
    case gaveWay = 4
}
