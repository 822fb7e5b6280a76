// SPDX-License-Identifier: Apache-2.0

/// The folders that may be used.
public enum FolderAccess: Equatable, Sendable {
    /// Any folder that belongs to a user.
    case own(uid: UInt32)
    /// A user's folder in one of these roots.
    case roots([String], uid: UInt32)
}
