// SPDX-License-Identifier: Apache-2.0

// The database of one user: every store, account and change, in one SQLite file.

internal import Foundation
internal import GRDB
package import PropertyList
package import Replication

/// One user's stores and accounts on this device.
package final class UserDatabase {
    /// The directory of the database.
    package let directory: String
    /// Time and randomness.
    package let environment: Environment
    /// The limits of an app's store.
    package let limits: Limits
    /// The limits of a defaults domain's layer.
    package let layerLimits: Limits

    private let connection: Connection
    let maintenance: Maintenance
    private var stores = LoadedStores()
    private var staging = WriteBatch()

    /// The origins under which this device writes and has written.
    package var origins: Origins
    /// The size of the database, and its history.
    package var space: DatabaseSpace
    private var nextStoreID: Int64
    private(set) var replicaIDs: ReplicaIDs
    var replicaSummaries = ReplicaSummaries()
    /// The generation of a store that was never written to. A store that is made anew never gets a lower one.
    var generationBase: UInt64

    /// The account whose values are shown and written.
    package internal(set) var account: Account
    /// The previous account, whose values are shown until those of the current one have arrived.
    var previous: Account?
    /// When garbage was last collected, in microseconds since 1970; 0 if never.
    package internal(set) var lastGarbageCollection: UInt64
    /// How far this device has watched its clock advance, in microseconds since 1970; 0 before the first garbage
    /// collection. Each garbage collection advances it by a day at most, so that it doesn't follow a clock that jumps.
    var watchedTime: UInt64
    /// The changes of replicas that are gone.
    package private(set) lazy var leftovers = Leftovers(of: self)
    /// Called when ``commit()`` has reverted everything staged, whoever called it.
    package var onRevert: ((EngineError) -> Void)?
    /// Returns how many bytes of the disk a long transaction may take besides those that the database has.
    package var roomOnDisk: () -> Int = { .max }
    /// Counts the events that make a download under way useless, so that it has to begin again.
    package internal(set) var downloadEpoch = 0
    /// Whether what was lost with a damaged database has yet to come back from the remote.
    package internal(set) var isAwaitingRemote: Bool

    /// Opens the database in a directory, or creates it.
    /// - Parameters:
    ///   - directory: an existing directory.
    ///   - runtimeDirectory: a directory that does not outlive the running system, for ``OriginRecord``.
    /// - Throws: `EngineError.corrupt` if the database has to be set aside (see ``ClosedDatabase``), `.newer`,
    ///   `.diskFull`, `.storage`.
    package init(
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
            try DatabaseFile.checkAccess(in: directory)
            try Salvage.finish(in: directory)
            try DatabaseTraces(directory: directory).checkPresence()
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
                    stores: db.greatestID(in: "store"), replicas: db.greatestReplicaID, hasLeftovers: db.hasLeftovers
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
            leftovers.exist = start.hasLeftovers
        } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
            // The statements never change, so if one doesn't fit, the schema is not ours.
            throw .corrupt(error.message ?? "another schema")
        } catch {
            throw EngineError(error)
        }
        connection.onCommit = { [maintenance] in maintenance.noteLog(pages: $0) }
        connection.onFailure = { [maintenance] in maintenance.emptyLog(beyond: Maintenance.keptLog) }
        DatabaseTraces(directory: directory).noteOpened()
        recordExcluded()
        do { try origins.start() } catch .diskFull {
            // Nothing can be uploaded either, as uploads are counted first. The next start takes a new origin again.
        }
    }

    /// Moves what is left in the log to the database file, and closes it. Later calls fail.
    package func close() {
        summaries.settle()
        origins.writeShutdownToken()
        connection.close()
    }

    /// Frees memory that only makes the next use faster.
    package func releaseMemory() { connection.releaseMemory() }

    /// Closes a damaged database, as ``close()`` does but without writing to it. Later calls fail with
    /// `EngineError.corrupt`.
    package func abandon(_ reason: String) { connection.close(because: .corrupt(reason)) }

    /// Called when a piece of work in the database begins and ends, whatever its purpose.
    package var observer: WorkObserver? {
        get { connection.observer }
        set { connection.observer = newValue }
    }

    /// Whether ``abandon(_:)`` has closed the database.
    package var isAbandoned: Bool { connection.isDamaged }

    /// Whether the open file is still the one in the directory.
    package var isInPlace: Bool { connection.isInPlace }

    // MARK: Parts

    /// What the stores hold, in numbers.
    package var summaries: StoreSummaries { StoreSummaries(database: self) }
    /// The stores' former values.
    package var history: History { History(database: self) }
    /// How far the current account is downloaded and uploaded.
    package var progress: AccountProgress { AccountProgress(database: self) }
    /// The other identifiers of accounts.
    package var names: AccountNames { AccountNames(database: self) }
    /// The devices that write to the current account.
    package var writers: KnownWriters { KnownWriters(database: self) }
    private var trimmer: StoreTrimmer { StoreTrimmer(database: self) }

    // MARK: Stores

    /// Returns the store with an identifier, and loads it if necessary. It stays loaded as long as it is referenced.
    /// - Parameter localKeys: the keys that the app's manifest keeps on the device.
    package func store(_ identifier: String, localKeys: LocalKeys = .none) throws(EngineError) -> Store {
        if let store = loadedStore(identifier) { return store }
        let store = try read { db in try Store(identifier, in: self, localKeys: localKeys, db: db) }
        stores.add(store)
        // It may have been written before there was this bound.
        if store.shared.isTooLargeToPublish { trimmer.trim(store) }
        return store
    }

    /// Returns the store with an identifier; `nil` if it isn't loaded.
    package func loadedStore(_ identifier: String) -> Store? { stores[identifier] }

    /// The loaded stores, in no order.
    package var loadedStores: [Store] { stores.all }

    /// Returns the identifiers of the stores that have entries or history, sorted.
    package func storeIdentifiers() throws(EngineError) -> [String] {
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

    /// Removes a store that is being freed.
    func unload(_ store: Store) {
        guard stores.remove(store) else { return }
        summaries.note(store)
        for replica in [store.shared, store.local, store.previous] {
            if let replica, !replica.isStored { replicaIDs.takeBack(replica.id) }
        }
    }

    func allocateStoreID() -> Int64 {
        defer { nextStoreID += 1 }
        return nextStoreID
    }

    /// Returns the limits of the store with an identifier.
    func limits(of identifier: String) -> Limits { Store.isLayer(identifier) ? layerLimits : limits }

    /// Reads what a store holds in an account.
    func replica(of store: Int64, account: Int64, limits: Limits, _ db: Database) throws -> Replica {
        let row = try Row.fetchOne(
            db.cachedStatement(sql: "SELECT * FROM replica WHERE account = ? AND store = ?"),
            arguments: [account, store])
        if let row { return try Replica(row: row, limits: limits, db: db) }
        let replica = Replica(id: try replicaIDs.next(), account: account)
        // Once the account's first download is complete, nothing of this store is left to arrive.
        replica.isDownloaded = account == self.account.id && self.account.isDownloaded
        return replica
    }

    /// Skips the ids of replicas that a statement created: see ``ReplicaIDs``.
    func skipReplicaIDs(_ db: Database) throws {
        replicaIDs.skip(to: try db.greatestReplicaID)
    }

    func previousReplica(of store: Int64, unless isDownloaded: Bool, _ db: Database) throws -> Replica? {
        guard let previous, !isDownloaded else { return nil }
        return try replica(of: store, account: previous.id, limits: limits, db)
    }

    // MARK: Committing

    /// Whether writes wait for ``commit()``.
    package var hasStagedChanges: Bool { !staging.isEmpty }

    /// Writes everything that is staged in one transaction.
    /// - Throws: the reason, if it could not be written; then everything staged has been reverted.
    package func commit() throws(EngineError) {
        staging.addHiddenCounts()
        let batch = staging
        staging = WriteBatch()
        if batch.isEmpty { return batch.drop() }
        do { try writeMakingRoom(batch) } catch {
            batch.revert()
            onRevert?(error)
            throw error
        }
        if batch.storesOrigin { origins.noteStored() }
        for store in batch.finish() { trimmer.trim(store) }
    }

    /// Writes a batch. If the file may not grow, removes leftovers and history to make room.
    private func writeMakingRoom(_ batch: WriteBatch) throws(EngineError) {
        do { try write(batch) } catch .diskFull where leftovers.exist {
            _ = try leftovers.shrink(toSize: space.size() - 2 * batch.bytes - DatabaseSpace.leastRoom)
            try writeMakingRoom(batch)
        } catch .diskFull where space.mayMakeRoom {
            guard try history.removeOldest(bytes: 2 * batch.bytes + DatabaseSpace.leastRoom) else { throw .diskFull }
            try write(batch)
        }
    }

    private func write(_ batch: WriteBatch) throws(EngineError) {
        let writer = try openWriter
        if batch.isOnlyChanges {
            try maintenance.checkLog()
            try connection.write(directly: batch.writeChanges)
        } else {
            try write { try batch.write(writer, $0) }
        }
    }

    /// Saves a store's state, and adds the store to the next transaction. Must be called before the store is changed.
    func willStage(_ store: Store) {
        guard store.undo == nil else { return }
        store.undo = Undo(store)
        staging.add(store)
        // A new origin gets its row with the first change under it.
        if !origins.isStored { staging.add(origins.current) }
    }

    /// Adds a change to the next transaction.
    func enqueue(_ row: ChangeRow, key: Key, content: Record.Content, of replica: Replica, in store: Store) {
        staging.add(row, key: key, content: content, of: replica, in: store)
    }

    /// Adds work to the next transaction, to be done before its changes are written.
    func enqueue(replica: Replica, in store: Store, _ body: @escaping (Database) throws -> Void) {
        staging.add(replica, of: store)
        staging.prepare(body)
    }

    // MARK: Time

    /// The time before which replaced values are not kept, in microseconds since 1970.
    var horizon: UInt64 {
        let now = environment.time()
        return now - min(now, Retention.microseconds)
    }

    /// How far the clock is ahead of what this device has watched, in microseconds. So clock jumps age no tombstone.
    var clockDoubt: UInt64 {
        let now = environment.time()
        return watchedTime == 0 ? 0 : now - min(now, watchedTime)
    }

    /// Records that garbage is collected now in the current account's remote.
    package func noteGarbageCollection() throws(EngineError) {
        let time = environment.time()
        let watched = watchedTime == 0 ? time : min(time, watchedTime + Retention.day)
        try write { db in
            try db.setProperty("tidied", Int64(bitPattern: time))
            try db.setProperty("watched", Int64(bitPattern: watched))
        }
        (lastGarbageCollection, watchedTime) = (time, watched)
    }

    // MARK: Access

    /// The writer of changes. Throws once the connection is closed.
    var openWriter: ChangeWriter {
        get throws(EngineError) { try connection.openWriter }
    }

    /// Reads on the connection that also writes.
    func read<T>(_ body: (Database) throws -> T) throws(EngineError) -> T { try connection.read(body) }

    /// Runs `body` in a transaction.
    func write<T>(_ body: (Database) throws -> T) throws(EngineError) -> T {
        try maintenance.checkLog()
        return try connection.write(body)
    }

    /// Adds a store's generation to the next transaction.
    func enqueueGeneration(of store: Store) {
        let (id, generation, knownFrom) = (store.id, store.generation, store.knownFrom)
        staging.prepare { try $0.saveGeneration(generation, knownFrom: knownFrom, of: id) }
    }

    // MARK: Safe from a power cut

    /// Returns when everything that was committed before the call is on the disk.
    ///
    /// The work runs on a thread of its own, and concurrent calls share one wait.
    package func synchronize() async throws(EngineError) {
        try connection.check()
        try await maintenance.synchronize()
    }
}

extension Database {
    /// Runs a statement that is compiled once and kept.
    func run(sql: String, arguments: StatementArguments = StatementArguments()) throws {
        try cachedStatement(sql: sql).execute(arguments: arguments)
    }

    /// The greatest id of a replica, be it one that is gone and has changes left.
    var greatestReplicaID: Int64 {
        get throws { max(try greatestID(in: "replica"), try greatestID(in: "leftover", column: "replica")) }
    }

    /// Returns the greatest id in a table; 0 if the table is empty.
    func greatestID(in table: String, column: String = "id") throws -> Int64 {
        let id = try Int64.fetchOne(self, sql: "SELECT max(\(column)) FROM \(table)") ?? 0
        guard UInt64(counting: id) != nil else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "an impossible id")
        }
        return id
    }
}
