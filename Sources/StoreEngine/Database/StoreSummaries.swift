// SPDX-License-Identifier: Apache-2.0

// Queries over all stores: which of them hold values, and how much is pending.
//
// Clients ask at any time, and the thread that answers them answers everybody's calls, so this must not read the
// changes. A replica in memory knows its own numbers. The others have them in their rows, with the sequence up to which
// they were counted. They hold while that is the replica's last sequence, so a write need not update them, and a crash
// does no harm: what is out of date is counted once more.

internal import GRDB
internal import PropertyList
internal import Replication

/// Counts over all stores of a database, without reading their changes.
package struct StoreSummaries {
    let database: UserDatabase

    private var account: Int64 { database.account.id }

    /// Returns the identifiers of the stores that have a value, shown or not, sorted.
    package func storesWithValues() throws(EngineError) -> [String] {
        try all(where: "true").filter(\.summary.holdsValues).reduce(into: []) { stores, found in
            // A store's replicas follow each other.
            if stores.last.map({ Text($0) }) != Text(found.store) { stores.append(found.store) }
        }
    }

    /// Returns the number of keys with a pending change, in all apps' stores that are synced.
    package func pendingChanges() throws(EngineError) -> Int {
        try pendingChanges(HiddenStores.isAppStore)
    }

    /// Returns the same of one store.
    package func pendingChanges(in store: String) throws(EngineError) -> Int {
        try pendingChanges("identifier = ?", [store])
    }

    /// Returns how many keys of a store have a change that is missing in accounts which this device has left. If the
    /// store takes part in sync, such changes are uploaded when the device returns there.
    /// - Parameter isSignedIn: whether it is in the current account.
    package func changesOfLeftAccounts(in store: String, isSignedIn: Bool) throws(EngineError) -> Int {
        let left = "account <> \(isSignedIn ? account : 0) AND identifier = ?"
        let pending = try all(where: "account > 0 AND synchronized AND \(left)", [store])
        return try pending.reduce(excludedChanges(left, [store])) { $0 + $1.summary.pending }
    }

    /// Returns the number of keys with a change that the present account lacks, in stores that are excluded from sync.
    package func excludedChanges() throws(EngineError) -> Int {
        try excludedChanges("account = \(account) AND \(HiddenStores.isAppStore)")
    }

    /// Returns the same of one store.
    package func excludedChanges(in store: String) throws(EngineError) -> Int {
        try excludedChanges("account = \(account) AND identifier = ?", [store])
    }

    private func excludedChanges(
        _ condition: String, _ arguments: StatementArguments = []
    ) throws(EngineError) -> Int {
        try all(where: "account > 0 AND NOT synchronized AND \(condition)", arguments).reduce(0) {
            // If nothing of the store is published, the account may also lack what came from other devices.
            let isLacking = $1.summary.published == 0 && $1.summary.holdsValues
            return $0 + max($1.summary.pending, isLacking ? 1 : 0)
        }
    }

    /// Returns whether changes are pending that may be uploaded.
    package func hasUploads() throws(EngineError) -> Bool {
        try pendingChanges("downloaded") > 0
    }

    private func pendingChanges(
        _ condition: String, _ arguments: StatementArguments = []
    ) throws(EngineError) -> Int {
        try all(where: "account = \(account) AND synchronized AND \(condition)", arguments).reduce(0) {
            $0 + $1.summary.pending
        }
    }

    /// Returns the summaries of replicas with a row, in the order of their stores' identifiers.
    /// - Parameter condition: SQL: which rows of `replica` and `store` to include.
    private func all(
        where condition: String, _ arguments: StatementArguments = []
    ) throws(EngineError) -> [(store: String, summary: ReplicaSummary)] {
        let loaded = loadedReplicas
        let found = try database.read { db in
            try Row.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT replica.id, identifier, published, counted, valued, pending,
                            max(replica.sequence, \(ChangeID.lastSequence(of: "replica.id"))) AS last
                        FROM replica JOIN store ON store.id = replica.store WHERE \(condition) ORDER BY identifier
                        """), arguments: arguments
            ).map { row in
                (try row.decode(forColumn: "identifier") as String, try summary(of: row, loaded, db))
            }
        }
        save()
        return found
    }

    private func summary(of row: Row, _ loaded: [Int64: Replica], _ db: Database) throws -> ReplicaSummary {
        let id: Int64 = try row.decode(forColumn: "id")
        let (last, published) = (try row.counter("last"), try row.counter("published"))
        // A staged write doesn't count before its commit.
        if let replica = loaded[id], replica.sequence == last, replica.published == published { return replica.summary }
        if let known = database.replicaSummaries.summary(of: id, at: last, published) { return known }
        if let saved = try ReplicaSummary(row, last, published) { return saved }
        let counted = try ReplicaSummary(countingChangesOf: id, last, published, db)
        database.replicaSummaries.add(counted, of: id)
        return counted
    }

    /// The replicas in memory that writes change, by their ids.
    private var loadedReplicas: [Int64: Replica] {
        database.loadedStores.reduce(into: [:]) { replicas, store in
            for replica in [store.shared, store.local] { replicas[replica.id] = replica }
        }
    }

    // MARK: Keeping

    /// Notes the summaries of a store that leaves memory.
    func note(_ store: Store) {
        for replica in [store.shared, store.local] where replica.isStored {
            database.replicaSummaries.add(replica.summary, of: replica.id)
        }
    }

    /// Saves all summaries, and forgets those in memory. Precedes a statement that changes what they say of a sequence.
    func settle() {
        for store in database.loadedStores where store.undo == nil { note(store) }
        save()
        database.replicaSummaries = ReplicaSummaries()
    }

    /// Saves the summaries that are new. If that fails, for example on a full disk, they are counted again when needed.
    private func save() {
        let unsaved = database.replicaSummaries.takeUnsaved()
        if unsaved.isEmpty { return }
        try? database.write { db in
            for (id, summary) in unsaved {
                try db.run(
                    sql: """
                        UPDATE replica SET counted = :sequence, valued = :valued, pending = :pending
                        WHERE id = :id AND published = :published
                            AND (counted, valued, pending) IS NOT (:sequence, :valued, :pending)
                        """,
                    arguments: [
                        "id": id, "sequence": Int64(bitPattern: summary.sequence), "valued": summary.holdsValues,
                        "pending": summary.pending, "published": Int64(bitPattern: summary.published),
                    ])
            }
        }
    }
}
