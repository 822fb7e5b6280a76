// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
package import PropertyList
package import Replication

/// What a change of the account did to a loaded store.
package struct StoreViewChange {
    /// The store.
    package let store: Store
    /// The keys whose visible value has changed, sorted.
    package let keys: [Key]

    /// Compares a store's values with earlier ones.
    package init(store: Store, since before: [Key: Value]) {
        self.store = store
        let after = store.values
        keys = Set(before.keys).union(after.keys).filter { before[$0] != after[$0] }.sorted()
    }
}

extension UserDatabase {
    /// Whether the values shown belong to an account, signed in or not.
    package var hasAccount: Bool { account.id != Account.none }

    /// Returns a random name of this device, which lasts as long as the database: 16 hexadecimal digits.
    /// - Parameter isForeign: whether the database is a copy of another device's, and has to get a name of its own.
    package func deviceIdentifier(isForeign: Bool = false) throws(EngineError) -> String {
        let drawn = Int64(bitPattern: environment.random())
        let bits = try write { db in
            if !isForeign, let bits = try db.property("device") { return bits }
            try db.setProperty("device", drawn)
            return drawn
        }
        return Origin(bits: UInt64(bitPattern: bits)).description
    }

    /// Makes an account the current one.
    ///
    /// Values from before any sign-in become provisional writes to the account. Another account's values stay in that
    /// account, and are shown until those of the new one have arrived. A store that isn't synced keeps its values,
    /// unless this device already has it in the new account. The device takes a new origin, so that no dot names two
    /// writes if the two accounts turn out to be one.
    /// - Parameters:
    ///   - identifier: the account's identifier.
    ///   - bringsValues: whether to write the visible values to the account, which is new and empty.
    /// - Returns: the loaded stores, with what has changed in them.
    /// - Throws: `EngineError.noRoom` if the disk has too little room; then nothing has changed, as with any error.
    package func enter(account identifier: String, bringingValues bringsValues: Bool) throws(EngineError)
        -> [StoreViewChange]
    {
        if account.identifier == identifier { return [] }
        let (former, shown, origin) = (account, [account, previous].compactMap { $0 }, origins.draw())
        let stores = bringsValues ? HiddenStores.isAppStore : "NOT synchronized"
        try checkDisk(
            forChangesOf: former.id == Account.none
                ? "account = \(Account.none)"
                : "account IN (\(Self.list(shownAccounts))) AND store IN (SELECT id FROM store WHERE \(stores))")
        let changes = try changingView { db in
            try db.execute(sql: "INSERT OR IGNORE INTO account (identifier) VALUES (?)", arguments: [identifier])
            guard let entered = try db.account(named: identifier), entered.id > 0 else {
                throw EngineError.storage("an account can't be named \"\(identifier)\"")
            }
            try db.saveOrigin(origin)
            if former.id == Account.none {
                try offerUnsignedValues(to: entered, under: origin, db)
            } else {
                for account in shown {
                    try db.migrate(
                        from: account, to: entered, ids: replicaIDs, under: origin, time: environment.time(),
                        stores: stores, replaces: account.id == former.id)
                }
                try db.execute(
                    sql: "UPDATE account SET left = ? WHERE id = ?",
                    arguments: [Int64(bitPattern: environment.time()), former.id])
            }
            let keepsFormer = former.id != Account.none && !entered.isDownloaded
            return (entered, previous: keepsFormer ? former : nil)
        }
        origins.adopt(origin)
        leftovers.pruneAccounts()
        return changes
    }

    /// Forgets the current account's values on this device, including their history.
    package func clearAccount() throws(EngineError) -> [StoreViewChange] {
        let cleared = account
        let origin = origins.draw()
        let changes = try changingView { db in
            try db.saveOrigin(origin)
            try db.deleteReplicas("account = ?", [cleared.id])
            try db.execute(
                sql: "UPDATE account SET cursor = NULL, pulled = 0, pushed = 0, left = 0 WHERE id = ?",
                arguments: [cleared.id])
            try db.execute(sql: "DELETE FROM writer WHERE account = ?", arguments: [cleared.id])
            // Other accounts keep their values, but these no longer count as history here.
            try db.execute(sql: "UPDATE account SET left = 0")
            guard let none = try db.account(Account.none) else { throw EngineError.corrupt("an account has no row") }
            return (none, previous: nil)
        }
        origins.adopt(origin)
        return changes
    }

    /// Returns what stores hold in accounts other than the current one that have these names on this device.
    package func statesOfOthers(named names: Set<String>) throws(EngineError) -> [(store: String, state: StoreState)] {
        try read { db in
            try names.sorted().flatMap { name in
                try Row.fetchAll(
                    db.cachedStatement(
                        sql: """
                            SELECT replica.*, store.identifier FROM replica JOIN store ON store.id = replica.store
                                JOIN account ON account.id = replica.account
                            WHERE account.identifier = ? AND account.id > 0 AND account.id <> ? ORDER BY replica.id
                            """),
                    arguments: [name, account.id]
                ).map { row in
                    let replica = try Replica(row: row, limits: limits, db: db)
                    return (try row.decode(forColumn: "identifier"), replica.state)
                }
            }
        }
    }

    /// Renames the current account to the smallest identifier of several that are the same account.
    ///
    /// The device may have been signed in to it under the others too. What it has there must have been joined before
    /// (see ``statesOfOthers(named:)``). What is pending in stores that were removed from this device is migrated over here.
    /// - Parameter aliases: the other identifiers.
    /// - Returns: the loaded stores, with what has changed in them.
    @discardableResult
    package func rename(accountTo identifier: String, aliases: Set<String> = []) throws(EngineError)
        -> [StoreViewChange]
    {
        let current = account
        let id = current.id
        let others = try read { db in
            try aliases.union([identifier]).sorted().compactMap { try db.account(named: $0) }.filter { $0.id != id }
        }
        if identifier == current.identifier, others.isEmpty {
            try names.note(aliases: aliases.subtracting([identifier]))
            return []
        }
        if !others.isEmpty { try checkDisk(forChangesOf: "account IN (\(Self.list(others.map(\.id))))") }
        try commit()
        let before = loadedStores.map { ($0, $0.values) }
        account = try write { db in
            if !others.isEmpty { try db.raiseGenerations(of: shownAccounts) }
            for other in others {
                guard other.id > 0 else {
                    throw EngineError.storage("an account can't be named \"\(other.identifier)\"")
                }
                try db.saveOrigin(origin)
                try db.migrate(
                    from: other, to: current, ids: replicaIDs, under: origin, time: environment.time(),
                    changes: "\(Cause.isOwn) AND sequence > published")
                try db.deleteReplicas("account = ?", [other.id])
                try db.execute(
                    sql: "UPDATE OR REPLACE writer SET account = ? WHERE account = ?", arguments: [id, other.id])
                try db.saveFormerNames([], of: other.id)
                try db.saveSuccessor(nil, of: other.id)
                try db.saveEncrypted(false, of: other.id)
                try db.execute(sql: "DELETE FROM account WHERE id = ?", arguments: [other.id])
                try skipReplicaIDs(db)
            }
            let known = try db.formerNames(of: id).subtracting([identifier])
            let own = Set(others.map(\.identifier)).union([current.identifier]).subtracting([identifier])
            try db.saveFormerNames(known.union(aliases).subtracting([identifier]), first: own, of: id)
            try db.saveSuccessor(nil, of: id)
            try db.execute(sql: "UPDATE account SET identifier = ? WHERE id = ?", arguments: [identifier, id])
            return try db.account(id) ?? account
        }
        account.lastPull = max(account.lastPull, current.lastPull)
        space.forgetHistorySize()
        try leftovers.look()
        for (store, _) in before { try reload(store) }
        return before.map { StoreViewChange(store: $0, since: $1) }
    }

    // MARK: Parts

    /// Makes another account the current one, in one transaction with the work of `body`.
    private func changingView(
        _ body: (Database) throws -> (account: Account, previous: Account?)
    ) throws(EngineError) -> [StoreViewChange] {
        try commit()
        summaries.settle()
        let before = loadedStores.map { ($0, $0.values) }
        let current = try write { db in
            // Before `body`, which may remove the only changes that record a store's generation.
            try db.raiseGenerations(of: shownAccounts)
            let current = try body(db)
            try db.setProperty("account", current.account.id)
            try db.setProperty("backdrop", current.previous?.id)
            // This time was that of another remote.
            try db.setProperty("tidied", nil)
            try skipReplicaIDs(db)
            return current
        }
        (account, previous, lastGarbageCollection) = (current.account, current.previous, 0)
        space.forgetHistorySize()
        try leftovers.look()
        for (store, _) in before { try reload(store) }
        return before.map { StoreViewChange(store: $0, since: $1) }
    }

    /// The ids of the accounts whose values stores show: the current one, and the one before until all has arrived.
    var shownAccounts: [Int64] { [account.id] + (previous.map { [$0.id] } ?? []) }

    /// SQL: a list of ids.
    private static func list(_ ids: [Int64]) -> String { ids.map(String.init).joined(separator: ", ") }

    func reload(_ store: Store) throws(EngineError) {
        let fresh = try read { db in try Store(store.identifier, in: self, localKeys: store.localKeys, db: db) }
        store.takeOver(fresh)
    }

    /// Turns what was written before the first sign-in into provisional writes to an account.
    ///
    /// The values keep their order in time, but get the present origin. Tombstones and dropped entries stay behind,
    /// because what was removed before must not remove anything of the account.
    private func offerUnsignedValues(to account: Account, under origin: Origin, _ db: Database) throws {
        let unsigned = "(SELECT id FROM replica WHERE account = \(Account.none))"
        try db.execute(sql: "DELETE FROM context WHERE replica IN \(unsigned)")
        try db.execute(
            sql: """
                UPDATE OR FAIL change SET provisional = 1, n = NULL, cause = iif(value IS NULL, :dropped, cause),
                    origin = :origin
                FROM replica WHERE account = \(Account.none) AND \(ChangeID.isOf("replica.id"))
                """,
            arguments: ["dropped": Cause.dropped.rawValue, "origin": Int64(bitPattern: origin.bits)])
        try db.execute(
            sql: """
                UPDATE OR FAIL replica SET account = :account, published = 0, counted = NULL,
                    downloaded = :downloaded AND store IN \(AccountProgress.replicatedStores)
                    WHERE account = \(Account.none) AND NOT EXISTS
                    (SELECT 1 FROM replica AS other WHERE other.account = :account AND other.store = replica.store)
                """,
            arguments: ["account": account.id, "downloaded": account.isDownloaded])
        // What is left belongs to stores that this device already has in the account.
        guard let none = try db.account(Account.none) else { throw EngineError.corrupt("an account has no row") }
        try db.migrate(from: none, to: account, ids: replicaIDs, under: origin, time: environment.time())
        try db.deleteReplicas("account = ?", [Account.none])
    }
}

extension Store {
    /// Takes over what was read again from the database.
    func takeOver(_ fresh: Store) {
        id = fresh.id
        isStored = fresh.isStored
        isForgotten = fresh.isForgotten
        isSynchronized = fresh.isSynchronized
        generation = max(generation, fresh.generation)
        knownFrom = fresh.knownFrom
        shared = fresh.shared
        local = fresh.local
        previous = fresh.previous
    }
}
