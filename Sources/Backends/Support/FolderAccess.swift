// SPDX-License-Identifier: Apache-2.0

/// The folders that may be used.
public enum FolderAccess: Equatable, Sendable {
    /// Any folder that belongs to a user.
    case own(uid: UInt32)
    /// A user's folder in one of these roots.
    case roots([String], uid: UInt32)

    /// The user whose folders they are.
    package var uid: UInt32 {
        switch self {
        case .own(let uid), .roots(_, let uid): uid
        }
    }
}
