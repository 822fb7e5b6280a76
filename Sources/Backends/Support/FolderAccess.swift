// SPDX-License-Identifier: Apache-2.0

/// Whose folder may be used.
public enum FolderAccess: Equatable, Sendable {
    /// Any folder that belongs to a user.
    case own(uid: UInt32)
    /// The folder of a user in one of these.
    case roots([String], uid: UInt32)
}
