// SPDX-License-Identifier: Apache-2.0

// What is still to be done for an account that moves to a key, or has moved. It is decided from what is on the disk and
// what the last sync cycle has found, so that it does not matter where the service was stopped: no I/O, no clock. What
// is to be done in the remote while the former form is read is KeyMove's to decide.

internal import Replication
internal import Sealing

/// The next step of a move.
enum MoveProgress: Equatable {
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

    /// What the last sync cycle has found.
    struct Facts {
        /// By the device's clock, in microseconds since 1970.
        var time: UInt64
        /// The remote holds an account under a key that is not here.
        var needsKey: Bool
        /// All of the remote was read, and nothing was skipped.
        var hasReadAll: Bool
        /// What this device has was found in the remote.
        var isPublished: Bool
    }

    /// How long others have to notice a move before what they may still be reading goes.
    static let patience: UInt64 = 600_000_000

    /// Decides.
    /// - Parameters:
    ///   - isMoving: the account is still in its former form.
    ///   - key: that of the account; `nil` if it has none, or is moving to one.
    static func next(isMoving: Bool, key: AccountKeyFile?, _ facts: Facts) -> MoveProgress {
        if isMoving { return facts.needsKey ? .giveWay : facts.hasReadAll ? .goOver : .wait }
        guard let key, !key.former.areNone else { return .wait }
        guard key.stage == .using, let published = key.published else { return facts.isPublished ? .confirm : .wait }
        let isDue = key.tidied.map { SyncCycle.isDayAway(facts.time, from: $0) } ?? true
        guard isDue, key.wasShown, facts.hasReadAll, distance(facts.time, published) >= patience else { return .wait }
        return .removeFormerForms
    }

    /// Also where a clock was wrong.
    private static func distance(_ a: UInt64, _ b: UInt64) -> UInt64 { max(a, b) - min(a, b) }
}
