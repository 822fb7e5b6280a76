// SPDX-License-Identifier: Apache-2.0

internal import GRDB
internal import GRDBSQLite
internal import PropertyList

// The table `change`, read and written through SQLite's own calls.
//
// A write is acknowledged after its row has been committed, so this is what every write waits for. GRDB binds
// through its own value types and observes each statement; measured, that is half of the cost of a row.

/// A row of the table `change`, but for its key and value.
struct ChangeRow {
    var replica: Int64
    var sequence: UInt64
    var generation: UInt64
    var stamp: Stamp
    /// `nil` where it is the sequence.
    var n: UInt64?
    var cause: Cause
    var time: UInt64
}

/// Rows to be written, in order.
///
/// Their keys and values are in one piece of memory, so that it can be lent to SQLite for many rows at once.
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

/// Writes changes: the prepared statements and their transaction.
struct ChangeWriter {
    private let insert: Statement
    private let insertMany: Statement
    private let begin: Statement
    private let commit: Statement
    private let delete: Statement
    private let connection: SQLiteConnection?

    /// Rows that are written by one statement, where there are so many: it stays where it is at the table's end.
    /// Measured, a row costs a third less.
    private static let many = 10
    private static let columns: Int32 = 12

    init(_ db: Database) throws {
        func insertion(of rows: Int) throws -> Statement {
            let row = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            return try db.makeStatement(
                sql: """
                    INSERT INTO change
                        (replica, sequence, generation, key, value, provisional, wall, counter, origin, n, cause, time)
                    VALUES \(Array(repeating: row, count: rows).joined(separator: ", "))
                    """)
        }
        insert = try insertion(of: 1)
        insertMany = try insertion(of: Self.many)
        begin = try db.makeStatement(sql: "BEGIN IMMEDIATE")
        commit = try db.makeStatement(sql: "COMMIT")
        delete = try db.makeStatement(sql: "DELETE FROM change WHERE replica = ? AND sequence BETWEEN ? AND ?")
        connection = db.sqliteConnection
        // Nobody observes transactions, and these hooks of GRDB's would expect to be on its queue.
        sqlite3_commit_hook(connection, nil, nil)
        sqlite3_rollback_hook(connection, nil, nil)
    }

    /// Writes the rows in one transaction.
    ///
    /// It goes to SQLite without GRDB, whose way to the connection is through a dispatch queue; so the caller has to
    /// be the one that uses the connection. Measured, that way is a tenth of what a write costs.
    func write(_ rows: ChangeRows) throws {
        // A statement outside of a transaction is one by itself, and costs less than one with a beginning and an end.
        if rows.rows.count == 1 { return try append(rows) }
        try run(begin)
        do {
            try append(rows)
            try run(commit)
        } catch {
            // Some failures have rolled back already; then there is nothing left to roll back.
            if sqlite3_get_autocommit(connection) == 0 { sqlite3_exec(connection, "ROLLBACK", nil, nil, nil) }
            throw error
        }
    }

    /// Writes the rows, in a transaction that is open.
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

    /// Removes the changes of a replica that have these sequences.
    func remove(_ sequences: ClosedRange<UInt64>, of replica: Int64) throws {
        sqlite3_bind_int64(delete.sqliteStatement, 1, replica)
        sqlite3_bind_int64(delete.sqliteStatement, 2, Int64(bitPattern: sequences.lowerBound))
        sqlite3_bind_int64(delete.sqliteStatement, 3, Int64(bitPattern: sequences.upperBound))
        try run(delete)
    }

    /// Binds a row's columns. The bytes are bound without a copy: they stay put until the statement has run.
    private func bind(
        _ row: (row: ChangeRow, key: Range<Int>, value: Range<Int>?), _ bytes: UnsafeRawBufferPointer,
        to statement: Statement, at index: Int32
    ) {
        let (row, key, value) = row
        let (handle, first) = (statement.sqliteStatement, index * Self.columns)
        sqlite3_bind_int64(handle, first + 1, row.replica)
        sqlite3_bind_int64(handle, first + 2, Int64(bitPattern: row.sequence))
        sqlite3_bind_int64(handle, first + 3, Int64(bitPattern: row.generation))
        bind(key, of: bytes, to: handle, first + 4)
        bind(value, of: bytes, to: handle, first + 5)
        sqlite3_bind_int64(handle, first + 6, row.stamp.isProvisional ? 1 : 0)
        sqlite3_bind_int64(handle, first + 7, Int64(bitPattern: row.stamp.wall))
        sqlite3_bind_int64(handle, first + 8, Int64(row.stamp.counter))
        sqlite3_bind_int64(handle, first + 9, Int64(bitPattern: row.stamp.origin.bits))
        if let n = row.n {
            sqlite3_bind_int64(handle, first + 10, Int64(bitPattern: n))
        } else {
            sqlite3_bind_null(handle, first + 10)
        }
        sqlite3_bind_int64(handle, first + 11, row.cause.rawValue)
        sqlite3_bind_int64(handle, first + 12, Int64(bitPattern: row.time))
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
        guard let cause = Cause(rawValue: integer(8)), !isNull(2) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a change of an unknown kind")
        }
        guard let sequence = counter(0), let generation = counter(1) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a change with an impossible number")
        }
        return Version(
            sequence: sequence,
            generation: generation,
            key: Key(unchecked: String(decoding: blob(2), as: UTF8.self)),
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

    private func bytes(_ column: Int32) -> [UInt8]? { isNull(column) ? nil : Array(blob(column)) }

    /// SQLite's own memory, which is there until the next step.
    private func blob(_ column: Int32) -> UnsafeRawBufferPointer {
        let start = sqlite3_column_blob(handle, column)
        return UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite3_column_bytes(handle, column)))
    }
}
