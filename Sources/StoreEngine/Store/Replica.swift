// SPDX-License-Identifier: Apache-2.0

internal import GRDB
internal import PropertyList
internal import Replication

/// What a store holds in one account, in memory.
///
/// A class, since a copy that is changed while the original is alive would copy all of its records.
final class Replica {
    let id: Int64
    let account: Int64
    /// Whether its row is in the database; one that nobody wrote to has none.
    var isStored: Bool
    /// The account's values have arrived.
    var isDownloaded: Bool
    /// The remote has acknowledged every change up to this sequence.
    var published: UInt64
    /// The last sequence that was used.
    var sequence: UInt64
    var vector = VersionVector()
    var records: [Key: Record] = [:]
    var usage = Usage()
    /// How many of its entries are hidden, as the database has it.
    var storedHidden = 0
    /// Rows that are not a key's last, and the bytes of their values, or more: what is removed unread still counts.
    var history = (rows: 0, bytes: 0)
    /// The rows before those of which as many are kept as of any key. They are to be removed.
    var surplus: [UInt64] = []
    /// No value of the history was replaced before this moment, and no tombstone is older.
    var oldestLoss = UInt64.max
    /// What was worth keeping when it was trimmed last: rows of history, and keys without a value.
    var kept = (history: 0, empty: 0)

    /// The keys whose entry was made here and has not been published.
    var pendingKeys: Int {
        records.values.count { $0.cause.isOwn && $0.sequence > published }
    }

    /// The greatest generation among its changes.
    var generation: UInt64 { records.values.reduce(0) { max($0, $1.generation) } }

    /// An empty replica, of which the database knows nothing yet.
    init(id: Int64, account: Int64) {
        self.id = id
        self.account = account
        isStored = false
        isDownloaded = false
        published = 0
        sequence = 0
    }

    /// Puts a record under a key and counts it.
    func replace(_ key: Key, by record: Record?) {
        replace(key, records[key], by: record)
    }

    /// Puts a record under a key in place of the one that is there, and counts it.
    func replace(_ key: Key, _ old: Record?, by record: Record?) {
        usage.replace(old?.content, by: record?.content)
        records[key] = record
    }

    /// Counts a row that is a key's last no more, and leaves the key's history in its successor.
    ///
    /// Rows have to come in order.
    func retire(_ old: Record, before new: inout Record) {
        history.rows += 1
        history.bytes += old.size
        let excess = old.former.prefix(max(0, old.former.count + 1 - Retention.valuesPerKey))
        surplus.append(contentsOf: excess)
        new.former.reserveCapacity(Retention.valuesPerKey)
        new.former.append(contentsOf: old.former[excess.count...])
        new.former.append(old.sequence)
    }

    /// Knows of no history any more.
    func forgetHistory() {
        history = (0, 0)
        surplus = []
        for index in records.indices { records.values[index].former = [] }
    }

    /// Its state as devices exchange it.
    var state: StoreState {
        StoreState(entries: records.compactMapValues(\.entry), vector: vector)
    }

    /// Reads a replica from its rows.
    init(row: Row, limits: Limits, db: Database) throws {
        id = try row.decode(forColumn: "id")
        account = try row.decode(forColumn: "account")
        isStored = true
        isDownloaded = try row.decode(forColumn: "downloaded")
        published = try row.counter("published")
        sequence = try row.counter("sequence")
        storedHidden = try row.decode(forColumn: "hidden")
        try readVector(db)
        try readChanges(db, limits: limits)
    }

    private func readVector(_ db: Database) throws {
        let rows = try Row.fetchCursor(
            db.cachedStatement(sql: "SELECT origin, n FROM context WHERE replica = ?"), arguments: [id])
        while let row = try rows.next() {
            let (origin, n): (Int64, Int64) = try (row.decode(atIndex: 0), row.decode(atIndex: 1))
            vector.insert(Dot(origin: Origin(bits: UInt64(bitPattern: origin)), n: UInt64(bitPattern: n)))
        }
    }

    private func readChanges(_ db: Database, limits: Limits) throws {
        try ChangeReader.forEach(of: id, db) { version, value in
            sequence = max(sequence, version.sequence)
            if version.cause.isOwn { vector.insert(Dot(origin: version.stamp.origin, n: version.n)) }
            oldestLoss = min(oldestLoss, version.time)
            if let index = records.index(forKey: version.key) {
                history.rows += 1
                history.bytes += version.length ?? 0
                let isKept = records.values[index].former.count < Retention.valuesPerKey
                isKept ? records.values[index].former.append(version.sequence) : surplus.append(version.sequence)
                return
            }
            let content: Record.Content =
                version.cause == .dropped
                ? .dropped : Record.Content(encoded: value(), key: version.key, limits: limits)
            replace(
                version.key,
                by: Record(
                    stamp: version.stamp, n: version.n, content: content, generation: version.generation,
                    sequence: version.sequence, cause: version.cause))
        }
        for index in records.indices { records.values[index].former.reverse() }
    }
}
