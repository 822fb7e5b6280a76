// SPDX-License-Identifier: Apache-2.0

internal import GRDB
internal import Replication

/// Removes history and tombstones of the stores in memory that are not kept.
///
/// Most removed rows are older than the newest values of their key. Memory knows these rows, so they are removed without
/// reading anything. To remove rows by age or size, or tombstones, all changes are read.
struct StoreTrimmer {
    let database: UserDatabase

    /// Removes history and tombstones that are no longer kept, once there are enough of them to be worth it.
    func trim(_ store: Store) {
        trim(store.shared, of: store)
        trim(store.local, of: store)
    }

    // What can't be removed now is removed with a later change.
    private func trim(_ replica: Replica, of store: Store) {
        let isPlenty = replica.surplus.count >= Retention.surplus
        if replica.mayHoldTooMuch || (isPlenty && replica.oldestLoss < database.horizon) {
            try? pruneByAgeAndSize(replica, of: store)
        } else if isPlenty {
            try? removeSurplus(of: replica)
        }
    }

    private func removeSurplus(of replica: Replica) throws(EngineError) {
        let writer = try database.openWriter
        try database.write { db in
            try db.saveProgress(of: replica)
            for sequences in replica.surplus.sorted().runs { try writer.remove(sequences, of: replica.id) }
        }
        replica.history.rows -= replica.surplus.count
        replica.history.bytes -= replica.surplus.count * Retention.bytesPerRow
        replica.surplus = []
    }

    /// Reads all changes, and removes those that are not kept.
    private func pruneByAgeAndSize(_ replica: Replica, of store: Store) throws(EngineError) {
        let writer = try database.openWriter
        var trimming = Trimming(
            isShared: replica.account > 0, published: replica.published, horizon: database.horizon,
            now: database.environment.time(), doubt: database.clockDoubt)
        if replica.isTooLargeToPublish { trimming.mostTombstones = replica.roomForTombstones }
        try database.write { db in
            try db.saveProgress(of: replica)
            try ChangeReader.forEachOutline(of: replica.id, db) { trimming.add($0) }
            for sequences in trimming.expendable { try writer.remove(sequences, of: replica.id) }
            let knownFrom = trimming.goneKeys.reduce(store.knownFrom) {
                max($0, replica.records[$1]?.generation ?? 0)
            }
            try db.saveGeneration(store.generation, knownFrom: knownFrom, of: store.id)
            // A reader at an earlier generation can't learn which keys are gone, so it gets everything.
            trimming.knownFrom = knownFrom
        }
        for key in trimming.goneKeys { replica.replace(key, by: nil) }
        store.knownFrom = trimming.knownFrom
        replica.keep(trimming)
    }
}

extension Replica {
    /// Whether there may be much besides the surplus that is not kept.
    fileprivate var mayHoldTooMuch: Bool {
        history.rows - surplus.count > max(256, records.count, 2 * kept.history)
            || history.bytes > 2 * Retention.bytesPerStore
            || records.count - usage.keys > 2 * max(Retention.tombstones, kept.empty)
            || isTooLargeToPublish
    }

    /// Whether no device would read the state.
    var isTooLargeToPublish: Bool {
        account > 0 && records.count > StoreBounds.entries
            && records.values.count { !$0.isDropped } > StoreBounds.entries
    }

    /// The number of tombstones to keep in a state that is too large: so many that it takes a while to be again.
    fileprivate var roomForTombstones: Int {
        let values = records.values.count { $0.holdsBytes }
        return (StoreBounds.entries - min(values, StoreBounds.entries)) * 3 / 4
    }

    /// Notes in memory what was kept of the history.
    fileprivate func keep(_ trimming: Trimming) {
        for (key, past) in trimming.past { records[key]?.former = past.kept.reversed() }
        history = trimming.history
        surplus = []
        oldestLoss = trimming.oldestLoss
        kept = (trimming.history.rows, records.count - usage.keys)
    }
}

extension [UInt64] {
    /// The numbers, which must be sorted, as ranges without gaps.
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
