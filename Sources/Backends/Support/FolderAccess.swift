// SPDX-License-Identifier: Apache-2.0

package import Files

/// The folders that a user may use.
package enum FolderAccess: Sendable {
    /// Any folder that belongs to the user, but none in the directory of the service's own data, if that is given.
    case own(uid: UInt32, besides: String? = nil)
    /// The user's folder in one of these roots. A user's name is looked up with the last.
    case roots([String], uid: UInt32, lookUp: @Sendable (UserEntry.Key) -> UserEntry.Answer = UserEntry.lookUp)

    /// The user.
    package var uid: UInt32 {
        switch self {
        case .own(let uid, _), .roots(_, let uid, _): uid
        }
    }
}
