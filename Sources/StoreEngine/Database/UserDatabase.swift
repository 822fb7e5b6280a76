// SPDX-License-Identifier: Apache-2.0

// The database of one user: every store, account and change, in one SQLite file.

internal import Foundation
internal import GRDB
public import PropertyList
public import Replication

/// One user's stores and accounts on this device.
public final class UserDatabase {
    /// Where the database is.
    public let directory: String
    /// Time and chance.
    public let environment: Environment
    /// What an app's store may hold.
    public let limits: Limits
    /// What a layer of a defaults domain may hold.
    public let layerLimits: Limits

    private let connection: Connection
    let maintenance: Maintenance
    private var stores = LoadedStores()
    private var staging = WriteBatch()

    /// The names under which this device writes.
    public var origins: Origins
    /// The room that the database takes.
    public var space: DatabaseSpace
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
    /// How far the clock has come in steps that this device believes: with each garbage collection by a day at most; 0:
    /// there was none. In microseconds since 1970.
    var watchedTime: UInt64
    /// Counts what makes a download that is under way worthless: it has to begin anew.
    public internal(set) var downloadEpoch = 0
    /// What was lost with a damaged database has not come back from the remote yet.
    public internal(set) var isAwaitingRemote: Bool

    /// Opens the database in a directory, and makes it if it isn't there.
    /// - Parameters:
    ///   - directory: an existing directory.
    ///   - runtimeDirectory: a directory that does not outlive the running system, for ``OriginRecord``.
    /// - Throws: `EngineError.corrupt` if it has to be set aside (see ``setAside(in:at:)``), `.newer`,
    ///   `.diskFull`, `.storage`.
    public init(
        in directory: String, runtimeDirectory: String?, limits: Limits = .standard, layerLimits: Limits = .domain,
        environment: Environment
    ) throws(EngineError) {
        self.directory = directory
        self.environment = environment
        self.limits = limits
        self.layerLimits = layerLimits
        let path = directory + "/" + DatabaseFile.name
        let record = OriginRecord(of: directory, in: runtimeDirectory)
        do {
            try Salvage.finish(in: directory)
            try Salvage.checkPresence(in: directory)
            let connection = try Connection(to: path)
            self.connection = connection
            space = DatabaseSpace(on: connection)
            maintenance = Maintenance(databasePath: path, disk: environment.disk)
            let now = environment.time()
            let start = try connection.begin { db in
                let properties = try DatabaseProperties(db, now: now)
                return try (
                    origins: Origins(db, on: connection, record, endWord: properties.endWord, environment),
                    properties: properties,
                    stores: db.greatestID(in: "store"), replicas: db.greatestID(in: "replica")
                )
            }
            origins = start.origins
            generationBase = start.properties.generationBase
            account = start.properties.account
            previous = start.properties.previous
            isAwaitingRemote = start.properties.isAwaitingRemote
            lastGarbageCollection = start.properties.lastGarbageCollection
            watchedTime = start.properties.watchedTime
            nextStoreID = start.stores + 1
            replicaIDs = ReplicaIDs(after: start.replicas)
        } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
            // The statements are always the same: what they don't fit is not the schema that was made.
            throw .corrupt(error.message ?? "another schema")
        } catch {
            throw EngineError(error)
        }
        Salvage.leaveTrace(in: directory)
        do { try origins.start() } catch .diskFull {
            // Nothing can be uploaded either: that is counted first. There is room once somebody starts anew.
        }
    }

    /// Writes what is left to the database file and closes it. Whatever is asked of it afterwards fails.
    public func close() {
        origins.leaveEndWord()
        connection.close()
    }

    /// Lets go of memory that only makes the next use faster.
    public func releaseMemory() { connection.releaseMemory() }

    /// Closes a database that is damaged, as ``close()`` but without writing to it. Whatever is asked of it afterwards
    /// fails with `EngineError.corrupt`.
    public func abandon(_ reason: String) { connection.close(because: .corrupt(reason)) }

    /// Whether ``abandon(_:)`` has closed it.
    public var isAbandoned: Bool { connection.isDamaged }

    /// Whether the file that is open is still the one in the directory.
    public var isInPlace: Bool { connection.isInPlace }

    // MARK: Stores

    /// The store of an identifier, loaded if it isn't; whoever keeps the reference keeps it in memory.
    /// - Parameter localKeys: the keys that the app's manifest keeps on the device.
    public func store(_ identifier: String, localKeys: LocalKeys = .none) throws(EngineError) -> Store {
        if let store = loadedStore(identifier) { return store }
        let store = try read { db in try Store(identifier, in: self, localKeys: localKeys, db: db) }
        stores.add(store)
        return store
    }

    /// The store of an identifier, if it is loaded.
    public func loadedStore(_ identifier: String) -> Store? { stores[identifier] }

    /// The stores that are loaded.
    public var loadedStores: [Store] { stores.all }

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

    /// A store goes.
    func unload(_ store: Store) { stores.remove(store) }

    func allocateStoreID() -> Int64 {
        defer { nextStoreID += 1 }
        return nextStoreID
    }

    /// What the store of an identifier may hold.
    func limits(of identifier: String) -> Limits { Store.isLayer(identifier) ? layerLimits : limits }

    /// What a store holds in an account.
    func replica(of store: Int64, account: Int64, limits: Limits, _ db: Database) throws -> Replica {
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
        return try replica(of: store, account: previous.id, limits: limits, db)
    }

    // MARK: Committing

    /// Whether there are writes that wait for ``commit()``.
    public var hasStagedChanges: Bool { !staging.isEmpty }

    /// Writes everything that is staged in one transaction.
    /// - Throws: what kept it from being written; then all of it has been taken back.
    public func commit() throws(EngineError) {
        staging.addHiddenCounts()
        let batch = staging
        staging = WriteBatch()
        if batch.isEmpty { return batch.drop() }
        do { try writeMakingRoom(batch) } catch {
            batch.takeBack()
            throw error
        }
        if batch.storesOrigin { origins.noteStored() }
        maintenance.noteCommit(bytes: batch.size)
        for store in batch.finish() { trim(store) }
    }

    /// Writes a batch. Where the file may not grow any more, history gives way to it.
    private func writeMakingRoom(_ batch: WriteBatch) throws(EngineError) {
        do { try write(batch) } catch .diskFull where space.mayMakeRoom {
            guard try removeOldestHistory(bytes: 2 * batch.bytes + DatabaseSpace.leastRoom) else { throw .diskFull }
            try write(batch)
        }
    }

    private func write(_ batch: WriteBatch) throws(EngineError) {
        let writer = try openWriter
        if batch.isOnlyChanges {
            try connection.write(directly: batch.writeChanges)
        } else {
            try write { try batch.write(writer, $0) }
        }
    }

    /// Keeps what a store is, and adds it to the next transaction, before it is changed.
    func willStage(_ store: Store) {
        guard store.undo == nil else { return }
        store.undo = Undo(store)
        staging.add(store)
        // A new origin gets its row with the first change that is made under it.
        if !origins.isStored { staging.add(origins.current) }
    }

    /// Adds a change to the next transaction.
    func enqueue(_ row: ChangeRow, key: Key, content: Record.Content, of replica: Replica, in store: Store) {
        staging.add(row, key: key, content: content, of: replica, in: store)
    }

    /// Adds to the next transaction what is done before its changes are written.
    func enqueue(replica: Replica, in store: Store, _ body: @escaping (Database) throws -> Void) {
        staging.add(replica, of: store)
        staging.prepare(body)
    }

    // MARK: Access

    /// What writes changes, until the connection is closed.
    var openWriter: ChangeWriter {
        get throws(EngineError) { try connection.openWriter }
    }

    /// Reads on the connection that writes.
    func read<T>(_ body: (Database) throws -> T) throws(EngineError) -> T { try connection.read(body) }

    /// Does something in a transaction.
    func write<T>(_ body: (Database) throws -> T) throws(EngineError) -> T { try connection.write(body) }

    /// Writes a store's generation with the next commit.
    func enqueueGeneration(of store: Store) {
        let (id, generation, knownFrom) = (store.id, store.generation, store.knownFrom)
        staging.prepare { try $0.saveGeneration(generation, knownFrom: knownFrom, of: id) }
    }

    // MARK: Safe from a power cut

    /// Returns when everything that was committed before the call is on the disk.
    ///
    /// Runs on a thread of its own; calls that come together share one wait.
    public func synchronize() async throws(EngineError) {
        try connection.check()
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
