// SPDX-License-Identifier: Apache-2.0

internal import GRDB
package import PropertyList
internal import Replication

extension UserDatabase {
    /// Forgets a store on this device: its values, its history, and its version vectors, in all accounts.
    ///
    /// Afterwards the store is empty, but its generation still grows. Downloads skip it until ``remember(store:)``. The
    /// device takes a new origin, because accounts may hold writes that the store no longer knows of.
    /// - Parameter isInUse: whether the store comes back into use in the same transaction.
    /// - Returns: the keys that were visible; `nil` if the store held nothing.
    package func forget(store identifier: String, whileInUse isInUse: Bool = false) throws(EngineError) -> [Key]? {
        try commit()
        guard try storeIdentifiers().contains(identifier) else { return nil }
        let store = try store(identifier)
        let before = store.values
        let origin = origins.draw()
        let change: (Database) throws -> Void = { db in
            try db.saveOrigin(origin)
            try db.deleteReplicas("store = ?", [store.id])
            try db.saveGeneration(store.generation + 1, knownFrom: store.generation + 1, of: store.id)
            try db.execute(sql: "UPDATE store SET forgotten = ? WHERE id = ?", arguments: [!isInUse, store.id])
        }
        if isInUse { try beginAnew(identifier, change) } else { try write(change) }
        origins.adopt(origin)
        try reload(store)
        try leftovers.look()
        return before.keys.sorted()
    }

    /// Brings a forgotten store back into use. Every account is downloaded again, for its values of the store.
    package func remember(store: Store) throws(EngineError) {
        try commit()
        try beginAnew(store.identifier) { db in
            try db.execute(sql: "UPDATE store SET forgotten = 0 WHERE id = ?", arguments: [store.id])
        }
        try reload(store)
    }

    /// Brings all forgotten stores back into use, before this device becomes the only one that may have what they hold
    /// in the account.
    package func rememberAll() throws(EngineError) {
        for identifier in try forgottenStores() { try remember(store: try store(identifier)) }
    }

    /// Returns the identifiers of the stores that are forgotten.
    package func forgottenStores() throws(EngineError) -> [String] {
        try read { db in try String.fetchAll(db, sql: "SELECT identifier FROM store WHERE forgotten ORDER BY id") }
    }

    /// Sets whether a store is synced, or stays as it is on this device.
    package func synchronize(store identifier: String, _ isSynchronized: Bool) throws(EngineError) {
        try change(store: identifier, synchronizing: isSynchronized)
        recordExcluded()
    }

    /// Returns the identifiers of the apps' stores that are excluded from sync, sorted.
    package func excludedStores() throws(EngineError) -> [String] {
        let sql = "SELECT identifier FROM store WHERE NOT synchronized AND identifier NOT GLOB '!*' ORDER BY identifier"
        return try read { db in try String.fetchAll(db, sql: sql) }
    }

    /// Records which stores are excluded from sync, for a salvage. If it fails, the next opening or change does it.
    func recordExcluded() {
        guard let stores = try? excludedStores() else { return }
        try? DatabaseTraces(directory: directory).recordExcluded(stores)
    }

    private func change(store identifier: String, synchronizing isSynchronized: Bool) throws(EngineError) {
        try commit()
        let store = try store(identifier)
        if store.isSynchronized == isSynchronized { return }
        let base = Int64(bitPattern: store.generation)
        let change: (Database) throws -> Void = { db in
            try db.execute(
                sql: """
                    INSERT INTO store (id, identifier, generation, known_from, synchronized) VALUES (?, ?, ?, ?, ?)
                    ON CONFLICT DO UPDATE SET synchronized = excluded.synchronized
                    """,
                arguments: [store.id, identifier, base, base, isSynchronized])
        }
        if isSynchronized {
            try beginAnew(identifier, change)
        } else {
            try write { db in
                try change(db)
                // The previous account's values disappear with the next download, but this store has to stay as it is.
                guard store.hasPreviousValues, let previous else { return }
                try db.saveOrigin(origin)
                try db.migrate(
                    from: previous, to: account, ids: replicaIDs, under: origin, time: environment.time(),
                    stores: "id = \(store.id)")
                try skipReplicaIDs(db)
            }
        }
        try reload(store)
    }

    /// Brings a store into use that lacks what accounts have, so that they are downloaded again for it.
    ///
    /// Writes to it are provisional until that is done, unless it already had something of the account. The caller reloads
    /// it.
    private func beginAnew(_ identifier: String, _ change: (Database) throws -> Void) throws(EngineError) {
        let current = account
        account = try write { db in
            try change(db)
            try db.execute(
                sql: """
                    INSERT OR IGNORE INTO replica (id, store, account, downloaded)
                        SELECT \(replicaIDs.ofSelectedRows), store.id, account.id, 0 FROM store, account WHERE store.identifier = ? AND account.id > 0
                    """,
                arguments: [identifier])
            try db.execute(sql: "UPDATE account SET cursor = x'' WHERE cursor IS NOT NULL")
            try skipReplicaIDs(db)
            return try db.account(current.id) ?? current
        }
        account.lastPull = max(account.lastPull, current.lastPull)
        downloadEpoch += 1
    }
}
