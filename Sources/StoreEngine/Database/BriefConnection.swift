// SPDX-License-Identifier: Apache-2.0

internal import GRDB
internal import GRDBSQLite

/// A second, short-lived connection to a database.
///
/// It doesn't use GRDB. When one of GRDB's queues is freed, libdispatch runs a destructor on a thread of its pool, and
/// from its first such thread on, it wakes the process every second for as long as the process lives.
struct BriefConnection: ~Copyable {
    private let handle: OpaquePointer?

    /// Opens an existing database.
    /// - Parameter flags: the flags of `sqlite3_open_v2`.
    init(_ path: String, flags: Int32) throws {
        var handle: OpaquePointer?
        let code = sqlite3_open_v2(path, &handle, flags | SQLITE_OPEN_NOMUTEX, nil)
        self.handle = handle
        sqlite3_extended_result_codes(handle, 1)
        sqlite3_busy_timeout(handle, 1000)
        if code != SQLITE_OK { throw failure }
    }

    deinit { sqlite3_close(handle) }

    private var failure: DatabaseError {
        DatabaseError(
            resultCode: ResultCode(rawValue: sqlite3_extended_errcode(handle)),
            message: String(cString: sqlite3_errmsg(handle)))
    }

    /// Executes statements.
    func execute(_ sql: String) throws {
        if sqlite3_exec(handle, sql, nil, nil, nil) != SQLITE_OK { throw failure }
    }

    /// Ends each statement from now on with `SQLITE_INTERRUPT` after so many steps of SQLite's virtual machine, and with
    /// `SQLITE_TOOBIG` at a row that is longer than so many bytes.
    ///
    /// SQLite doesn't notice that the pages of a file are no tree: a few of them can have as many rows as one likes.
    func bound(steps: Int32, row length: Int32 = DatabaseFile.longestRow) {
        sqlite3_progress_handler(handle, steps, { _ in 1 }, nil)
        sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, length)
    }

    /// Reads what the database's schema defines, each as type, name and statement with zero bytes between them: at most
    /// `count` definitions. Those that SQLite can't parse are among them.
    /// - Throws: `DatabaseError`, also if one has more than 64 KiB, or if there are very many.
    func definitions(atMost count: Int, _ body: (String) -> Void) throws {
        bound(steps: 1_000_000, row: 64 << 10)
        try execute("PRAGMA writable_schema = ON")
        try forEach(
            "SELECT type || char(0) || name || char(0) || coalesce(sql, '') FROM sqlite_schema LIMIT \(count)", body)
    }

    /// Returns the size of the database in bytes, as the file and its log say.
    func size() throws -> Int {
        let numbers = try (strings("PRAGMA page_count") + strings("PRAGMA page_size")).compactMap { Int($0) }
        return numbers.reduce(1) { $0.multipliedReportingOverflow(by: $1).overflow ? .max : $0 * $1 }
    }

    /// Returns the first thing that is wrong with the file's structure; `nil` if nothing is. A file of 256 MB takes 50
    /// million steps.
    func damage() throws -> String? {
        bound(steps: 1_000_000_000)
        let found = try strings("PRAGMA quick_check(1)")
        return found == ["ok"] ? nil : found.first ?? "it can't be checked"
    }

    /// Returns whether a query finds something. A value that is longer than ``DatabaseFile/longestRow`` counts as found.
    func finds(_ query: String) throws -> Bool {
        do { return try !strings(query).isEmpty } catch let error as DatabaseError
            where error.resultCode == .SQLITE_TOOBIG
        { return true }
    }

    /// Returns the first column of a query's rows; nothing if there is no such table.
    func strings(_ query: String) throws -> [String] {
        var strings: [String] = []
        try forEach(query) { strings.append($0) }
        return strings
    }

    /// Reads the first column of a query's rows; nothing if there is no such table.
    private func forEach(_ query: String, _ body: (String) -> Void) throws {
        var statement: OpaquePointer?
        defer { sqlite3_finalize(statement) }
        switch sqlite3_prepare_v2(handle, query, -1, &statement, nil) {
        case SQLITE_OK: break
        case SQLITE_ERROR: return
        default: throw failure
        }
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW:
                // A text may have zero bytes in it.
                let text = UnsafeBufferPointer(
                    start: sqlite3_column_text(statement, 0), count: Int(sqlite3_column_bytes(statement, 0)))
                body(String(decoding: text, as: UTF8.self))
            case SQLITE_DONE: return
            default: throw failure
            }
        }
    }

    /// Copies everything committed to a new file, in one step, so that a concurrent writer doesn't make it start again.
    func copy(to path: String) throws {
        let target = try BriefConnection(path, flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
        guard let backup = sqlite3_backup_init(target.handle, "main", handle, "main") else { throw target.failure }
        sqlite3_backup_step(backup, -1)
        if sqlite3_backup_finish(backup) != SQLITE_OK { throw target.failure }
    }

    /// Moves all of the write-ahead log into the database, syncs that and empties the log: what is left of a log whose
    /// pages are lost would be laid over the database again.
    /// - Returns: whether it was done.
    func emptyLog() -> Bool {
        sqlite3_exec(handle, "PRAGMA schema_version", nil, nil, nil) == SQLITE_OK
            && sqlite3_wal_checkpoint_v2(handle, nil, SQLITE_CHECKPOINT_TRUNCATE, nil, nil) == SQLITE_OK
    }

    /// Moves as much of the write-ahead log into the database as possible.
    /// - Parameter mode: the mode of `sqlite3_wal_checkpoint_v2`.
    /// - Returns: the number of pages in the log, and how many of them are in the database; -1 if it is unknown.
    ///   `hasFailed` says whether the disk has: the kernel may have forgotten pages that were to be written.
    func checkpoint(_ mode: Int32) -> (pages: Int, moved: Int, hasFailed: Bool) {
        // A connection detects the log only when it first reads.
        guard sqlite3_exec(handle, "PRAGMA schema_version", nil, nil, nil) == SQLITE_OK else { return (-1, -1, false) }
        var (pages, moved): (Int32, Int32) = (-1, -1)
        let code = sqlite3_wal_checkpoint_v2(handle, nil, mode, &pages, &moved)
        return (Int(pages), Int(moved), code & 0xff == SQLITE_IOERR)
    }
}
