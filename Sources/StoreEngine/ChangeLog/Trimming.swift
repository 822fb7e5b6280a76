// SPDX-License-Identifier: Apache-2.0

// Removing what is not kept of the past.
//
// Most of what goes is older than the newest values of its key. These rows are known from memory and go without
// anything being read. For what goes by its age or its size, and for tombstones, all changes are gone through.

internal import GRDB
internal import PropertyList
internal import Replication

extension UserDatabase {
    /// What was replaced before this moment is not kept.
    var horizon: UInt64 {
        let now = environment.time()
        return now - min(now, Retention.microseconds)
    }

    /// How far the clock is ahead of what this device has seen of it: a clock that jumps makes no tombstone old.
    var clockDoubt: UInt64 {
        let now = environment.time()
        return watchedTime == 0 ? 0 : now - min(now, watchedTime)
    }

    /// Removes history and tombstones that are not kept any longer, when there is enough of it to be worth while.
    func trim(_ store: Store) {
        trim(store.shared, of: store)
        trim(store.overlay, of: store)
    }

    // What could not be removed now is removed with a later change.
    private func trim(_ replica: Replica, of store: Store) {
        let isPlenty = replica.surplus.count >= Retention.surplus
        if replica.mayHoldTooMuch || (isPlenty && replica.oldestLoss < horizon) {
            try? sift(replica, of: store)
        } else if isPlenty {
            try? removeSurplus(of: replica)
        }
    }

    private func removeSurplus(of replica: Replica) throws(EngineError) {
        let writer = try openWriter
        try write { db in
            try db.saveProgress(of: replica)
            for sequences in replica.surplus.sorted().runs { try writer.remove(sequences, of: replica.id) }
        }
        replica.history.rows -= replica.surplus.count
        replica.surplus = []
    }

    /// Goes through all changes.
    private func sift(_ replica: Replica, of store: Store) throws(EngineError) {
        let writer = try openWriter
        var trimming = Trimming(
            isShared: replica.account > 0, published: replica.published, horizon: horizon, now: environment.time(),
            doubt: clockDoubt)
        try write { db in
            try db.saveProgress(of: replica)
            try ChangeReader.forEachOutline(of: replica.id, db) { trimming.add($0) }
            for sequences in trimming.expendable { try writer.remove(sequences, of: replica.id) }
            let knownFrom = trimming.goneKeys.reduce(store.knownFrom) {
                max($0, replica.records[$1]?.generation ?? 0)
            }
            try db.saveGeneration(store.generation, knownFrom: knownFrom, of: store.id)
            // A reader from before does not hear of what is not known any more: it gets everything.
            trimming.knownFrom = knownFrom
        }
        for key in trimming.goneKeys { replica.replace(key, by: nil) }
        store.knownFrom = trimming.knownFrom
        replica.keep(trimming)
    }
}

extension Replica {
    /// Whether there may be much that is not kept, and is not surplus.
    fileprivate var mayHoldTooMuch: Bool {
        history.rows - surplus.count > max(256, records.count, 2 * kept.history)
            || history.bytes > 2 * Retention.bytesPerStore
            || records.count - usage.keys > 2 * max(Retention.tombstones, kept.empty)
    }

    /// Knows in memory what was kept of the past.
    fileprivate func keep(_ trimming: Trimming) {
        for (key, past) in trimming.past { records[key]?.former = past.kept.reversed() }
        history = trimming.history
        surplus = []
        oldestLoss = trimming.oldestLoss
        kept = (trimming.history.rows, records.count - usage.keys)
    }
}

extension [UInt64] {
    /// The numbers, which are sorted, as ranges without gaps.
    var runs: [ClosedRange<UInt64>] {
        reduce(into: []) { runs, number in
            if let last = runs.last, last.upperBound + 1 == number {
                runs[runs.count - 1] = last.lowerBound...number
            } else {
                runs.append(number...number)
            }
        }
    }
}

/// Decides which of a replica's changes are not kept, told of each of them, newest first.
///
/// Of a key's past the newest values stay; a key that has had no value for long, or is one of too many such keys,
/// goes altogether. The version vector keeps it from coming back. A tombstone that the remote does not have stays, and
/// so does one from the future, which a key that is set again would not get beyond. One of an account ages only by days
/// that this device has seen pass, since whoever was away takes a fresh one that is missing for a clone's doing.
struct Trimming {
    /// The sequences of the changes that are not kept; between those of a range there is none that is kept.
    private(set) var expendable: [ClosedRange<UInt64>] = []
    /// The keys of which nothing is kept.
    private(set) var goneKeys: [Key] = []
    /// The changes that are kept and are not a key's last.
    private(set) var history = (rows: 0, bytes: 0)
    var knownFrom: UInt64 = 0

    private let isShared: Bool
    private let published: UInt64
    private let horizon: UInt64
    private let now: UInt64
    private let doubt: UInt64
    /// What is kept of each key besides its last change.
    private(set) var past: [Key: Past] = [:]
    /// The least time at which something that is kept was replaced or became a tombstone.
    private(set) var oldestLoss = UInt64.max
    private var emptyKeys = 0
    private var bytes: Int
    /// The change before was not kept.
    private var isRun = false

    /// What came after the next change of a key.
    struct Past {
        /// The sequences of the changes that are kept, newest first.
        fileprivate(set) var kept: [UInt64] = []
        fileprivate var replaced: UInt64
        fileprivate var values = 0
        fileprivate var isGone = false
    }

    /// - Parameters:
    ///   - isShared: the replica is an account's.
    ///   - published: the remote has acknowledged every change up to this one.
    ///   - horizon: what was replaced before this moment is not kept.
    ///   - doubt: how far the clock is ahead of what this device has seen of it, in microseconds.
    ///   - bytes: so many of those that a store may have are taken already.
    init(isShared: Bool, published: UInt64, horizon: UInt64, now: UInt64, doubt: UInt64, bytes: Int = 0) {
        (self.isShared, self.published) = (isShared, published)
        (self.horizon, self.now, self.doubt) = (horizon, now, doubt)
        self.bytes = bytes
    }

    mutating func add(_ change: ChangeReader.Outline) {
        // Changed in its place, so that it is looked for once.
        guard let index = past.index(forKey: change.key) else { return addLast(change) }
        let length = change.length ?? 0
        bytes += length
        past.values[index].values += 1
        let former = past.values[index]
        past.values[index].replaced = change.time
        if former.isGone || former.values > Retention.valuesPerKey || bytes > Retention.bytesPerStore
            || former.replaced < horizon
        {
            discard(change)
        } else {
            isRun = false
            history.rows += 1
            history.bytes += length
            past.values[index].kept.append(change.sequence)
            oldestLoss = min(oldestLoss, former.replaced)
        }
    }

    private mutating func addLast(_ change: ChangeReader.Outline) {
        var last = Past(replaced: change.time)
        if change.length == nil {
            emptyKeys += 1
            last.isGone = mayGo(change) && (ageStart(of: change) < horizon || emptyKeys > Retention.tombstones)
        }
        if last.isGone {
            discard(change)
            goneKeys.append(change.key)
        } else {
            isRun = false
            if change.length == nil { oldestLoss = min(oldestLoss, ageStart(of: change)) }
        }
        past[change.key] = last
    }

    /// Since when a key has had no value, as far as that is to be believed: the clock may have been behind then, or
    /// have jumped since.
    private func ageStart(of change: ChangeReader.Outline) -> UInt64 {
        guard isShared, change.cause != .dropped else { return change.time }
        let wall = change.wall.multipliedReportingOverflow(by: 1000)
        let time = max(change.time, wall.overflow ? .max : wall.partialValue)
        return time.addingReportingOverflow(doubt).overflow ? .max : time + doubt
    }

    private mutating func discard(_ change: ChangeReader.Outline) {
        if isRun, let last = expendable.popLast() {
            expendable.append(change.sequence...last.upperBound)
        } else {
            expendable.append(change.sequence...change.sequence)
        }
        isRun = true
    }

    private func mayGo(_ tombstone: ChangeReader.Outline) -> Bool {
        let isPast = tombstone.cause == .dropped || tombstone.wall < now / 1000
        return isPast
            && (!isShared
                || !Rule.keepPending.isOn || !tombstone.cause.isOwn || tombstone.sequence <= published)
    }
}
