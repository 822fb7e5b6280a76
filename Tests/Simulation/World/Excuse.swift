// SPDX-License-Identifier: Apache-2.0

/// What the judgement lets pass. docs/simulation.md has the reason for each.
///
/// Losses count the writes that may be gone, whether or not they are. Everything else counts how often the judgement
/// would have reported something without the excuse, or what it has not looked at.
public enum Excuse: String, CaseIterable, Sendable {
    // Losses, by what destroyed the only copy of a write.
    case powerCut = "power cut"
    case restoredBackup = "restored backup"
    case revertedMachine = "machine reverted"
    case lostDevice = "lost device"
    case clearedAccount = "account cleared"
    case removedStore = "store removed"
    case leftAccount = "account left"

    // Keys, in the end.
    case greatestLost = "greatest write lost"
    case shownLost = "lost value shown"
    case removedBack = "removed value back"
    case ignoredOrigins = "stamps without origins"
    case removedDefault = "default removed"
    case copiedDefault = "copied default shown"
    case copiedValue = "copied value shown"

    // What devices hold and show.
    case olderValue = "older value shown"
    case sharedDot = "dot of two writes"
    case goneAfterFork = "covered write gone after a fork"
    case goneAfterForgetting = "covered write gone after forgetting"
    case forgottenEntries = "entries differ after forgetting"
    case earlyTombstones = "tombstones differ by a clock"
    case lostRecord = "hidden record lost"
    case reportedDamage = "damage still reported"
    case attackedKeys = "keys differ under attack"

    // Heads and publications.
    case foreignHead = "foreign head"
    case moreHeads = "more heads"
    case publishedAfterLoss = "published after a loss"
    case publishedAfterCopy = "published after a copy"
    case publishedForShortHistory = "published for a short history"
    case unplayedHead = "old head left out"
    case lostBack = "lost write back"
    case otherDots = "equal under other dots"

    // Time that passes before anything is judged.
    case dayWaited = "day waited"
    case monthWaited = "month waited"

    /// Whether this is a loss.
    public var isLoss: Bool {
        switch self {
        case .powerCut, .restoredBackup, .revertedMachine, .lostDevice, .clearedAccount, .removedStore, .leftAccount:
            true
        default: false
        }
    }
}
