// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication

/// Decides which of a replica's changes are not kept. It receives each of them, newest first.
///
/// A key's newest former values stay. A key long without a value, or one of too many such keys, is removed entirely;
/// the version vector keeps it from coming back. A tombstone that the remote lacks stays. So does one from the future,
/// as a new write of the key would get a lesser stamp. Neither does if the state would be too large to be published: it
/// would hold up everything after it. An account's tombstone ages only by days that this device has watched, because a
/// device that was away takes the absence of a fresh one for a clone's doing.
struct Trimming {
    /// The sequences of the changes that are not kept. A range contains no change that is kept.
    private(set) var expendable: [ClosedRange<UInt64>] = []
    /// The keys of which nothing is kept.
    private(set) var goneKeys: [Key] = []
    /// The changes that are kept but aren't a key's last, and the bytes that they count.
    private(set) var history = (rows: 0, bytes: 0)
    var knownFrom: UInt64 = 0
    /// The number of tombstones that are kept, the latest ones, whatever speaks for the others.
    var mostTombstones = Int.max

    private let isShared: Bool
    private let published: UInt64
    private let horizon: UInt64
    private let now: UInt64
    private let doubt: UInt64
    /// What is kept of each key besides its last change.
    private(set) var past: [Key: Past] = [:]
    /// The earliest time at which something that is kept was replaced or became a tombstone.
    private(set) var oldestLoss = UInt64.max
    private var (emptyKeys, tombstones) = (0, 0)
    private var bytes: Int
    /// Whether the previous change was not kept.
    private var isRun = false

    /// What is known of a key's newer changes when an older one is read.
    struct Past {
        /// The sequences of the changes that are kept, newest first.
        fileprivate(set) var kept: [UInt64] = []
        fileprivate var replaced: UInt64
        fileprivate var values = 0
        fileprivate var isGone = false
    }

    /// - Parameters:
    ///   - isShared: whether the replica belongs to an account.
    ///   - published: the sequence up to which the remote has acknowledged every change.
    ///   - horizon: the time before which replaced values are not kept.
    ///   - doubt: how far the clock is ahead of what this device has watched, in microseconds.
    ///   - bytes: how many bytes of the store's history are already taken.
    init(isShared: Bool, published: UInt64, horizon: UInt64, now: UInt64, doubt: UInt64, bytes: Int = 0) {
        (self.isShared, self.published) = (isShared, published)
        (self.horizon, self.now, self.doubt) = (horizon, now, doubt)
        self.bytes = bytes
    }

    mutating func add(_ change: ChangeReader.Outline) {
        // Changed in place, so that the key is looked up once.
        guard let index = past.index(forKey: change.key) else { return addLast(change) }
        let size = Retention.bytes(ofRowWith: change.length)
        bytes += size
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
            history.bytes += size
            past.values[index].kept.append(change.sequence)
            oldestLoss = min(oldestLoss, former.replaced)
        }
    }

    private mutating func addLast(_ change: ChangeReader.Outline) {
        var last = Past(replaced: change.time)
        if change.length == nil {
            emptyKeys += 1
            if change.cause != .dropped { tombstones += 1 }
            last.isGone =
                tombstones > mostTombstones
                || mayGo(change) && (ageStart(of: change) < horizon || emptyKeys > Retention.tombstones)
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

    /// Returns since when a key has had no value, as far as that can be trusted: the clock may have been behind then,
    /// or may have jumped since.
    private func ageStart(of change: ChangeReader.Outline) -> UInt64 {
        guard isShared, change.cause != .dropped else { return change.time }
        let wall = change.wall.multipliedReportingOverflow(by: 1000)
        let time = max(change.time, wall.overflow ? .max : wall.partialValue)
        return time.addingReportingOverflow(doubt).overflow ? .max : time + doubt
    }

    private mutating func discard(_ change: ChangeReader.Outline) {
        if isRun, let last = expendable.popLast() {
            // In order, unless the database is damaged.
            expendable.append(min(change.sequence, last.lowerBound)...max(change.sequence, last.upperBound))
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
