// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
package import Replication

/// How far the download and the upload of the current account have come.
package struct AccountProgress {
    let database: UserDatabase

    private var account: Int64 { database.account.id }

    /// Records where a complete download ended, after its changes were committed.
    ///
    /// After the first one, every store of the account has everything that the account has.
    /// - Parameters:
    ///   - isComplete: whether everything in the remote was joined.
    ///   - waiting: the stores whose values have not arrived nevertheless.
    /// - Returns: the loaded stores to which nothing had arrived yet, with the keys that have changed because they
    ///   still showed the previous account's values.
    @discardableResult
    package func completeDownload(
        cursor: [UInt8], isComplete: Bool = true, besides waiting: Set<String> = []
    ) throws(EngineError) -> [StoreViewChange] {
        let (account, shown) = (database.account, database.shownAccounts)
        let hadPreviousValues = database.previous != nil
        let late = database.loadedStores.filter { !$0.shared.isDownloaded && $0.isReplicated }.map { ($0, $0.values) }
        let arrived = try storesAwaitingDownload().filter { !waiting.contains($0) }
        let lastPull = isComplete ? database.environment.time() : account.lastPull
        database.account = try database.write { db in
            if hadPreviousValues { try db.raiseGenerations(of: shown) }
            try db.run(
                sql: "UPDATE account SET cursor = ?, pulled = ? WHERE id = ?",
                arguments: [Data(cursor), Int64(bitPattern: lastPull), account.id])
            // While a store wasn't synced, the account may have been published again without it.
            if account.beginsAnew {
                try db.run(sql: "UPDATE account SET pushed = 0 WHERE id = ?", arguments: [account.id])
            }
            for store in arrived {
                try db.run(
                    sql: """
                        UPDATE replica SET downloaded = 1
                        WHERE account = ? AND store = (SELECT id FROM store WHERE identifier = ?)
                        """, arguments: [account.id, store])
            }
            try db.setProperty("backdrop", nil)
            try db.setProperty("awaiting-remote", nil)
            return try db.account(account.id) ?? account
        }
        database.previous = nil
        database.isAwaitingRemote = false
        if hadPreviousValues {
            for store in database.loadedStores { try database.reload(store) }
            // The account from before is no longer shown.
            database.leftovers.pruneAccounts()
        }
        return late.map { store, before in
            if !waiting.contains(store.identifier) { store.shared.isDownloaded = true }
            return StoreViewChange(store: store, since: before)
        }
    }

    /// Records that a complete download has found nothing new.
    package func noteDownload() { database.account.lastPull = database.environment.time() }

    /// Records that what was uploaded is gone from the remote, as if nothing had ever been uploaded. So this device's
    /// writes are pending again, also in stores that are excluded from sync, which the next upload leaves out.
    package func forgetPublication() throws(EngineError) {
        try database.commit()
        database.summaries.settle()
        try database.write { db in
            try db.run(sql: "UPDATE account SET pushed = 0 WHERE id = ?", arguments: [account])
            try db.run(
                sql: "UPDATE OR FAIL replica SET published = 0, counted = NULL WHERE account = ? AND published <> 0",
                arguments: [account])
        }
        database.account.lastPush = 0
        for store in database.loadedStores { try database.reload(store) }
    }

    /// SQL: the ids of the stores that are synced and not forgotten. Layers are not synced.
    static let replicatedStores = """
        (SELECT id FROM store WHERE synchronized AND NOT forgotten AND identifier NOT GLOB '!*')
        """

    /// Returns the account's stores whose first download is not complete yet, sorted.
    package func storesAwaitingDownload() throws(EngineError) -> [String] {
        try database.read { db in
            try String.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT identifier FROM replica JOIN store ON store.id = replica.store
                        WHERE account = ? AND NOT downloaded AND store.id IN \(Self.replicatedStores)
                        ORDER BY identifier
                        """), arguments: [account])
        }
    }

    /// Returns the stores that this device publishes: those of the current account whose values have arrived.
    package func publishedStores() throws(EngineError) -> [AccountStore] {
        try database.read { db in
            try Row.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT identifier, published,
                            max(replica.sequence, \(ChangeID.lastSequence(of: "replica.id"))) AS last
                        FROM replica JOIN store ON store.id = replica.store
                        WHERE account = ? AND downloaded AND store.id IN \(Self.replicatedStores) ORDER BY identifier
                        """), arguments: [account]
            ).map { row in
                AccountStore(
                    identifier: try row.decode(forColumn: "identifier"), sequence: try row.counter("last"),
                    published: try row.counter("published"))
            }
        }
    }

    /// Returns the first store of the account with entries that break the rules for keys and values, and their number.
    package func hiddenEntries() throws(EngineError) -> (store: String, count: Int)? {
        try database.read { db in
            try Row.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT identifier, hidden FROM replica JOIN store ON store.id = replica.store
                        WHERE account = ? AND hidden > 0 AND store.id IN \(Self.replicatedStores)
                        ORDER BY identifier LIMIT 1
                        """), arguments: [account]
            ).map { (try $0.decode(atIndex: 0), try $0.decode(atIndex: 1)) }
        }
    }

    /// Marks what the remote has acknowledged: each store's changes up to a sequence.
    /// - Parameter origin: the origin under which they were uploaded. If the device has taken another one meanwhile,
    ///   sequences may have begun anew, and nothing is marked.
    package func markPublished(_ sequences: [String: UInt64], under origin: Origin) throws(EngineError) {
        guard origin == database.origin else { return }
        // An upload counts even if the clock stands at the epoch.
        let lastPush = max(1, database.environment.time())
        let lastSequence = "max(sequence, \(ChangeID.lastSequence(of: "replica.id")))"
        try database.write { db in
            for (identifier, sequence) in sequences {
                try db.run(
                    sql: """
                        UPDATE replica SET published = max(published, min(?, \(lastSequence))), pending = NULL
                        WHERE account = ? AND store = (SELECT id FROM store WHERE identifier = ?)
                        """,
                    arguments: [Int64(bitPattern: sequence), account, identifier])
            }
            try db.run(
                sql: "UPDATE account SET pulled = ?, pushed = ? WHERE id = ?",
                arguments: [Int64(bitPattern: database.account.lastPull), Int64(bitPattern: lastPush), account])
        }
        database.account.lastPush = lastPush
        for store in database.loadedStores where store.shared.account == account {
            if let sequence = sequences[store.identifier] {
                store.shared.published = max(store.shared.published, min(sequence, store.shared.sequence))
            }
        }
    }
}
