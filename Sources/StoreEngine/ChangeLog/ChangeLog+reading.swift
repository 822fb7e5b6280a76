// SPDX-License-Identifier: Apache-2.0

internal import GRDB
internal import GRDBSQLite
internal import PropertyList
internal import Replication

extension UInt64 {
    /// Checks a number of a row that this device counts from 0 or from the time; `nil` if it can't have come that far.
    init?(counting bits: Int64) {
        guard bits >= 0, bits < 1 << 62 else { return nil }
        self.init(bits)
    }
}

extension Row {
    /// Returns a column with a number that this device counts.
    func counter(_ column: String) throws -> UInt64 {
        guard let count = UInt64(counting: try decode(forColumn: column)) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "an impossible \(column)")
        }
        return count
    }
}

/// Reads a replica's changes, newest first.
enum ChangeReader {
    /// A row without its value, which is read only on demand.
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

    /// The columns that decide whether a change is kept. They are half the work to read.
    struct Outline {
        let sequence: UInt64
        let key: Key
        let cause: Cause
        let time: UInt64
        /// The wall time of its stamp, in milliseconds since 1970.
        let wall: UInt64
        /// The size of the value's encoding; `nil` is a tombstone.
        let length: Int?
    }

    /// Calls `body` with each change of the replica that has one of these sequences, and with a function that reads its
    /// value's encoding.
    static func forEach(
        of replica: Int64, in sequences: ClosedRange<UInt64> = 0...ChangeID.lastSequence, _ db: Database,
        _ body: (Version, _ value: () -> [UInt8]?) throws -> Void
    ) throws {
        try forEachRow(
            of: replica, in: sequences,
            "sequence, generation, key, provisional, wall, counter, origin, n, cause, time, length(value), value",
            db
        ) { row in
            try body(try version(row), { row.isNull(11) ? nil : Array(row.blob(11)) })
        }
    }

    /// Calls `body` with the outline of each change of the replica.
    /// - Parameters:
    ///   - last: the sequence to begin at.
    ///   - limit: the number of changes at most; all of them if it is negative.
    static func forEachOutline(
        of replica: Int64, through last: UInt64 = ChangeID.lastSequence, limit: Int = -1, _ db: Database,
        _ body: (Outline) -> Void
    ) throws {
        try forEachRow(of: replica, in: 0...last, limit: limit, "sequence, key, cause, time, wall, length(value)", db) {
            row in
            body(
                Outline(
                    sequence: try row.counter(0), key: try row.key(1), cause: try row.cause(2),
                    time: UInt64(bitPattern: row.integer(3)), wall: UInt64(bitPattern: row.integer(4)),
                    length: row.isNull(5) ? nil : Int(row.integer(5))))
        }
    }

    private static func forEachRow(
        of replica: Int64, in sequences: ClosedRange<UInt64>, limit: Int = -1, _ columns: String,
        _ db: Database, _ body: (ColumnReader) throws -> Void
    ) throws {
        let statement = try db.cachedStatement(
            sql: "SELECT \(columns) FROM change WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?")
        let handle = statement.sqliteStatement
        defer { sqlite3_reset(handle) }
        sqlite3_bind_int64(handle, 1, ChangeID.of(replica, sequences.lowerBound))
        sqlite3_bind_int64(handle, 2, ChangeID.of(replica, sequences.upperBound))
        sqlite3_bind_int64(handle, 3, Int64(limit))
        while true {
            let result = sqlite3_step(handle)
            if result == SQLITE_DONE { return }
            guard result == SQLITE_ROW else {
                throw DatabaseError(
                    resultCode: ResultCode(rawValue: result & 0xFF),
                    message: String(cString: sqlite3_errmsg(db.sqliteConnection)))
            }
            try body(ColumnReader(handle: handle))
        }
    }

    private static func version(_ row: ColumnReader) throws -> Version {
        let sequence = try row.counter(0)
        guard sequence < ChangeID.lastSequence else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a change after which there is room for none")
        }
        return Version(
            sequence: sequence,
            generation: try row.counter(1),
            key: try row.key(2),
            stamp: Stamp(
                isProvisional: row.integer(3) != 0,
                wall: UInt64(bitPattern: row.integer(4)),
                counter: UInt16(truncatingIfNeeded: row.integer(5)),
                origin: Origin(bits: UInt64(bitPattern: row.integer(6)))),
            n: row.isNull(7) ? sequence : UInt64(bitPattern: row.integer(7)),
            cause: try row.cause(8),
            time: UInt64(bitPattern: row.integer(9)),
            length: row.isNull(10) ? nil : Int(row.integer(10)))
    }
}

/// The columns of a statement's current row.
private struct ColumnReader {
    let handle: SQLiteStatement

    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

    /// Returns SQLite's own memory, which is valid until the next step.
    func blob(_ column: Int32) -> UnsafeRawBufferPointer {
        let start = sqlite3_column_blob(handle, column)
        return UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite3_column_bytes(handle, column)))
    }

    func counter(_ column: Int32) throws -> UInt64 {
        guard let count = UInt64(counting: integer(column)) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a change with an impossible number")
        }
        return count
    }

    func key(_ column: Int32) throws -> Key {
        if isNull(column) { throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a change without a key") }
        return Key(unchecked: String(decoding: blob(column), as: UTF8.self))
    }

    func cause(_ column: Int32) throws -> Cause {
        guard let cause = Cause(rawValue: integer(column)) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a change of an unknown kind")
        }
        return cause
    }
}
