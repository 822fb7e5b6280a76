// SPDX-License-Identifier: Apache-2.0

/// The folders that a user may use.
package enum FolderAccess: Equatable, Sendable {
    /// Any folder that belongs to the user.
    case own(uid: UInt32)
    /// The user's folder in one of these roots.
    case roots([String], uid: UInt32)

    /// The user.
    package var uid: UInt32 {
        switch self {
        case .own(let uid), .roots(_, let uid): uid
        }
    }
}
