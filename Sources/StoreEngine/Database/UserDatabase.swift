// SPDX-License-Identifier: Apache-2.0

// The database of one user: every store, account and change, in one SQLite file.
//
// The connection here commits on its owner's thread, at synchronous=NORMAL in the write-ahead log: a commit
// is a write, and never waits for a disk. What waits is done elsewhere: see Maintenance.

internal import Foundation
internal import GRDB
internal import GRDBSQLite
internal import Glibc
public import PropertyList
public import Replication

/// One user's stores and accounts on this device.
public final class UserDatabase {
    /// Where the database is.
    public let directory: String
    /// Time and chance.
    public let environment: Environment
    /// What a store may hold.
    public let limits: Limits

    let queue: DatabaseQueue
    let maintenance: Maintenance
    private var writer: ChangeWriter?
    /// Why there is no ``writer`` any more.
    private var reasonForClosing = EngineError.storage("the database was closed")
    private let path: String
    private let file: FileIdentity?
    private let log: FileIdentity?
    // Not weak references: these make every use of the object slower. A store takes itself out when it goes.
    private var stores: [String: Unmanaged<Store>] = [:]
    private var staging = Staging()

    let originRecord: OriginRecord
    var originState: OriginState
    /// What was written when the database was closed last: see ``OriginRecord``.
    private var endWord: UInt64?
    private var nextStoreID: Int64
    private(set) var replicaIDs: ReplicaIDs
    /// The generation of a store that nobody has written to; that of one that is made anew is never less.
    var generationBase: UInt64

    /// The account whose values are shown and written.
    public internal(set) var account: Account
    /// The account before, whose values are shown until those of the current one have arrived.
    var previous: Account?
    /// When the remote was tidied up last, in microseconds since 1970; 0: never.
    public internal(set) var lastGarbageCollection: UInt64
    /// Counts what makes a download that is under way worthless: it has to begin anew.
    public internal(set) var downloadEpoch = 0
    /// What the history of all stores takes at most; `nil` until it was gone through.
    var historyBound: Int?
    /// What the file may grow to; see ``bound(fileSize:)``.
    var largestSize: Int?
    /// What was lost with a damaged database has not come back from the remote yet.
    public internal(set) var isAwaitingRemote: Bool

    /// Opens the database in a directory, and makes it if it isn't there.
    /// - Parameters:
    ///   - directory: an existing directory.
    ///   - runtimeDirectory: a directory that does not outlive the running system, for ``OriginRecord``.
    /// - Throws: `EngineError.corrupt` if it has to be set aside (see ``setAside(in:at:)``), `.newer`,
    ///   `.diskFull`, `.storage`.
    public init(
        in directory: String, runtimeDirectory: String?, limits: Limits = .standard, environment: Environment
    ) throws(EngineError) {
        self.directory = directory
        self.environment = environment
        self.limits = limits
        path = directory + "/" + Self.fileName
        originRecord = OriginRecord(of: directory, in: runtimeDirectory)
        do {
            try Salvage.finish(in: directory)
            try Salvage.checkPresence(in: directory)
            queue = try Self.open(path)
            (file, log) = (FileIdentity(path), FileIdentity(path + "-wal"))
            maintenance = Maintenance(databasePath: path, disk: environment.disk)
            let now = environment.time()
            let start = try queue.writeWithoutTransaction { db in
                try (
                    writer: ChangeWriter(db), origin: OriginState(db, environment),
                    properties: DatabaseProperties(db, now: now),
                    stores: db.greatestID(in: "store"), replicas: db.greatestID(in: "replica")
                )
            }
            writer = start.writer
            originState = start.origin
            endWord = start.properties.endWord
            generationBase = start.properties.generationBase
            account = start.properties.account
            previous = start.properties.previous
            isAwaitingRemote = start.properties.isAwaitingRemote
            lastGarbageCollection = start.properties.lastGarbageCollection
            nextStoreID = start.stores + 1
            replicaIDs = ReplicaIDs(after: start.replicas)
        } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
            // The statements are always the same: what they don't fit is not the schema that was made.
            throw .corrupt(error.message ?? "another schema")
        } catch {
            throw EngineError(error)
        }
        Salvage.leaveTrace(in: directory)
        let left = originRecord.take()
        if Rule.freshOrigins.isOn, left == nil || left != endWord {
            do { try beginWithNewOrigin() } catch .diskFull {
                // Nothing can be uploaded either: that is counted first. There is room once somebody starts anew.
            }
        }
    }

    /// The database's file in its directory; SQLite keeps two more beside it.
    static let fileName = "stores.sqlite"

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

    /// Writes what is left to the database file and closes it. Whatever is asked of it afterwards fails.
    public func close() {
        leaveEndWord()
        closeConnection()
    }

    /// Closes a database that is damaged, as ``close()`` but without writing to it. Whatever is asked of it afterwards
    /// fails with `EngineError.corrupt`.
    public func abandon(_ reason: String) {
        guard writer != nil else { return }
        reasonForClosing = .corrupt(reason)
        // SQLite would apply the log that it leaves beside another file to that file.
        if !isInPlace, log == FileIdentity(path + "-wal") { unlink(path + "-wal") }
        closeConnection()
    }

    /// Whether ``abandon(_:)`` has closed it.
    public var isAbandoned: Bool {
        if case .corrupt = reasonForClosing { true } else { false }
    }

    private func closeConnection() {
        // A connection with a prepared statement can't be closed.
        writer = nil
        try? queue.close()
    }

    /// Whether the file that is open is still the one in the directory.
    public var isInPlace: Bool { FileIdentity(path) == file }

    /// Fails if what was written is gone with the next start: the file, or its directory, was replaced or removed.
    private func checkPlace() throws {
        if !isInPlace { throw EngineError.corrupt("its file was replaced or removed while it was open") }
    }

    /// The last thing that is written, here and to `/run`, so that the next start goes on under the origin.
    private func leaveEndWord() {
        guard originState.isStored, writer != nil else { return }
        let drawn = environment.random()
        let word = try? write { db in
            if let endWord, db.totalChangesCount == 0 { return endWord }
            try db.setProperty("end", Int64(bitPattern: drawn))
            return drawn
        }
        if let word { originRecord.leave(word) }
    }

    // MARK: Stores

    /// The store of an identifier, loaded if it isn't; whoever keeps the reference keeps it in memory.
    /// - Parameter localKeys: the keys that the app's manifest keeps on the device.
    public func store(_ identifier: String, localKeys: LocalKeys = .none) throws(EngineError) -> Store {
        if let store = loadedStore(identifier) { return store }
        let store = try read { db in try Store(identifier, in: self, localKeys: localKeys, db: db) }
        stores[identifier] = Unmanaged.passUnretained(store)
        return store
    }

    /// The store of an identifier, if it is loaded.
    public func loadedStore(_ identifier: String) -> Store? { stores[identifier]?.takeUnretainedValue() }

    /// The stores that are loaded.
    public var loadedStores: [Store] { stores.values.map { $0.takeUnretainedValue() } }

    /// The identifiers of the stores that hold something, sorted.
    public func storeIdentifiers() throws(EngineError) -> [String] {
        try read { db in
            try String.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT DISTINCT identifier FROM replica JOIN store ON store.id = store
                        WHERE EXISTS (SELECT 1 FROM change WHERE \(ChangeID.isOf("replica.id")))
                        ORDER BY identifier
                        """))
        }
    }

    /// The identifiers of the stores that hold a value that was not removed, shown or not, sorted.
    public func storesWithValues() throws(EngineError) -> [String] {
        try read { db in
            try String.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT DISTINCT identifier FROM (
                            SELECT identifier, max(change.sequence), value IS NOT NULL AS is_value, cause
                            FROM store JOIN replica ON replica.store = store.id
                                JOIN change ON \(ChangeID.isOf("replica.id"))
                            GROUP BY replica.id, key)
                        WHERE is_value AND cause <> \(Cause.dropped.rawValue) ORDER BY identifier
                        """))
        }
    }

    /// A store goes; it may be one that was only read anew for another one of the same identifier.
    func unload(_ store: Store) {
        if stores[store.identifier]?.toOpaque() == Unmanaged.passUnretained(store).toOpaque() {
            stores[store.identifier] = nil
        }
    }

    func allocateStoreID() -> Int64 {
        defer { nextStoreID += 1 }
        return nextStoreID
    }

    /// What a store holds in an account.
    func replica(of store: Int64, account: Int64, _ db: Database) throws -> Replica {
        let row = try Row.fetchOne(
            db.cachedStatement(sql: "SELECT * FROM replica WHERE account = ? AND store = ?"),
            arguments: [account, store])
        if let row { return try Replica(row: row, limits: limits, db: db) }
        let replica = Replica(id: replicaIDs.next(), account: account)
        // What the account doesn't have after its first complete download, it doesn't have.
        replica.isDownloaded = account == self.account.id && self.account.isDownloaded
        return replica
    }

    /// Leaves out the ids of replicas that a statement made: see ``ReplicaIDs``.
    func skipReplicaIDs(_ db: Database) throws {
        replicaIDs.skip(to: try db.greatestID(in: "replica"))
    }

    func previousReplica(of store: Int64, unless isDownloaded: Bool, _ db: Database) throws -> Replica? {
        guard let previous, !isDownloaded else { return nil }
        return try replica(of: store, account: previous.id, db)
    }

    // MARK: Committing

    /// Whether there are writes that wait for ``commit()``.
    public var hasStagedChanges: Bool { !staging.isEmpty }

    /// Writes everything that is staged in one transaction.
    /// - Throws: what kept it from being written; then all of it has been taken back.
    public func commit() throws(EngineError) {
        for store in staging.stores { enqueueHidden(of: store.shared) }
        let staged = staging
        staging = Staging()
        if staged.isEmpty {
            for store in staged.stores { store.undo = nil }
            return
        }
        do { try writeMakingRoom(staged) } catch {
            for store in staged.stores.reversed() { store.takeBack() }
            throw error
        }
        for store in staged.stores {
            store.undo = nil
            store.isStored = true
            store.shared.storedHidden = store.shared.usage.hidden
        }
        for replica in staged.newReplicas { replica.isStored = true }
        if staged.storesOrigin { originState.isStored = true }
        maintenance.noteCommit(bytes: 64 * staged.rows.rows.count + staged.rows.bytes.count)
        for store in staged.stores { trim(store) }
    }

    private func enqueueHidden(of replica: Replica) {
        let (id, count) = (replica.id, replica.usage.hidden)
        if count == replica.storedHidden { return }
        staging.preparations.append {
            try $0.run(sql: "UPDATE replica SET hidden = ? WHERE id = ?", arguments: [count, id])
        }
    }

    /// Writes what is staged. Where the file may not grow any more, history gives way to it.
    private func writeMakingRoom(_ staged: Staging) throws(EngineError) {
        do { try write(staged) } catch .diskFull where mayMakeRoom {
            guard try removeOldestHistory(bytes: 2 * staged.rows.bytes.count + Self.leastRoom) else {
                throw .diskFull
            }
            try write(staged)
        }
    }

    private func write(_ staged: Staging) throws(EngineError) {
        let writer = try openWriter
        if staged.preparations.isEmpty {
            do {
                try writer.write(staged.rows)
                try checkPlace()
            } catch { throw EngineError(error) }
        } else {
            try write { db in
                for prepare in staged.preparations { try prepare(db) }
                try writer.append(staged.rows)
            }
        }
    }

    /// What waits for the next commit.
    private struct Staging {
        var stores: [Store] = []
        var newReplicas: [Replica] = []
        var preparations: [(Database) throws -> Void] = []
        var rows = ChangeRows()
        var storesOrigin = false

        var isEmpty: Bool { rows.rows.isEmpty && preparations.isEmpty }
    }

    func willStage(_ store: Store) {
        guard store.undo == nil else { return }
        store.undo = Undo(store)
        staging.stores.append(store)
        enqueueOrigin()
        guard !store.isStored else { return }
        let (id, identifier, base) = (store.id, store.identifier, Int64(bitPattern: store.generation))
        staging.preparations.append { db in
            try db.run(
                sql: "INSERT INTO store (id, identifier, generation, known_from) VALUES (?, ?, ?, ?)",
                arguments: [id, identifier, base, base])
        }
    }

    /// Counts a change that becomes history.
    func noteRetired(_ size: Int) {
        if let bound = historyBound { historyBound = bound + size + FormerChange.overhead }
    }

    func enqueue(_ row: ChangeRow, key: Key, content: Record.Content, of replica: Replica, in store: Store) {
        enqueueReplica(replica, in: store)
        staging.rows.append(row, key: key, content: content)
    }

    /// Adds to the next transaction what is done before its changes are written.
    func enqueue(replica: Replica, in store: Store, _ body: @escaping (Database) throws -> Void) {
        enqueueReplica(replica, in: store)
        staging.preparations.append(body)
    }

    private func enqueueReplica(_ replica: Replica, in store: Store) {
        if replica.isStored || staging.newReplicas.contains(where: { $0 === replica }) { return }
        staging.newReplicas.append(replica)
        let row = (replica.id, store.id, replica.account, replica.isDownloaded)
        staging.preparations.append { db in
            try db.run(
                sql: "INSERT INTO replica (id, store, account, downloaded) VALUES (?, ?, ?, ?)",
                arguments: [row.0, row.1, row.2, row.3])
        }
    }

    /// A new origin gets its row with the first change that is made under it.
    private func enqueueOrigin() {
        if originState.isStored || staging.storesOrigin { return }
        staging.storesOrigin = true
        let origin = originState.origin
        staging.preparations.append { try $0.saveOrigin(origin) }
    }

    // MARK: Access

    /// The connection, which must not be used once it is closed.
    private var connection: DatabaseQueue {
        get throws(EngineError) {
            _ = try openWriter
            return queue
        }
    }

    /// What writes changes, until the connection is closed.
    var openWriter: ChangeWriter {
        get throws(EngineError) {
            guard let writer else { throw reasonForClosing }
            return writer
        }
    }

    /// Reads on the connection that writes.
    func read<T>(_ body: (Database) throws -> T) throws(EngineError) -> T {
        do { return try connection.read(body) } catch { throw EngineError(error) }
    }

    func write<T>(_ body: (Database) throws -> T) throws(EngineError) -> T {
        do {
            var result: T?
            try connection.writeWithoutTransaction { db in
                try db.inTransaction(.immediate) {
                    result = try body(db)
                    return .commit
                }
            }
            guard let result else { throw EngineError.storage("the transaction was not run") }
            try checkPlace()
            return result
        } catch {
            throw EngineError(error)
        }
    }

    /// Writes a store's generation with the next commit.
    func enqueueGeneration(of store: Store) {
        let (id, generation, knownFrom) = (store.id, store.generation, store.knownFrom)
        staging.preparations.append { try $0.saveGeneration(generation, knownFrom: knownFrom, of: id) }
    }

    // MARK: Safe from a power cut

    /// Returns when everything that was committed before the call is on the disk.
    ///
    /// Runs on a thread of its own; calls that come together share one wait.
    public func synchronize() async throws(EngineError) {
        _ = try openWriter
        do { try checkPlace() } catch { throw EngineError(error) }
        try await maintenance.synchronize()
    }
}

extension Database {
    /// Runs a statement that is compiled once, and kept.
    func run(sql: String, arguments: StatementArguments = StatementArguments()) throws {
        try cachedStatement(sql: sql).execute(arguments: arguments)
    }

    /// The greatest id that a row of the table has.
    func greatestID(in table: String) throws -> Int64 {
        let id = try Int64.fetchOne(self, sql: "SELECT max(id) FROM \(table)") ?? 0
        guard UInt64(counting: id) != nil else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "an impossible id")
        }
        return id
    }
}
