// SPDX-License-Identifier: Apache-2.0

internal import GRDB
internal import GRDBSQLite

/// A second connection to a database, for a moment.
///
/// Not GRDB's: when one of its queues goes, libdispatch runs a destructor on a thread of its pool, and from the first
/// such thread on it wakes the process every second, for as long as that lives.
struct BriefConnection: ~Copyable {
    private let handle: OpaquePointer?

    /// Opens a database that is there.
    /// - Parameter flags: as `sqlite3_open_v2` has them.
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

    /// The first column of a query's rows; none if there is no such table.
    func strings(_ query: String) throws -> [String] {
        var statement: OpaquePointer?
        defer { sqlite3_finalize(statement) }
        switch sqlite3_prepare_v2(handle, query, -1, &statement, nil) {
        case SQLITE_OK: break
        case SQLITE_ERROR: return []
        default: throw failure
        }
        var strings: [String] = []
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW: strings.append(sqlite3_column_text(statement, 0).map { String(cString: $0) } ?? "")
            case SQLITE_DONE: return strings
            default: throw failure
            }
        }
    }

    /// Writes everything that is committed to a new file, in one step: a writer meanwhile doesn't make it start again.
    func copy(to path: String) throws {
        let target = try BriefConnection(path, flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
        guard let backup = sqlite3_backup_init(target.handle, "main", handle, "main") else { throw target.failure }
        sqlite3_backup_step(backup, -1)
        if sqlite3_backup_finish(backup) != SQLITE_OK { throw target.failure }
    }

    /// Moves what can be moved of the write-ahead log into the database.
    /// - Parameter mode: as `sqlite3_wal_checkpoint_v2` has it.
    /// - Returns: how many pages the log has; -1 if that can't be told.
    func checkpoint(_ mode: Int32) -> Int {
        // A connection finds out with its first read that there is such a log.
        guard sqlite3_exec(handle, "PRAGMA schema_version", nil, nil, nil) == SQLITE_OK else { return -1 }
        var pages: Int32 = -1
        sqlite3_wal_checkpoint_v2(handle, nil, mode, &pages, nil)
        return Int(pages)
    }
}
