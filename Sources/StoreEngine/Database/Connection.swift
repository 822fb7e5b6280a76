// SPDX-License-Identifier: Apache-2.0

// The connection that reads and writes a user's database.
//
// It commits on its owner's thread, at synchronous=NORMAL in the write-ahead log. So a commit is a write, and doesn't
// wait for a disk. What does is done elsewhere: see Maintenance, which also has the one exception.

internal import GRDB
internal import GRDBSQLite
internal import Glibc
internal import Synchronization

/// Called when a piece of work in a database begins and when it ends. Nothing else runs on the thread in between.
package struct WorkObserver {
    let begins: () -> Void
    let ends: () -> Void

    package init(begins: @escaping () -> Void, ends: @escaping () -> Void) {
        (self.begins, self.ends) = (begins, ends)
    }
}

/// A connection to the database of one user.
final class Connection {
    private let queue: DatabaseQueue
    private var writer: ChangeWriter?
    /// Why there is no ``writer``, once the connection is closed.
    private var reasonForClosing = EngineError.storage("the database was closed")
    private let path: String
    /// Called when the connection's work begins and ends.
    var observer: WorkObserver?
    private let logSize = LogSize()
    /// Called after each commit with the number of pages in the write-ahead log.
    var onCommit: ((_ pages: Int) -> Void)?
    /// Called after each transaction that has failed.
    var onFailure: (() -> Void)?
    private let file: FileIdentity?
    private let log: FileIdentity?

    /// Opens the database at a path, creates it if necessary, and migrates it to the newest version.
    init(to path: String) throws {
        self.path = path
        queue = try Self.open(path)
        (file, log) = (FileIdentity(path), FileIdentity(path + "-wal"))
    }

    static func open(_ path: String) throws -> DatabaseQueue {
        let queue: DatabaseQueue
        do {
            try Schema.check(path)
            queue = try connect(path)
        } catch let error where EngineError(error) == .diskFull && access(path, F_OK) == 0 {
            // There is no room for the file with the log's index, by which processes share the log. This VFS keeps it
            // in memory, for all connections of one process, so that the database can be read.
            queue = try defaultVFS.withLock { _ in
                let former = sqlite3_vfs_find(nil)
                sqlite3_vfs_register(sqlite3_vfs_find("unix-excl"), 1)
                defer { sqlite3_vfs_register(former, 1) }
                return try connect(path)
            }
            try Schema.check(path)
        }
        try Schema.migrate(queue)
        return queue
    }

    /// Held while another VFS is SQLite's default for the whole process, which GRDB offers no other way to choose.
    private static let defaultVFS = Mutex(())

    private static func connect(_ path: String) throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.label = "stores"
        configuration.busyMode = .timeout(5)
        configuration.foreignKeysEnabled = false
        configuration.prepareDatabase { db in
            sqlite3_limit(db.sqliteConnection, SQLITE_LIMIT_LENGTH, DatabaseFile.longestRow)
            // A write is a page in the log, whose checksum and copy cost more than the row. Measured: 2 KiB takes a
            // sixth off a commit compared with 4 KiB, and 1 KiB no more.
            // The cache has 512 KiB, because the stores hold the entries in memory, not SQLite. What it sorts, and what
            // it keeps to undo a statement, can be as much as the database, so beyond 64 KiB that goes to a file.
            // Statements that change many rows say OR FAIL, with which SQLite keeps nothing: an error ends the transaction
            // anyway.
            try db.execute(
                sql: """
                    PRAGMA page_size = 2048;
                    PRAGMA journal_mode = WAL;
                    PRAGMA synchronous = NORMAL;
                    PRAGMA wal_autocheckpoint = 0;
                    PRAGMA journal_size_limit = \(Maintenance.keptLog);
                    PRAGMA cache_size = -512;
                    PRAGMA temp_store = FILE
                    """)
        }
        return try DatabaseQueue(path: path, configuration: configuration)
    }

    /// Prepares the writer of changes, and runs `body` outside of a transaction.
    func begin<T>(_ body: (Database) throws -> T) throws -> T {
        try queue.writeWithoutTransaction { db in
            writer = try ChangeWriter(db)
            logSize.follow(db)
            return try body(db)
        }
    }

    // MARK: Closing

    /// Whether the connection is open.
    var isOpen: Bool { writer != nil }

    /// Whether the connection was closed because the database is damaged.
    var isDamaged: Bool {
        if case .corrupt = reasonForClosing { true } else { false }
    }

    /// Closes the connection, once. Later calls fail.
    /// - Parameter reason: the error with which they fail.
    func close(because reason: EngineError? = nil) {
        if !isOpen { return }
        reasonForClosing = reason ?? reasonForClosing
        if !isInPlace, log == FileIdentity(path + "-wal") { leaveLog() }
        // A connection with a prepared statement can't be closed.
        writer = nil
        try? queue.close()
    }

    /// Renames the log. SQLite would apply it to the file that has replaced the one it belongs to.
    private func leaveLog() {
        rename(path + "-wal", path + "-wal.left")
        unlink(path + "-shm")
    }

    /// Frees what only makes the next use faster: pages, the schema, and unused statements.
    func releaseMemory() { queue.releaseMemory() }

    // MARK: Another file

    /// Whether the open file is still the one at the path.
    var isInPlace: Bool { FileIdentity(path) == file }

    /// Throws if the connection is closed, or if the file or its directory was replaced or removed, so that what is
    /// written would be gone at the next start.
    func check() throws(EngineError) {
        _ = try openWriter
        if !isInPlace { throw .corrupt("its file was replaced or removed while it was open") }
    }

    // MARK: Access

    /// The writer of changes. Throws once the connection is closed.
    var openWriter: ChangeWriter {
        get throws(EngineError) {
            guard let writer else { throw reasonForClosing }
            return writer
        }
    }

    /// Runs `body`, which reads.
    ///
    /// Nobody else writes to the file meanwhile, so this needs no transaction. GRDB's own `read` turns `query_only` on
    /// and off, after which SQLite prepares every statement of the connection anew (`PRAGMA` of flags, `OP_Expire`).
    func read<T>(_ body: (Database) throws -> T) throws(EngineError) -> T {
        observer?.begins()
        defer { observer?.ends() }
        do {
            _ = try openWriter
            return try queue.unsafeRead(body)
        } catch {
            throw EngineError(error)
        }
    }

    /// Runs `body` in a transaction.
    func write<T>(_ body: (Database) throws -> T) throws(EngineError) -> T {
        try commit { try queue.write(body) }
    }

    /// Lets the writer write in a transaction of its own.
    func write(directly body: (ChangeWriter) throws -> Void) throws(EngineError) {
        try commit { try body(try openWriter) }
    }

    /// Runs `write`, which commits. It checks before, so that what is refused isn't written either, and again
    /// afterwards, so that nothing is acknowledged that was written to a file which has just gone.
    private func commit<T>(_ write: () throws -> T) throws(EngineError) -> T {
        observer?.begins()
        defer { observer?.ends() }
        do {
            try check()
            let result: T
            do { result = try write() } catch {
                onFailure?()
                throw error
            }
            noteCommit()
            try check()
            return result
        } catch {
            throw EngineError(error)
        }
    }

    private func noteCommit() {
        if let pages = logSize.takeNew() { onCommit?(pages) }
    }
}

/// The size of the write-ahead log, as SQLite reports it after each commit.
private final class LogSize {
    private var pages: Int?

    func follow(_ db: Database) {
        let hook: @convention(c) (UnsafeMutableRawPointer?, OpaquePointer?, UnsafePointer<CChar>?, CInt) -> CInt = {
            size, _, _, pages in
            if let size { Unmanaged<LogSize>.fromOpaque(size).takeUnretainedValue().pages = Int(pages) }
            return SQLITE_OK
        }
        sqlite3_wal_hook(db.sqliteConnection, hook, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Returns the number of pages, if there was a commit since this was asked.
    func takeNew() -> Int? {
        defer { pages = nil }
        return pages
    }
}
