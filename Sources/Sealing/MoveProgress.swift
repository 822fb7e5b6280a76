// SPDX-License-Identifier: Apache-2.0

// What remains to be done for an account that moves to a key, or has moved. It is decided from what is on the disk and
// what the last sync cycle has found, so the service can be stopped anywhere: no I/O, no clock. While the former form
// is read, KeyMove decides what to do in the remote.

internal import Replication

/// The next step of a move.
package enum MoveProgress: Equatable {
    /// Do nothing now.
    case wait
    /// Forget the new key, because another one has become the account's.
    case giveWay
    /// Make the new key the account's, because the former form is read to its end.
    case adoptKey
    /// Let the phrase be shown, because the remote has everything of this device under the key.
    case confirm
    /// Remove what is left of former forms.
    case removeFormerForms

    /// How far the account has come under its key.
    package struct Standing {
        /// The account's former forms.
        package var former: FormerForms
        /// When the remote was found to have everything of this device under the key, in microseconds since 1970.
        package var published: UInt64?
        /// Whether the user has seen the recovery phrase.
        package var wasShown: Bool
        /// When leftovers of former forms were last removed, in microseconds since 1970.
        package var tidied: UInt64?

        package init(former: FormerForms, published: UInt64?, wasShown: Bool, tidied: UInt64?) {
            (self.former, self.published, self.wasShown, self.tidied) = (former, published, wasShown, tidied)
        }
    }

    /// What the last sync cycle has found.
    package struct Facts {
        /// The device's clock's time, in microseconds since 1970.
        package var time: UInt64
        /// Whether the remote holds an account under a key that this device doesn't have.
        package var needsKey: Bool
        /// Whether everything in the remote that can be read was joined.
        package var hasReadAll: Bool
        /// Whether something in the remote can't be read.
        package var hasUnread: Bool
        /// Whether everything of this device was found in the remote.
        package var isPublished: Bool

        package init(time: UInt64, needsKey: Bool, hasReadAll: Bool, hasUnread: Bool, isPublished: Bool) {
            (self.time, self.needsKey) = (time, needsKey)
            (self.hasReadAll, self.hasUnread, self.isPublished) = (hasReadAll, hasUnread, isPublished)
        }

        /// Whether the former form is read to its end.
        /// - Parameter begun: when the key was made, in microseconds since 1970.
        package func areAllRead(since begun: UInt64) -> Bool {
            hasReadAll && (!hasUnread || distance(time, begun) >= MoveProgress.arrival)
        }
    }

    /// How long something that can't be read may still be arriving: an hour, in microseconds.
    package static let arrival: UInt64 = 3_600_000_000

    /// How long other devices have to notice a move before former forms are removed: ten minutes, in microseconds.
    package static let patience: UInt64 = 600_000_000

    /// Decides on the next step.
    /// - Parameters:
    ///   - begun: when the key was made to which the account is moving; `nil` if no move is under way.
    ///   - key: the state of the account under its key; `nil` if it has no key, or is moving to one.
    package static func next(movingSince begun: UInt64?, key: Standing?, _ facts: Facts) -> MoveProgress {
        if let begun {
            let isRead = facts.areAllRead(since: begun) || !Rule.joinAgain.isOn
            return facts.needsKey ? .giveWay : isRead ? .adoptKey : .wait
        }
        guard let key, !key.former.isEmpty else { return .wait }
        guard let published = key.published else { return facts.isPublished ? .confirm : .wait }
        let isDue = key.tidied.map { SyncCycle.isDayAway(facts.time, from: $0) } ?? true
        guard isDue, key.wasShown, facts.isPublished, distance(facts.time, published) >= patience else { return .wait }
        return .removeFormerForms
    }
}

/// Returns how far two times are apart, in either order, since a clock may have been wrong.
private func distance(_ a: UInt64, _ b: UInt64) -> UInt64 { max(a, b) - min(a, b) }
