// SPDX-License-Identifier: Apache-2.0

/// Whose something is that is kept under a user's id, with the user's name recorded beside it. The id may have been given
/// to another person since.
package enum RecordedOwner: Equatable, Sendable {
    /// The user's, who has this name.
    case user(name: String)
    /// The user's, as far as is known: the system knows no user of this id, which proves nothing.
    case nameless
    /// The user's, as far as is known: the name can't be looked up now, which proves nothing.
    case perhapsUser
    /// That of another user, who had the user id before.
    case former(String, now: String)
    /// Perhaps a former user's. Nobody gets it until that is known.
    case perhapsFormer

    /// Finds out whose it is.
    ///
    /// If the recorded name still leads to the user id, it is another form of the same user's name, as directory services
    /// have several.
    /// - Parameters:
    ///   - recorded: the recorded name; `nil` if there is none.
    ///   - lookUp: looks up a user.
    package init(of uid: UInt32, recorded: String?, lookUp: (UserEntry.Key) -> UserEntry.Answer) {
        switch lookUp(.uid(uid)) {
        case .known(let user):
            // By bytes: to Swift, names in different forms of Unicode are equal.
            guard let recorded, !recorded.utf8.elementsEqual(user.name.utf8) else {
                self = .user(name: user.name)
                return
            }
            switch lookUp(.name(recorded)) {
            case .known(let former) where former.uid == uid: self = .user(name: user.name)
            case .known, .nobody: self = .former(recorded, now: user.name)
            case .unknown, .busy: self = .perhapsFormer
            }
        case .nobody: self = .nameless
        case .unknown: self = .perhapsUser
        case .busy: self = recorded == nil ? .perhapsUser : .perhapsFormer
        }
    }
}
