// SPDX-License-Identifier: Apache-2.0

/// Says that one key of an account leads to another, with a proof that whoever said so had the first.
package typealias KeyLink = KeyNote<LinkKind>

/// How one key leads to another.
package enum LinkKind: UInt8, NoteKind {
    /// The second was made in the place of the first.
    case replaced = 1
    /// A device had the first, and has gone over to the second.
    case joined = 2
}
