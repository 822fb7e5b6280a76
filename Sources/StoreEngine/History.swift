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
            if !isLocal { values += try formerValues(of: key, in: store.shared, db) }
            return Array(values.sorted { $0.time > $1.time }.prefix(Retention.valuesPerKey))
        }
    }

    private func formerValues(of key: Key, in replica: Replica, _ db: Database) throws -> [FormerValue] {
        var successors: [Key: ChangeReader.Version] = [:]
        var values: [FormerValue] = []
        var bytes = 0
        try ChangeReader(db).forEach(of: replica.id, db) { version, encoded in
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
        let (history, gone) = try write { db in
            // The greatest n of our origins may go with its row, and so may the last sequence and generation.
            for (origin, n) in replica.context.seen { try db.saveContext(of: replica.id, origin: origin, n: n) }
            try db.execute(
                sql: "UPDATE replica SET sequence = ? WHERE id = ?",
                arguments: [Int64(bitPattern: replica.sequence), replica.id])
            try db.trimHistory(of: replica, horizon: horizon)
            let gone = try db.trimTombstones(of: replica, horizon: horizon, now: environment.time())
            let knownFrom = gone.reduce(store.knownFrom) { max($0, replica.records[$1]?.generation ?? 0) }
            try db.saveGeneration(store.generation, knownFrom: knownFrom, of: store.id)
            return (try db.measureHistory(of: replica), (keys: gone, knownFrom: knownFrom))
        }
        for key in gone.keys { replica.replace(key, by: nil) }
        // A reader from before does not hear of what is not known any more: it gets everything.
        store.knownFrom = gone.knownFrom
        replica.history = history
        replica.kept = (history.rows, replica.records.count - replica.usage.keys)
    }
}

extension Database {
    /// Removes rows that are not a key's last: the oldest ones beyond what is kept of a key, a store and the past.
    fileprivate func trimHistory(of replica: Replica, horizon: UInt64) throws {
        try execute(
            sql: """
                DELETE FROM change WHERE replica = :replica AND sequence IN (
                    SELECT sequence FROM (
                        SELECT sequence,
                            row_number() OVER (PARTITION BY key ORDER BY sequence DESC) AS age,
                            sum(iif(next IS NULL, 0, length(value))) OVER (ORDER BY sequence DESC) AS bytes,
                            next, replaced
                        FROM (
                            SELECT sequence, key, value,
                                lead(sequence) OVER (PARTITION BY key ORDER BY sequence) AS next,
                                lead(time) OVER (PARTITION BY key ORDER BY sequence) AS replaced
                            FROM change WHERE replica = :replica))
                    WHERE next IS NOT NULL AND (age > :age OR bytes > :bytes OR replaced < :horizon))
                """,
            arguments: [
                "replica": replica.id, "age": Retention.valuesPerKey + 1, "bytes": Retention.bytesPerStore,
                "horizon": Int64(bitPattern: horizon),
            ])
    }

    /// Removes keys that have had no value for long, or are too many, with their history. The context keeps
    /// them from coming back. A tombstone that the remote does not have, or from the future, stays.
    /// - Returns: the keys that were removed.
    fileprivate func trimTombstones(of replica: Replica, horizon: UInt64, now: UInt64) throws -> [Key] {
        let isShared = replica.account > 0
        let gone = try Data.fetchSet(
            self,
            sql: """
                DELETE FROM change WHERE replica = :replica AND key IN (
                    SELECT key FROM (
                        SELECT *, row_number() OVER (ORDER BY sequence DESC) AS age FROM (
                            SELECT key, value, cause, wall, time, max(sequence) AS sequence
                            FROM change WHERE replica = :replica GROUP BY key)
                        WHERE value IS NULL)
                    WHERE (time < :horizon OR age > :count) AND (cause = :dropped OR wall < :now)
                        AND (NOT :shared OR sequence <= :published OR cause NOT IN (0, 3)))
                RETURNING key
                """,
            arguments: [
                "replica": replica.id, "horizon": Int64(bitPattern: horizon), "count": Retention.tombstones,
                "dropped": Cause.dropped.rawValue, "now": Int64(bitPattern: now / 1000), "shared": isShared,
                "published": Int64(bitPattern: replica.published),
            ])
        return gone.map { Key(unchecked: String(decoding: $0, as: UTF8.self)) }
    }

    fileprivate func measureHistory(of replica: Replica) throws -> (rows: Int, bytes: Int) {
        let row = try Row.fetchOne(
            self,
            sql: """
                SELECT count(*) - count(DISTINCT key), coalesce(sum(length(value)), 0) - coalesce((
                    SELECT sum(length(value)) FROM
                        (SELECT value, max(sequence) FROM change WHERE replica = :replica GROUP BY key)), 0)
                FROM change WHERE replica = :replica
                """,
            arguments: ["replica": replica.id])
        return try (rows: row?.decode(atIndex: 0) ?? 0, bytes: row?.decode(atIndex: 1) ?? 0)
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
