// SPDX-License-Identifier: Apache-2.0

internal import GRDB
public import PropertyList
internal import Replication

extension UserDatabase {
    /// Forgets a store on this device: its values, its history, and what it has taken in of any account.
    ///
    /// The store is empty afterwards; its generation goes on. It is passed over when an account is downloaded,
    /// until ``remember(store:)``. Everything else of this device goes on under a new origin, since the account
    /// may hold writes that the store does not know of any more.
    /// - Returns: the keys that were visible; `nil` if the store held nothing.
    public func forget(store identifier: String) throws(EngineError) -> [Key]? {
        try commit()
        guard try storeIdentifiers().contains(identifier) else { return nil }
        let store = try store(identifier)
        let before = store.values
        let origin = origins.draw()
        try write { db in
            try db.saveOrigin(origin)
            try db.deleteReplicas("store = ?", [store.id])
            try db.saveGeneration(store.generation + 1, knownFrom: store.generation + 1, of: store.id)
            try db.execute(sql: "UPDATE store SET forgotten = 1 WHERE id = ?", arguments: [store.id])
        }
        origins.adopt(origin)
        try reload(store)
        return before.keys.sorted()
    }

    /// Takes a store that was forgotten into use again: every account is downloaded anew, for what it has of it.
    public func remember(store: Store) throws(EngineError) {
        try commit()
        try beginAnew(store.identifier) { db in
            try db.execute(sql: "UPDATE store SET forgotten = 0 WHERE id = ?", arguments: [store.id])
        }
    }

    /// Lets a store take part in the account's sync, or stay as it is on this device.
    public func synchronize(store identifier: String, _ isSynchronized: Bool) throws(EngineError) {
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
        if isSynchronized { return try beginAnew(identifier, change) }
        try write { db in
            try change(db)
            // What is shown of the account before goes with the next download, and this store stays as it is.
            guard store.hasPreviousValues, let previous else { return }
            try db.saveOrigin(origin)
            try db.carry(
                from: previous, to: account, ids: replicaIDs, under: origin, time: environment.time(),
                stores: "id = \(store.id)")
            try skipReplicaIDs(db)
        }
        try reload(store)
    }

    /// Takes a store into use, of which this device lacks what accounts have: they are downloaded anew for it.
    ///
    /// What is written to it before that is done is provisional, if nothing of the account was there yet.
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
        if let store = loadedStore(identifier) { try reload(store) }
    }
}
