// SPDX-License-Identifier: Apache-2.0

#if RuleSwitches
    internal import Synchronization
#endif

/// A rule of sync that a simulation can switch off, to show that it would notice.
///
/// Only in builds with the trait `RuleSwitches`; in all others a rule is on, and asking costs nothing.
package enum Rule: String, CaseIterable, Sendable {
    /// What a version vector has seen and its state no longer holds is gone.
    case vectors
    /// Causality decides before the stamps do.
    case causalityFirst = "causality-first"
    /// States that are new together lose nothing to what one of them, or the state here, knows to be gone.
    case allAtOnce = "all-at-once"
    /// A write's stamp follows the stamp that it replaces.
    case successors
    /// What was written before the account's values arrived gives way to them.
    case provisional
    /// A disk that `/run` does not know has a new origin.
    case freshOrigins = "fresh-origins"
    /// A publication is counted before it leaves, so that the head is known as this device's under another origin.
    case recordFirst = "record-first"
    /// What leaves the device is on its disk before.
    case syncFirst = "sync-first"
    /// A device that finds a clone under its origin takes another origin.
    case leaveClones = "leave-clones"
    /// An own write that others have seen, and replaced by what was seen here and gave way, was not the same write.
    case seenReplacements = "seen-replacements"
    /// A head that the database has counted is of the process before, whatever a listing says.
    case countedHeads = "counted-heads"
    /// Exactly what was uploaded is marked as published.
    case exactMarks = "exact-marks"
    /// A state is joined once all of its segments are there.
    case wholeStates = "whole-states"
    /// Segments are written before the head that names them.
    case segmentsFirst = "segments-first"
    /// Only heads under origins that are no longer written under are removed.
    case retiredHeads = "retired-heads"
    /// Another device's head stays until it has not changed for a month.
    case headsStay = "heads-stay"
    /// Another device's head is removed only if all in it is in what this device has published.
    case knownHeads = "known-heads"
    /// A segment that no head names stays for a week.
    case segmentsStay = "segments-stay"
    /// A segment that a device has replaced stays as long where each object travels by itself.
    case replacedStay = "replaced-stay"
    /// A segment that any head names stays.
    case namedSegments = "named-segments"
    /// Receiving never causes an upload.
    case noEcho = "no-echo"
    /// What was received is published after a day at the latest.
    case dailyHead = "daily-head"
    /// What must not be shown is passed on.
    case passOn = "pass-on"
    /// A tombstone that the remote does not have is kept.
    case keepPending = "keep-pending"
    /// What was joined from a head that is gone since is published by those who have it.
    case lostHeads = "lost-heads"
    /// A version vector keeps the origins of entries that are gone.
    case keepOrigins = "keep-origins"

    /// In a cluster, a transaction is made if the account is as its maker has seen it.
    case oneOrder = "one-order"
    /// In a cluster, a device that finds another history than the one it knows reads and publishes everything.
    case knownHistory = "known-history"
    /// In a cluster, an entry is written before the version vector that covers it.
    case entriesFirst = "entries-first"
    /// In a cluster, what has changed is asked for since the account's last transaction, not since the cluster's.
    case accountRevision = "account-revision"
    /// In a cluster, what was read is used if it is of the history that was looked at.
    case sameHistory = "same-history"
    /// In a cluster, a device that has left an origin reads everything anew.
    case readAnew = "read-anew"

    /// An encrypted account whose key is not here is not taken for one in plain.
    case neverPlain = "never-plain"
    /// What a sealed blob says it is, and of which origin, can't be changed.
    case boundHeader = "bound-header"
    /// Where a sealed marker is, plain ones do not count.
    case encryptedWins = "encrypted-wins"
    /// Markers say which keys theirs came after.
    case markerLinks = "marker-links"
    /// Notes say which key came after another.
    case notes
    /// A link says whether its second key was made in the place of the first.
    case linkKinds = "link-kinds"
    /// A link from a device's own key counts only if a holder of that key has made it.
    case provenLinks = "proven-links"
    /// A key that a holder of it has replaced by one that is there is left, wherever others lead that one.
    case provenSuccessors = "proven-successors"
    /// Notes say what the account was called before it was under its key.
    case formerNames = "former-names"
    /// An account that a device has left is found by the names that it had on that device, too.
    case ownNames = "own-names"
    /// So it is by the encrypted account that was found in the place of one in plain.
    case plainSuccessor = "plain-successor"
    /// A move gives way to another key that has become the account's.
    case giveWay = "give-way"
    /// A device keeps the key that it moves to before anybody learns of it.
    case keyFirst = "key-first"
    /// Once others have learnt of a move, its device reads the former form to the end before it goes over.
    case joinAgain = "join-again"
    /// A device that has gone over to a key publishes everything under it.
    case publishAnew = "publish-anew"
    /// What a move removes is the account's own.
    case ownLeftovers = "own-leftovers"

    #if RuleSwitches
        private static let off = Mutex<Set<Rule>>([])

        /// Whether the rule holds.
        package var isOn: Bool { !Self.off.withLock { $0.contains(self) } }

        /// Switches rules off, and all others on.
        package static func switchOff(_ rules: Set<Rule>) { off.withLock { $0 = rules } }
    #else
        /// Whether the rule holds: always.
        @inlinable package var isOn: Bool { true }
    #endif
}
