// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
public import PropertyList
public import Replication

/// A value that a key had.
public struct FormerValue: Equatable, Sendable {
    /// The value.
    public let value: Value
    /// When it was replaced, in microseconds since 1970 by this device's clock.
    public let time: UInt64
    /// Who had written it.
    public let origin: Origin
    /// Why it is no longer the key's value.
    public let why: Reason

    /// Why a value went.
    public enum Reason: Sendable {
        case replaced, removed, account, merge, initialSync
    }
}

// Of a store, in all of its accounts together.
extension Retention {
    static let valuesPerKey = 16
    /// 1 MiB, and what is before the bytes in an encoding: the largest value that a store may have is kept as well.
    static let bytesPerStore = 1 << 20 + 4
    /// So many rows beyond these are removed at once: about a millisecond's work.
    static let surplus = 1024
}

extension UserDatabase {
    /// The values that a key had, newest first.
    ///
    /// A key that was local once has those of that time as well, and one that accounts have which this device has
    /// left has their values. All of them are no more than are kept.
    public func history(of key: Key, in store: Store) throws(EngineError) -> [FormerValue] {
        let isLocal = store.localKeys.contains(key)
        return try read { db in
            var values = try formerValues(of: key, in: store.overlay, limits: store.limits, db)
            if !isLocal {
                values += try formerValues(of: key, in: store.shared, limits: store.limits, db)
                values += try valuesLeft(of: key, in: store, db)
            }
            var bytes = 0
            return values.sorted { $0.value.time > $1.value.time }.prefix(Retention.valuesPerKey)
                .prefix { former in
                    bytes += former.length
                    return bytes <= Retention.bytesPerStore
                }
                .map(\.value)
        }
    }

    /// A value that a key had, and how long its encoding is.
    private typealias Encoded = (value: FormerValue, length: Int)

    private func formerValues(
        of key: Key, in replica: Replica, limits: Limits, _ db: Database
    ) throws -> [Encoded] {
        var successors: [Key: ChangeReader.Version] = [:]
        var values: [Encoded] = []
        var bytes = 0
        try ChangeReader.forEach(of: replica.id, db) { version, encoded in
            defer { successors[version.key] = version }
            guard let successor = successors[version.key] else { return }
            bytes += version.length ?? 0
            guard version.key == key, bytes <= Retention.bytesPerStore, successor.time >= horizon,
                values.count < Retention.valuesPerKey, let encoded = encoded(),
                let (value, _) = try? Value.decode(encoded, limits: limits)
            else { return }
            let former = FormerValue(
                value: value, time: successor.time, origin: version.stamp.origin, why: .init(successor))
            values.append((former, encoded.count))
        }
        return values
    }

    /// The values that the key has in accounts that this device has left: they are still theirs.
    private func valuesLeft(of key: Key, in store: Store, _ db: Database) throws -> [Encoded] {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT value, origin, account.left, max(change.sequence) FROM account
                    JOIN replica ON replica.account = account.id JOIN change ON \(ChangeID.isOf("replica.id"))
                WHERE account.id > 0 AND account.id <> ? AND account.left >= ? AND store = ? AND key = ?
                GROUP BY replica.id
                """,
            arguments: [account.id, Int64(bitPattern: horizon), store.id, Data(key.string.utf8)])
        return try rows.compactMap { row in
            let encoded = try row.decode(Data?.self, forColumn: "value").map(Array.init)
            guard let encoded, let (value, _) = try? Value.decode(encoded, limits: limits) else { return nil }
            let origin = Origin(bits: UInt64(bitPattern: try row.decode(forColumn: "origin")))
            let former = FormerValue(value: value, time: try row.counter("left"), origin: origin, why: .account)
            return (former, encoded.count)
        }
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
