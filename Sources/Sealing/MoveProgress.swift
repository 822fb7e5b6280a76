// SPDX-License-Identifier: Apache-2.0

// What is still to be done for an account that moves to a key, or has moved. It is decided from what is on the disk and
// what the last sync cycle has found, so that it does not matter where the service was stopped: no I/O, no clock. What
// is to be done in the remote while the former form is read is KeyMove's to decide.

internal import Replication

/// The next step of a move.
package enum MoveProgress: Equatable {
    /// Nothing now.
    case wait
    /// Another key has become the account's: forget this one.
    case giveWay
    /// The former form is read to its end: the key becomes the account's.
    case goOver
    /// What this device has is in the remote under the key: the phrase may be told.
    case confirm
    /// What is left of former forms may go.
    case removeFormerForms

    /// How far the account has come under its key.
    package struct Standing {
        /// What the account was before.
        package var former: FormerForms
        /// When it was found that what this device has is in the remote under the key, in microseconds since 1970.
        package var published: UInt64?
        /// The user has seen the recovery phrase.
        package var wasShown: Bool
        /// When what is left of former forms was removed last.
        package var tidied: UInt64?

        package init(former: FormerForms, published: UInt64?, wasShown: Bool, tidied: UInt64?) {
            (self.former, self.published, self.wasShown, self.tidied) = (former, published, wasShown, tidied)
        }
    }

    /// What the last sync cycle has found.
    package struct Facts {
        /// By the device's clock, in microseconds since 1970.
        package var time: UInt64
        /// The remote holds an account under a key that is not here.
        package var needsKey: Bool
        /// All of the remote that can be read was joined.
        package var hasReadAll: Bool
        /// Something there can't be read.
        package var hasUnread: Bool
        /// What this device has was found in the remote.
        package var isPublished: Bool

        package init(time: UInt64, needsKey: Bool, hasReadAll: Bool, hasUnread: Bool, isPublished: Bool) {
            (self.time, self.needsKey) = (time, needsKey)
            (self.hasReadAll, self.hasUnread, self.isPublished) = (hasReadAll, hasUnread, isPublished)
        }

        /// Whether the former form is read to its end.
        /// - Parameter begun: when the key was made.
        package func areAllRead(since begun: UInt64) -> Bool {
            hasReadAll && (!hasUnread || distance(time, begun) >= MoveProgress.arrival)
        }
    }

    /// How long what can't be read may still be arriving.
    package static let arrival: UInt64 = 3_600_000_000

    /// How long others have to notice a move before what they may still be reading goes.
    package static let patience: UInt64 = 600_000_000

    /// Decides.
    /// - Parameters:
    ///   - begun: when the key was made that the account is moving to; `nil` if it is not in its former form.
    ///   - key: that of the account; `nil` if it has none, or is moving to one.
    package static func next(movingSince begun: UInt64?, key: Standing?, _ facts: Facts) -> MoveProgress {
        if let begun {
            let isRead = facts.areAllRead(since: begun) || !Rule.joinAgain.isOn
            return facts.needsKey ? .giveWay : isRead ? .goOver : .wait
        }
        guard let key, !key.former.areNone else { return .wait }
        guard let published = key.published else { return facts.isPublished ? .confirm : .wait }
        let isDue = key.tidied.map { SyncCycle.isDayAway(facts.time, from: $0) } ?? true
        guard isDue, key.wasShown, facts.isPublished, distance(facts.time, published) >= patience else { return .wait }
        return .removeFormerForms
    }
}

/// How far two times are apart, also where a clock was wrong.
private func distance(_ a: UInt64, _ b: UInt64) -> UInt64 { max(a, b) - min(a, b) }
