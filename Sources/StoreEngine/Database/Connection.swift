// SPDX-License-Identifier: Apache-2.0

// The connection that reads and writes a user's database.
//
// It commits on its owner's thread, at synchronous=NORMAL in the write-ahead log: a commit is a write, and never waits
// for a disk. What waits is done elsewhere: see Maintenance.

internal import GRDB
internal import Glibc

/// A connection to the database of one user, until it is closed.
final class Connection {
    private let queue: DatabaseQueue
    private var writer: ChangeWriter?
    /// Why there is no ``writer`` any more.
    private var reasonForClosing = EngineError.storage("the database was closed")
    private let path: String
    private let file: FileIdentity?
    private let log: FileIdentity?

    /// Opens the database at a path, makes it if it isn't there, and brings it to the newest version.
    init(to path: String) throws {
        self.path = path
        queue = try Self.open(path)
        (file, log) = (FileIdentity(path), FileIdentity(path + "-wal"))
    }

    static func open(_ path: String) throws -> DatabaseQueue {
        try Schema.check(path)
        var configuration = Configuration()
        configuration.label = "stores"
        configuration.busyMode = .timeout(5)
        configuration.foreignKeysEnabled = false
        configuration.prepareDatabase { db in
            // A write is a page in the log, whose checksum and copy cost more than the row: measured, 2 KiB takes a
            // sixth off a commit against 4 KiB, and 1 KiB no more.
            // 512 KiB of cache: entries are held in memory by the stores, not by SQLite.
            try db.execute(
                sql: """
                    PRAGMA page_size = 2048;
                    PRAGMA journal_mode = WAL;
                    PRAGMA synchronous = NORMAL;
                    PRAGMA wal_autocheckpoint = 0;
                    PRAGMA journal_size_limit = 4194304;
                    PRAGMA cache_size = -512;
                    PRAGMA temp_store = MEMORY
                    """)
        }
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        try Schema.migrate(queue)
        return queue
    }

    /// Prepares what writes changes, and does the first thing with the database, outside of a transaction.
    func begin<T>(_ body: (Database) throws -> T) throws -> T {
        try queue.writeWithoutTransaction { db in
            writer = try ChangeWriter(db)
            return try body(db)
        }
    }

    // MARK: Closing

    /// Whether it was not closed.
    var isOpen: Bool { writer != nil }

    /// Whether it was closed because the database is damaged.
    var isDamaged: Bool {
        if case .corrupt = reasonForClosing { true } else { false }
    }

    /// Closes it, once; whatever is asked of it afterwards fails.
    /// - Parameter reason: what it fails with.
    func close(because reason: EngineError? = nil) {
        if !isOpen { return }
        reasonForClosing = reason ?? reasonForClosing
        if !isInPlace, log == FileIdentity(path + "-wal") { leaveLog() }
        // A connection with a prepared statement can't be closed.
        writer = nil
        try? queue.close()
    }

    /// Gives the log another name. SQLite would apply it to the file that has come in the place of its own.
    private func leaveLog() {
        rename(path + "-wal", path + "-wal.left")
        unlink(path + "-shm")
    }

    /// Lets go of what only makes the next use faster: pages, the schema, and statements that aren't in use.
    func releaseMemory() { queue.releaseMemory() }

    // MARK: Another file

    /// Whether the file that is open is still the one at the path.
    var isInPlace: Bool { FileIdentity(path) == file }

    /// Fails if it is closed, or if what is written is gone with the next start: the file, or its directory, was
    /// replaced or removed.
    func check() throws(EngineError) {
        _ = try openWriter
        if !isInPlace { throw .corrupt("its file was replaced or removed while it was open") }
    }

    // MARK: Access

    /// What writes changes.
    var openWriter: ChangeWriter {
        get throws(EngineError) {
            guard let writer else { throw reasonForClosing }
            return writer
        }
    }

    /// Reads.
    func read<T>(_ body: (Database) throws -> T) throws(EngineError) -> T {
        do {
            _ = try openWriter
            return try queue.read(body)
        } catch {
            throw EngineError(error)
        }
    }

    /// Does something in a transaction.
    func write<T>(_ body: (Database) throws -> T) throws(EngineError) -> T {
        do {
            _ = try openWriter
            var result: T?
            try queue.writeWithoutTransaction { db in
                try db.inTransaction(.immediate) {
                    result = try body(db)
                    return .commit
                }
            }
            guard let result else { throw EngineError.storage("the transaction was not run") }
            try check()
            return result
        } catch {
            throw EngineError(error)
        }
    }

    /// Has the writer write a transaction of its own.
    func write(directly body: (ChangeWriter) throws -> Void) throws(EngineError) {
        do {
            try body(try openWriter)
            try check()
        } catch {
            throw EngineError(error)
        }
    }
}
