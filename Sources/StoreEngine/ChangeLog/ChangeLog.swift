// SPDX-License-Identifier: Apache-2.0

internal import GRDB
internal import GRDBSQLite
internal import PropertyList
internal import Replication

// The table `change`, read and written through SQLite's C functions.
//
// A write is acknowledged after its row has been committed, so every write waits for this code. GRDB binds through its
// own value types and observes each statement. Measured, that is half of the cost of a row.

/// A row of the table `change`, without its key and value.
struct ChangeRow {
    var replica: Int64
    var sequence: UInt64
    var generation: UInt64
    var stamp: Stamp
    /// `nil` if it is the sequence.
    var n: UInt64?
    var cause: Cause
    var time: UInt64
}

/// Rows to write, in order.
///
/// Their keys and values are in one piece of memory, which is lent to SQLite for many rows at once.
struct ChangeRows {
    private(set) var rows: [(row: ChangeRow, key: Range<Int>, value: Range<Int>?)] = []
    private var encoder = CanonicalEncoder()

    /// The keys and values, one after the other.
    var bytes: [UInt8] { encoder.bytes }

    mutating func append(_ row: ChangeRow, key: Key, content: Record.Content) {
        let start = encoder.bytes.count
        encoder.raw(key.text)
        let middle = encoder.bytes.count
        switch content {
        case .value(let value, _): encoder.value(value)
        case .hidden(let bytes): encoder.raw(bytes)
        case .tombstone, .dropped: return rows.append((row, start..<middle, nil))
        }
        rows.append((row, start..<middle, middle..<encoder.bytes.count))
    }
}

/// Writes changes, with prepared statements and in transactions.
struct ChangeWriter {
    private let insert: Statement
    private let insertMany: Statement
    private let begin: Statement
    private let commit: Statement
    private let delete: Statement
    private let connection: SQLiteConnection?

    /// The number of rows that one statement writes, if there are so many. SQLite then stays at the end of the table:
    /// measured, a row costs a third less.
    private static let many = 25
    private static let columns: Int32 = 11

    init(_ db: Database) throws {
        func insertion(of rows: Int) throws -> Statement {
            let row = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            return try db.makeStatement(
                sql: """
                    INSERT INTO change
                        (id, generation, key, value, provisional, wall, counter, origin, n, cause, time)
                    VALUES \(Array(repeating: row, count: rows).joined(separator: ", "))
                    """)
        }
        insert = try insertion(of: 1)
        insertMany = try insertion(of: Self.many)
        begin = try db.makeStatement(sql: "BEGIN IMMEDIATE")
        commit = try db.makeStatement(sql: "COMMIT")
        delete = try db.makeStatement(sql: "DELETE FROM change WHERE id BETWEEN ? AND ?")
        connection = db.sqliteConnection
        // Nothing observes transactions, and GRDB's hooks would expect to run on its queue.
        sqlite3_commit_hook(connection, nil, nil)
        sqlite3_rollback_hook(connection, nil, nil)
    }

    /// Writes the rows in one transaction.
    ///
    /// This calls SQLite without GRDB, which reaches the connection through a dispatch queue. So the caller must be the
    /// connection's only user. Measured, the queue is a tenth of the cost of a write.
    func write(_ rows: ChangeRows) throws {
        // A statement outside of a transaction is a transaction itself, which costs less than `BEGIN` and `COMMIT`.
        if rows.rows.count == 1 { return try append(rows) }
        try run(begin)
        do {
            try append(rows)
            try run(commit)
        } catch {
            // Some failures have already rolled the transaction back.
            if sqlite3_get_autocommit(connection) == 0 { sqlite3_exec(connection, "ROLLBACK", nil, nil, nil) }
            throw error
        }
    }

    /// Writes the rows in an open transaction.
    func append(_ rows: ChangeRows) throws {
        try rows.bytes.withUnsafeBytes { bytes in
            var rest = rows.rows[...]
            while rest.count >= Self.many {
                for index in 0..<Int32(Self.many) { bind(rest.removeFirst(), bytes, to: insertMany, at: index) }
                try run(insertMany)
            }
            for row in rest {
                bind(row, bytes, to: insert, at: 0)
                try run(insert)
            }
        }
    }

    /// Removes a replica's changes with these sequences.
    func remove(_ sequences: ClosedRange<UInt64>, of replica: Int64) throws {
        sqlite3_bind_int64(delete.sqliteStatement, 1, ChangeID.of(replica, sequences.lowerBound))
        sqlite3_bind_int64(delete.sqliteStatement, 2, ChangeID.of(replica, sequences.upperBound))
        try run(delete)
    }

    /// Binds a row's columns. The bytes are not copied, so they must stay in place until the statement has run.
    private func bind(
        _ row: (row: ChangeRow, key: Range<Int>, value: Range<Int>?), _ bytes: UnsafeRawBufferPointer,
        to statement: Statement, at index: Int32
    ) {
        let (row, key, value) = row
        let (handle, first) = (statement.sqliteStatement, index * Self.columns)
        sqlite3_bind_int64(handle, first + 1, ChangeID.of(row.replica, row.sequence))
        sqlite3_bind_int64(handle, first + 2, Int64(bitPattern: row.generation))
        bind(key, of: bytes, to: handle, first + 3)
        bind(value, of: bytes, to: handle, first + 4)
        sqlite3_bind_int64(handle, first + 5, row.stamp.isProvisional ? 1 : 0)
        sqlite3_bind_int64(handle, first + 6, Int64(bitPattern: row.stamp.wall))
        sqlite3_bind_int64(handle, first + 7, Int64(row.stamp.counter))
        sqlite3_bind_int64(handle, first + 8, Int64(bitPattern: row.stamp.origin.bits))
        if let n = row.n {
            sqlite3_bind_int64(handle, first + 9, Int64(bitPattern: n))
        } else {
            sqlite3_bind_null(handle, first + 9)
        }
        sqlite3_bind_int64(handle, first + 10, row.cause.rawValue)
        sqlite3_bind_int64(handle, first + 11, Int64(bitPattern: row.time))
    }

    private func bind(
        _ range: Range<Int>?, of bytes: UnsafeRawBufferPointer, to handle: SQLiteStatement, _ parameter: Int32
    ) {
        if let range, let start = bytes.baseAddress, !range.isEmpty {
            sqlite3_bind_blob(handle, parameter, start + range.lowerBound, Int32(range.count), nil)
        } else if range != nil {
            sqlite3_bind_zeroblob(handle, parameter, 0)
        } else {
            sqlite3_bind_null(handle, parameter)
        }
    }

    private func run(_ statement: Statement) throws {
        let result = sqlite3_step(statement.sqliteStatement)
        let message = result == SQLITE_DONE ? nil : String(cString: sqlite3_errmsg(connection))
        sqlite3_reset(statement.sqliteStatement)
        if let message { throw DatabaseError(resultCode: ResultCode(rawValue: result & 0xFF), message: message) }
    }
}
