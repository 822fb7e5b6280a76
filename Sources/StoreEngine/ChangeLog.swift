// SPDX-License-Identifier: Apache-2.0

internal import GRDB
internal import GRDBSQLite
internal import PropertyList

// The table `change`, read and written through SQLite's own calls.
//
// A write is acknowledged after its row has been committed, so this is what every write waits for. GRDB binds
// through its own value types and observes each statement; measured, that is half of the cost of a row.

/// A row of the table `change`.
struct ChangeRow {
    var replica: Int64
    var sequence: UInt64
    var generation: UInt64
    var key: Key
    var value: [UInt8]?
    var stamp: Stamp
    /// `nil` where it is the sequence.
    var n: UInt64?
    var cause: Cause
    var time: UInt64
}

/// Writes changes: the prepared statement and its transaction.
struct ChangeWriter {
    private let insert: Statement
    private let begin: Statement
    private let commit: Statement
    private let delete: Statement

    init(_ db: Database) throws {
        insert = try db.makeStatement(
            sql: """
                INSERT INTO change
                    (replica, sequence, generation, key, value, provisional, wall, counter, origin, n, cause, time)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """)
        begin = try db.makeStatement(sql: "BEGIN IMMEDIATE")
        commit = try db.makeStatement(sql: "COMMIT")
        delete = try db.makeStatement(sql: "DELETE FROM change WHERE replica = ? AND sequence = ?")
    }

    /// Writes the rows in one transaction, after what `prepare` does in it.
    func write(_ rows: [ChangeRow], _ db: Database, prepare: ((Database) throws -> Void)?) throws {
        // A statement outside of a transaction is one by itself, and costs less than one with a beginning and an end.
        if prepare == nil, rows.count == 1 { return try append(rows[0], db) }
        try run(begin, db)
        do {
            try prepare?(db)
            for row in rows { try append(row, db) }
            try run(commit, db)
        } catch {
            // Some failures have rolled back already; then there is nothing left to roll back.
            if db.isInsideTransaction { try db.execute(sql: "ROLLBACK") }
            throw error
        }
    }

    /// Removes changes of a replica.
    func remove(_ sequences: [UInt64], of replica: Int64, _ db: Database) throws {
        for sequence in sequences {
            sqlite3_bind_int64(delete.sqliteStatement, 1, replica)
            sqlite3_bind_int64(delete.sqliteStatement, 2, Int64(bitPattern: sequence))
            try run(delete, db)
        }
    }

    private func append(_ row: ChangeRow, _ db: Database) throws {
        let statement = insert.sqliteStatement
        sqlite3_bind_int64(statement, 1, row.replica)
        sqlite3_bind_int64(statement, 2, Int64(bitPattern: row.sequence))
        sqlite3_bind_int64(statement, 3, Int64(bitPattern: row.generation))
        sqlite3_bind_int64(statement, 6, row.stamp.isProvisional ? 1 : 0)
        sqlite3_bind_int64(statement, 7, Int64(bitPattern: row.stamp.wall))
        sqlite3_bind_int64(statement, 8, Int64(row.stamp.counter))
        sqlite3_bind_int64(statement, 9, Int64(bitPattern: row.stamp.origin.bits))
        if let n = row.n {
            sqlite3_bind_int64(statement, 10, Int64(bitPattern: n))
        } else {
            sqlite3_bind_null(statement, 10)
        }
        sqlite3_bind_int64(statement, 11, row.cause.rawValue)
        sqlite3_bind_int64(statement, 12, Int64(bitPattern: row.time))
        try withBlob(4, Array(row.key.string.utf8)) {
            try withBlob(5, row.value) { try run(insert, db) }
        }

        // The bytes are bound without a copy, so they stay put until the statement has run.
        func withBlob(_ index: Int32, _ bytes: [UInt8]?, _ body: () throws -> Void) throws {
            guard let bytes else {
                sqlite3_bind_null(statement, index)
                return try body()
            }
            try bytes.withUnsafeBytes { buffer in
                if let base = buffer.baseAddress {
                    sqlite3_bind_blob(statement, index, base, Int32(buffer.count), nil)
                } else {
                    sqlite3_bind_zeroblob(statement, index, 0)
                }
                try body()
            }
        }
    }

    private func run(_ statement: Statement, _ db: Database) throws {
        let result = sqlite3_step(statement.sqliteStatement)
        let message = result == SQLITE_DONE ? nil : String(cString: sqlite3_errmsg(db.sqliteConnection))
        sqlite3_reset(statement.sqliteStatement)
        if let message { throw DatabaseError(resultCode: ResultCode(rawValue: result & 0xFF), message: message) }
    }
}

extension UInt64 {
    /// A number that this device counts from 0 or from the time, in a row: `nil` if it never came that far.
    init?(counting bits: Int64) {
        guard bits >= 0, bits < 1 << 62 else { return nil }
        self.init(bits)
    }
}

extension Row {
    /// A number that this device counts.
    func counter(_ column: String) throws -> UInt64 {
        guard let count = UInt64(counting: try decode(forColumn: column)) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "an impossible \(column)")
        }
        return count
    }
}

/// Reads a replica's changes, newest first.
struct ChangeReader {
    /// A row without its value, which `value` decodes only where it is wanted.
    struct Version {
        let sequence: UInt64
        let generation: UInt64
        let key: Key
        let stamp: Stamp
        let n: UInt64
        let cause: Cause
        let time: UInt64
        /// The size of the value's encoding; `nil` is a tombstone.
        let length: Int?
    }

    private let statement: Statement
    private var handle: SQLiteStatement { statement.sqliteStatement }

    /// - Parameter withValues: whether values are wanted; to read none costs less than to skip them.
    init(_ db: Database, withValues: Bool = true) throws {
        statement = try db.cachedStatement(
            sql: """
                SELECT sequence, generation, key, provisional, wall, counter, origin, n, cause, time, length(value),
                    \(withValues ? "value" : "NULL")
                FROM change WHERE replica = ? ORDER BY sequence DESC
                """)
    }

    /// Calls `body` with each change of the replica and with what reads its value's encoding.
    func forEach(
        of replica: Int64, _ db: Database, _ body: (Version, _ value: () -> [UInt8]?) throws -> Void
    ) throws {
        defer { sqlite3_reset(handle) }
        sqlite3_bind_int64(handle, 1, replica)
        while true {
            let result = sqlite3_step(handle)
            if result == SQLITE_DONE { return }
            guard result == SQLITE_ROW else {
                throw DatabaseError(
                    resultCode: ResultCode(rawValue: result & 0xFF),
                    message: String(cString: sqlite3_errmsg(db.sqliteConnection)))
            }
            try body(try version(), { bytes(11) })
        }
    }

    private func version() throws -> Version {
        guard let cause = Cause(rawValue: integer(8)), let key = bytes(2) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a change of an unknown kind")
        }
        guard let sequence = counter(0), let generation = counter(1) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a change with an impossible number")
        }
        return Version(
            sequence: sequence,
            generation: generation,
            key: Key(unchecked: String(decoding: key, as: UTF8.self)),
            stamp: Stamp(
                isProvisional: integer(3) != 0,
                wall: UInt64(bitPattern: integer(4)),
                counter: UInt16(truncatingIfNeeded: integer(5)),
                origin: Origin(bits: UInt64(bitPattern: integer(6)))),
            n: isNull(7) ? sequence : UInt64(bitPattern: integer(7)),
            cause: cause,
            time: UInt64(bitPattern: integer(9)),
            length: isNull(10) ? nil : Int(integer(10)))
    }

    private func counter(_ column: Int32) -> UInt64? { UInt64(counting: integer(column)) }

    private func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

    private func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

    private func bytes(_ column: Int32) -> [UInt8]? {
        if isNull(column) { return nil }
        let count = Int(sqlite3_column_bytes(handle, column))
        guard count > 0, let start = sqlite3_column_blob(handle, column) else { return [] }
        return Array(UnsafeRawBufferPointer(start: start, count: count))
    }
}
