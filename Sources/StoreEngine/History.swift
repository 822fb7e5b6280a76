// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
public import PropertyList

/// A value that a key had.
public struct FormerValue: Equatable, Sendable {
    /// The value.
    public let value: Value
    /// When it was replaced, in microseconds since 1970 by this device's clock.
    public let time: UInt64
    /// Who had written it.
    public let origin: Origin
    /// Why it is not the key's value any more, by the names that the bus uses.
    public let why: Reason

    /// Why a value went.
    public enum Reason: String, Sendable {
        case replaced, removed, account, merge
        case initialSync = "initial-sync"
    }
}

/// How much of the past is kept.
enum Retention {
    static let valuesPerKey = 16
    static let bytesPerStore = 1 << 20
    static let microseconds: UInt64 = 90 * 86_400_000_000
    static let tombstones = 4096
}

extension UserDatabase {
    /// The values that a key had, newest first.
    ///
    /// A key that was local once has those of that time as well.
    public func history(of key: Key, in store: Store) throws(EngineError) -> [FormerValue] {
        let isLocal = store.localKeys.contains(key)
        return try read { db in
            var values = try formerValues(of: key, in: store.overlay, db)
            if !isLocal {
                values += try formerValues(of: key, in: store.shared, db)
                values += try valuesLeft(of: key, in: store, db)
            }
            return Array(values.sorted { $0.time > $1.time }.prefix(Retention.valuesPerKey))
        }
    }

    private func formerValues(of key: Key, in replica: Replica, _ db: Database) throws -> [FormerValue] {
        var successors: [Key: ChangeReader.Version] = [:]
        var values: [FormerValue] = []
        var bytes = 0
        try ChangeReader.forEach(of: replica.id, db) { version, encoded in
            defer { successors[version.key] = version }
            guard let successor = successors[version.key] else { return }
            bytes += version.length ?? 0
            guard version.key == key, bytes <= Retention.bytesPerStore, successor.time >= horizon,
                values.count < Retention.valuesPerKey, let encoded = encoded(),
                let (value, _) = try? Value.decode(encoded, limits: limits)
            else { return }
            values.append(
                FormerValue(
                    value: value, time: successor.time, origin: version.stamp.origin, why: .init(successor)))
        }
        return values
    }

    /// The values that the key has in accounts that this device has left: they are still theirs.
    private func valuesLeft(of key: Key, in store: Store, _ db: Database) throws -> [FormerValue] {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT value, origin, account.left, max(change.sequence) FROM account
                    JOIN replica ON replica.account = account.id JOIN change ON change.replica = replica.id
                WHERE account.id > 0 AND account.id <> ? AND account.left >= ? AND store = ? AND key = ?
                GROUP BY replica.id
                """,
            arguments: [account.id, Int64(bitPattern: horizon), store.id, Data(key.string.utf8)])
        return try rows.compactMap { row in
            let encoded = try row.decode(Data?.self, forColumn: "value").map(Array.init)
            guard let encoded, let (value, _) = try? Value.decode(encoded, limits: limits) else { return nil }
            let origin = Origin(bits: UInt64(bitPattern: try row.decode(forColumn: "origin")))
            return FormerValue(value: value, time: try row.counter("left"), origin: origin, why: .account)
        }
    }

    /// What was replaced before this moment is not kept.
    private var horizon: UInt64 {
        let now = environment.time()
        return now - min(now, Retention.microseconds)
    }

    /// Removes history and tombstones that are not kept any longer, when there is enough of it to be worth while.
    func trim(_ store: Store) {
        for replica in [store.shared, store.overlay] {
            let rows = max(256, replica.records.count, 2 * replica.kept.history)
            let empty = 2 * max(Retention.tombstones, replica.kept.empty)
            guard
                replica.history.rows > rows || replica.history.bytes > 2 * Retention.bytesPerStore
                    || replica.records.count - replica.usage.keys > empty
            else { continue }
            // What could not be removed now is removed with a later change.
            try? trim(replica, of: store)
        }
    }

    private func trim(_ replica: Replica, of store: Store) throws(EngineError) {
        let writer = try openWriter
        var trimming = Trimming(of: replica, horizon: horizon, now: environment.time())
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
        replica.history = trimming.history
        replica.kept = (trimming.history.rows, replica.records.count - replica.usage.keys)
    }
}

/// Decides which of a replica's changes are not kept, told of each of them, newest first.
///
/// Of a key's past the newest values stay; a key that has had no value for long, or is one of too many such keys,
/// goes altogether. The context keeps it from coming back. A tombstone that the remote does not have stays, and
/// so does one from the future, which a key that is set again would not get beyond.
private struct Trimming {
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
    private var past: [Key: Past] = [:]
    private var emptyKeys = 0
    private var bytes = 0
    /// The change before was not kept.
    private var isRun = false

    /// What came after the next change of a key.
    private struct Past {
        var replaced: UInt64
        var values = 0
        var isGone = false
    }

    init(of replica: Replica, horizon: UInt64, now: UInt64) {
        isShared = replica.account > 0
        published = replica.published
        self.horizon = horizon
        self.now = now
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
        }
    }

    private mutating func addLast(_ change: ChangeReader.Outline) {
        var last = Past(replaced: change.time)
        if change.length == nil {
            emptyKeys += 1
            last.isGone = mayGo(change) && (change.time < horizon || emptyKeys > Retention.tombstones)
        }
        if last.isGone {
            discard(change)
            goneKeys.append(change.key)
        } else {
            isRun = false
        }
        past[change.key] = last
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

extension FormerValue.Reason {
    init(_ successor: ChangeReader.Version) {
        self =
            switch successor.cause {
            case .written: successor.length == nil ? .removed : .replaced
            case .joined, .dropped: .merge
            case .downloaded: .initialSync
            case .carried: .account
            }
    }
}
