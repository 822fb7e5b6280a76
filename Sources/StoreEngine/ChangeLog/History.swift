// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
package import PropertyList
package import Replication

/// A value that a key no longer has.
package struct FormerValue: Equatable, Sendable {
    /// The value.
    package let value: Value
    /// When it was replaced, in microseconds since 1970 by this device's clock.
    package let time: UInt64
    /// The origin that wrote the value.
    package let origin: Origin
    /// Why it is no longer the key's value.
    package let why: Reason

    /// Why a key lost a value.
    package enum Reason: Sendable {
        case replaced, removed, account, merge, initialSync
    }
}

// For a store, in all of its accounts together.
extension Retention {
    static let valuesPerKey = 16
    /// 1 MiB of rows, plus what surrounds the contents, so that the largest value of a store is kept too.
    static let bytesPerStore = 1 << 20 + 4 + bytesPerRow
    /// What a row counts besides its value. Loading a store reads every row, and values may have a byte each.
    static let bytesPerRow = 128

    /// What a row counts.
    /// - Parameter length: the size of its value's encoding; `nil` for a tombstone.
    static func bytes(ofRowWith length: Int?) -> Int { (length ?? 0) + bytesPerRow }
    /// The number of surplus rows at which they are removed: about a millisecond's work.
    static let surplus = 1024
}

/// The former values in a database, of all stores.
///
/// Staged changes have to be in the database when their history is removed, and memory has to follow what is removed.
package struct History {
    let database: UserDatabase

    // MARK: Reading

    /// Returns the former values of a key, the last lost first, whatever the clock said.
    ///
    /// They include values from a time when the key was local, and those of accounts that this device has left. All
    /// together are no more than are kept of one store.
    package func values(of key: Key, in store: Store) throws(EngineError) -> [FormerValue] {
        let isLocal = store.localKeys.contains(key)
        return try database.read { db in
            var values = try formerValues(of: key, in: store.local, limits: store.limits, db)
            if !isLocal {
                let shared = try formerValues(of: key, in: store.shared, limits: store.limits, db)
                values = values.merged(with: shared) { $0.end > $1.end }
                // Lost when this account came into view. Against what was lost earlier, only the clock decides.
                let entered = store.knownFrom
                values = values.merged(with: try valuesLeft(of: key, in: store, db)) { value, left in
                    value.end > entered || value.value.time >= left.value.time
                }
            }
            var bytes = 0
            return values.prefix(Retention.valuesPerKey)
                .prefix { former in
                    bytes += former.length
                    return bytes <= Retention.bytesPerStore
                }
                .map(\.value)
        }
    }

    /// A former value, the length of its encoding in bytes, and the generation in which it was lost.
    private typealias Encoded = (value: FormerValue, length: Int, end: UInt64)

    /// Returns the former values of a key in a replica, the last lost first.
    private func formerValues(
        of key: Key, in replica: Replica, limits: Limits, _ db: Database
    ) throws -> [Encoded] {
        guard let record = replica.records[key] else { return [] }
        var values: [Encoded] = []
        var successor: ChangeReader.Version?
        for sequence in (record.former + [record.sequence]).reversed() {
            try ChangeReader.forEach(of: replica.id, in: sequence...sequence, db) { version, encoded in
                defer { successor = version }
                guard let successor, successor.time >= database.horizon, let encoded = encoded(),
                    let (value, _) = try? Value.decode(encoded, limits: limits)
                else { return }
                let former = FormerValue(
                    value: value, time: successor.time, origin: version.stamp.origin, why: .init(successor))
                values.append((former, encoded.count, successor.generation))
            }
        }
        return values
    }

    /// Returns the values that a key still has in accounts that this device has left, those of the last one first.
    private func valuesLeft(of key: Key, in store: Store, _ db: Database) throws -> [Encoded] {
        // Columns behind the value would make SQLite read all of it.
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT max(change.id) AS id, length(value) AS length, account.left FROM account
                    JOIN replica ON replica.account = account.id JOIN change ON \(ChangeID.isOf("replica.id"))
                WHERE account.id > 0 AND account.id <> ? AND account.left >= ? AND store = ? AND key = ?
                GROUP BY replica.id ORDER BY account.left DESC
                """,
            arguments: [database.account.id, Int64(bitPattern: database.horizon), store.id, Data(key.string.utf8)])
        var bytes = 0
        return try rows.compactMap { row in
            guard let length = try row.decode(Int?.self, forColumn: "length") else { return nil }
            let id: Int64 = try row.decode(forColumn: "id")
            bytes += length
            // Any number of accounts may have been left, each with a large value.
            if bytes > Retention.bytesPerStore { return nil }
            let change = try Row.fetchOne(db, sql: "SELECT value, origin FROM change WHERE id = ?", arguments: [id])
            guard let change, let encoded = try change.decode(Data?.self, forColumn: "value"),
                let (value, _) = try? Value.decode(Array(encoded), limits: database.limits)
            else { return nil }
            let origin = Origin(bits: UInt64(bitPattern: try change.decode(forColumn: "origin")))
            let former = FormerValue(value: value, time: try row.counter("left"), origin: origin, why: .account)
            return (former, length, 0)
        }
    }

    // MARK: Removing

    /// Removes a part of a replica's history: see ``HistoryPass``.
    func remove(_ changes: [FormerChange], ofReplica replica: Int64) throws(EngineError) {
        try database.commit()
        try database.space.remove(changes, of: replica)
        forget([replica: changes])
    }

    /// Removes the oldest history of all stores until the database has at most a size, in bytes.
    /// - Returns: the size afterwards, which is larger if there is too little history.
    package func shrink(toSize target: Int) throws(EngineError) -> Int {
        try database.commit()
        var size = try database.space.size()
        while size > target, try removeOldest(bytes: size - target) { size = try database.space.size() }
        return size
    }

    /// Removes the values that were replaced first, in one transaction. Nothing may be staged.
    /// - Parameter bytes: about how many bytes of the database to free.
    /// - Returns: whether there were any.
    func removeOldest(bytes: Int) throws(EngineError) -> Bool {
        let removed = try database.space.removeOldestHistory(bytes: bytes)
        forget(removed)
        return !removed.isEmpty
    }

    private func forget(_ removed: [Int64: [FormerChange]]) {
        for store in database.loadedStores {
            for replica in [store.shared, store.local] {
                if let changes = removed[replica.id], !changes.isEmpty { replica.forget(changes) }
            }
        }
    }
}

extension Replica {
    /// Removes changes of the history from memory.
    fileprivate func forget(_ changes: [FormerChange]) {
        let gone = Set(changes.map(\.sequence))
        for index in records.indices { records.values[index].former.removeAll(where: gone.contains) }
        surplus.removeAll(where: gone.contains)
        history.rows = max(0, history.rows - gone.count)
        let bytes = changes.reduce(0) { $0 + Retention.bytes(ofRowWith: $1.length) }
        history.bytes = max(0, history.bytes - bytes)
    }
}

extension Array {
    /// Merges two sorted lists.
    /// - Parameter precedes: whether an element of this list comes before one of the other.
    fileprivate func merged(with other: Self, _ precedes: (Element, Element) -> Bool) -> Self {
        var (merged, rest) = (Self(), other[...])
        for element in self {
            while let next = rest.first, !precedes(element, next) { merged.append(rest.removeFirst()) }
            merged.append(element)
        }
        return merged + rest
    }
}

extension FormerValue.Reason {
    init(_ successor: ChangeReader.Version) {
        self =
            switch successor.cause {
            case .written: successor.length == nil ? .removed : .replaced
            case .joined, .dropped: .merge
            case .downloaded: .initialSync
            case .migrated: .account
            }
    }
}
