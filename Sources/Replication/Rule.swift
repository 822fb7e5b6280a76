// SPDX-License-Identifier: Apache-2.0

#if RuleSwitches
    internal import Synchronization
#endif

/// A rule of sync that a simulation can switch off, to show that it would notice.
///
/// Only in builds with the trait `RuleSwitches`; in all others a rule is on, and asking costs nothing.
package enum Rule: String, CaseIterable, Sendable {
    /// An entry that a version vector has seen and its state no longer holds is gone.
    case vectors
    /// Causality decides before the stamps do.
    case causalityFirst = "causality-first"
    /// States that are new together lose nothing to what one of them, or the state here, knows to be gone.
    case allAtOnce = "all-at-once"
    /// A write's stamp follows the stamp that it replaces.
    case successors
    /// Values that were written before the account's values arrived give way to them.
    case provisional
    /// A disk that `/run` does not know has a new origin.
    case freshOrigins = "fresh-origins"
    /// A publication is counted before it leaves, so that the head is known as this device's under another origin.
    case recordFirst = "record-first"
    /// Data is on the device's disk before it leaves the device.
    case syncFirst = "sync-first"
    /// A device that finds a clone under its origin takes another origin.
    case leaveClones = "leave-clones"
    /// If another state has seen this device's write, and has in its place an entry that lost to that write here, its
    /// dot named another write there: a clone's.
    case seenReplacements = "seen-replacements"
    /// A head that the database has counted was written by the previous process, whatever a listing says.
    case countedHeads = "counted-heads"
    /// Exactly what was uploaded is marked as published.
    case exactMarks = "exact-marks"
    /// A state is joined only with all of its segments.
    case wholeStates = "whole-states"
    /// Segments are written before the head that names them.
    case segmentsFirst = "segments-first"
    /// Only heads under origins that no device uses any more are removed.
    case retiredHeads = "retired-heads"
    /// Another device's head stays until it has not changed for a month.
    case headsStay = "heads-stay"
    /// Another device's head is removed only if this device has published everything in it.
    case knownHeads = "known-heads"
    /// A segment that no head names stays for a week.
    case segmentsStay = "segments-stay"
    /// A segment that a device has replaced stays as long where each object travels by itself.
    case replacedStay = "replaced-stay"
    /// A segment that any head names stays.
    case namedSegments = "named-segments"
    /// Receiving never causes an upload.
    case noEcho = "no-echo"
    /// Received changes are published after a day at the latest.
    case dailyHead = "daily-head"
    /// Entries that must not be shown are passed on.
    case passOn = "pass-on"
    /// A tombstone that the remote does not have is kept.
    case keepPending = "keep-pending"
    /// Devices publish again what they have joined from a head that has disappeared since.
    case lostHeads = "lost-heads"
    /// A version vector keeps the origins of entries that are gone.
    case keepOrigins = "keep-origins"

    /// In a cluster, a transaction is made only if the account has not changed since the device read it.
    case oneOrder = "one-order"
    /// In a cluster, a device that finds another history than the one it knows reads and publishes everything.
    case knownHistory = "known-history"
    /// In a cluster, an entry is written before the version vector that covers it.
    case entriesFirst = "entries-first"
    /// In a cluster, a device asks for changes since the account's last transaction, not since the cluster's.
    case accountRevision = "account-revision"
    /// In a cluster, data that was read is used only if it belongs to the history that was polled.
    case sameHistory = "same-history"
    /// In a cluster, a device that has left an origin reads everything again.
    case readAnew = "read-anew"

    /// An encrypted account without its key is never treated as unencrypted.
    case neverPlain = "never-plain"
    /// The kind and the origin that a sealed blob states can't be changed.
    case boundHeader = "bound-header"
    /// Where a sealed marker exists, unencrypted ones do not count.
    case encryptedWins = "encrypted-wins"
    /// A marker says which keys its own key replaced.
    case markerLinks = "marker-links"
    /// Notes say which key replaced another.
    case notes
    /// A link says whether its second key was created to replace the first.
    case linkKinds = "link-kinds"
    /// A link from a device's own key counts only if a holder of that key has made it.
    case provenLinks = "proven-links"
    /// A device leaves its key if a holder of that key has replaced it with one that has a marker, whatever other links
    /// say.
    case provenSuccessors = "proven-successors"
    /// Notes give the names that the account had before its key.
    case formerNames = "former-names"
    /// An account that a device has left is also found by the names that it had on that device.
    case ownNames = "own-names"
    /// An unencrypted account that a device has left is also found by the encrypted one that replaced it.
    case plainSuccessor = "plain-successor"
    /// A move gives way to another key that has become the account's.
    case giveWay = "give-way"
    /// A device saves the key that it moves to before any other device learns of it.
    case keyFirst = "key-first"
    /// Once others have learnt of a move, its device reads the former form to the end before it
    /// switches to the key.
    case joinAgain = "join-again"
    /// A device that has switched to a key publishes everything under it.
    case publishAnew = "publish-anew"
    /// A move removes only the account's own data.
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
