// SPDX-License-Identifier: Apache-2.0

internal import GRDB
internal import PropertyList
internal import Replication

/// What a store holds in one account, in memory.
///
/// A class, because changing one of two copies of a struct would copy all of its records.
final class Replica {
    let id: Int64
    let account: Int64
    /// Whether the replica has a row in the database. It gets one with its first write.
    var isStored: Bool
    /// Whether the account's values have arrived.
    var isDownloaded: Bool
    /// The sequence up to which the remote has acknowledged every change.
    var published: UInt64
    /// The last sequence that was used.
    var sequence: UInt64
    var vector = VersionVector()
    var records: [Key: Record] = [:]
    var usage = Usage()
    /// The number of hidden entries that is stored in the database.
    var storedHidden = 0
    /// The rows that aren't a key's last, and at least the bytes of their values: rows removed unread still count.
    var history = (rows: 0, bytes: 0)
    /// The sequences of rows beyond the number kept for each key. They are to be removed.
    var surplus: [UInt64] = []
    /// No value in the history was replaced, and no tombstone written, before this time, in microseconds since 1970.
    var oldestLoss = UInt64.max
    /// What the last trim has kept: rows of history, and keys without a value.
    var kept = (history: 0, empty: 0)

    /// The number of keys with an entry that was made here and has not been published.
    var pendingKeys: Int {
        if published >= sequence { return 0 }
        if let known = countedPending, known.published == published { return known.keys }
        let keys = records.values.count { $0.cause.isOwn && $0.sequence > published }
        countedPending = (keys, published)
        return keys
    }

    /// What ``pendingKeys`` was since the records changed last.
    private var countedPending: (keys: Int, published: UInt64)?

    /// The greatest generation among its changes.
    var generation: UInt64 { records.values.reduce(0) { max($0, $1.generation) } }

    /// Makes an empty replica that is not in the database yet.
    init(id: Int64, account: Int64) {
        self.id = id
        self.account = account
        isStored = false
        isDownloaded = false
        published = 0
        sequence = 0
    }

    /// Sets the record under a key and counts it.
    func replace(_ key: Key, by record: Record?) {
        replace(key, records[key], by: record)
    }

    /// Sets the record under a key, where `old` is the present one, and counts it.
    func replace(_ key: Key, _ old: Record?, by record: Record?) {
        usage.replace(old?.content, by: record?.content)
        records[key] = record
        countedPending = nil
    }

    /// Counts a row that is no longer its key's last, and passes the key's history on to the new record.
    ///
    /// Rows must be retired in order.
    func retire(_ old: Record, before new: inout Record) {
        history.rows += 1
        history.bytes += Retention.bytes(ofRowWith: old.size)
        let excess = old.former.prefix(max(0, old.former.count + 1 - Retention.valuesPerKey))
        surplus.append(contentsOf: excess)
        new.former.reserveCapacity(Retention.valuesPerKey)
        new.former.append(contentsOf: old.former[excess.count...])
        new.former.append(old.sequence)
    }

    /// Forgets all history.
    func forgetHistory() {
        history = (0, 0)
        surplus = []
        for index in records.indices { records.values[index].former = [] }
    }

    /// The state as devices exchange it.
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
        var dots: [Dot] = []
        while let row = try rows.next() {
            let (origin, n): (Int64, Int64) = try (row.decode(atIndex: 0), row.decode(atIndex: 1))
            dots.append(Dot(origin: Origin(bits: UInt64(bitPattern: origin)), n: UInt64(bitPattern: n)))
        }
        vector = VersionVector(greatest: dots)
    }

    private func readChanges(_ db: Database, limits: Limits) throws {
        try ChangeReader.forEach(of: id, db) { version, value in
            sequence = max(sequence, version.sequence)
            if version.cause.isOwn { vector.insert(Dot(origin: version.stamp.origin, n: version.n)) }
            oldestLoss = min(oldestLoss, version.time)
            if let index = records.index(forKey: version.key) {
                history.rows += 1
                history.bytes += Retention.bytes(ofRowWith: version.length)
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
