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

/// What a replica holds, in numbers.
struct ReplicaSummary {
    /// The last sequence that was counted.
    let sequence: UInt64
    /// The sequence up to which the changes were published.
    let published: UInt64
    /// Whether a key has a value, shown or not.
    let holdsValues: Bool
    /// The number of keys with a pending change.
    let pending: Int
}

/// The summaries of replicas that are not in memory, as far as they are known.
struct ReplicaSummaries {
    private var known: [Int64: ReplicaSummary] = [:]
    private var unsaved: Set<Int64> = []

    /// Returns a replica's summary if it still holds.
    func summary(of replica: Int64, at sequence: UInt64, _ published: UInt64) -> ReplicaSummary? {
        known[replica].flatMap { $0.sequence == sequence && $0.published == published ? $0 : nil }
    }

    mutating func add(_ summary: ReplicaSummary, of replica: Int64) {
        known[replica] = summary
        unsaved.insert(replica)
    }

    /// Returns what is not in the database yet, once.
    mutating func takeUnsaved() -> [Int64: ReplicaSummary] {
        defer { unsaved = [] }
        return known.filter { unsaved.contains($0.key) }
    }
}

extension UserDatabase {
    /// Returns the identifiers of the stores that have a value, shown or not, sorted.
    package func storesWithValues() throws(EngineError) -> [String] {
        try summaries(where: "true").filter(\.summary.holdsValues).reduce(into: []) { stores, found in
            // A store's replicas follow each other.
            if stores.last.map({ Text($0) }) != Text(found.store) { stores.append(found.store) }
        }
    }

    /// Returns about how many bytes the values of a layer take, without reading them.
    package func valueBytes(ofLayer identifier: String) throws(EngineError) -> Int {
        try read { db in
            try Int.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT coalesce(sum(max(8, length(value))), 0) FROM (
                            SELECT value, max(change.id)
                            FROM store JOIN replica ON replica.store = store.id
                                JOIN change ON \(ChangeID.isOf("replica.id"))
                            WHERE store.identifier = ? GROUP BY replica.id, key)
                        """),
                arguments: [identifier]) ?? 0
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

    /// Returns the number of keys of a store with a change that is pending in accounts that this device has left. Such
    /// changes are uploaded when it returns there.
    /// - Parameter isSignedIn: whether it is in the current account.
    package func changesOfLeftAccounts(in store: String, isSignedIn: Bool) throws(EngineError) -> Int {
        let present = isSignedIn ? account.id : 0
        let condition = "account > 0 AND account <> \(present) AND synchronized AND identifier = ?"
        return try summaries(where: condition, [store]).reduce(0) { $0 + $1.summary.pending }
    }

    /// Returns the number of keys with a change that the present account lacks, in stores that are excluded from sync.
    package func excludedChanges() throws(EngineError) -> Int {
        try excludedChanges("account = \(account.id) AND \(HiddenStores.isAppStore)")
    }

    /// Returns the same of one store, in all accounts.
    package func excludedChanges(in store: String) throws(EngineError) -> Int {
        try excludedChanges("identifier = ?", [store])
    }

    private func excludedChanges(
        _ condition: String, _ arguments: StatementArguments = []
    ) throws(EngineError) -> Int {
        try summaries(where: "account > 0 AND NOT synchronized AND \(condition)", arguments).reduce(0) {
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
        try summaries(where: "account = \(account.id) AND synchronized AND \(condition)", arguments).reduce(0) {
            $0 + $1.summary.pending
        }
    }

    /// Returns the summaries of replicas with a row, in the order of their stores' identifiers.
    /// - Parameter condition: SQL: which rows of `replica` and `store` to include.
    private func summaries(
        where condition: String, _ arguments: StatementArguments = []
    ) throws(EngineError) -> [(store: String, summary: ReplicaSummary)] {
        let loaded = loadedReplicas
        let found = try read { db in
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
        saveSummaries()
        return found
    }

    private func summary(of row: Row, _ loaded: [Int64: Replica], _ db: Database) throws -> ReplicaSummary {
        let id: Int64 = try row.decode(forColumn: "id")
        let (last, published) = (try row.counter("last"), try row.counter("published"))
        // A staged write doesn't count before its commit.
        if let replica = loaded[id], replica.sequence == last, replica.published == published { return replica.summary }
        if let known = replicaSummaries.summary(of: id, at: last, published) { return known }
        if let saved = try ReplicaSummary(row, last, published) { return saved }
        let counted = try ReplicaSummary(countingChangesOf: id, last, published, db)
        replicaSummaries.add(counted, of: id)
        return counted
    }

    /// The replicas in memory that writes change, by their ids.
    private var loadedReplicas: [Int64: Replica] {
        loadedStores.reduce(into: [:]) { replicas, store in
            for replica in [store.shared, store.overlay] { replicas[replica.id] = replica }
        }
    }

    // MARK: Keeping

    /// Notes the summaries of a store that leaves memory.
    func noteSummaries(of store: Store) {
        for replica in [store.shared, store.overlay] where replica.isStored {
            replicaSummaries.add(replica.summary, of: replica.id)
        }
    }

    /// Saves all summaries, and forgets those in memory. Precedes a statement that changes what they say of a sequence.
    func settleSummaries() {
        for store in loadedStores where store.undo == nil { noteSummaries(of: store) }
        saveSummaries()
        replicaSummaries = ReplicaSummaries()
    }

    /// Saves the summaries that are new. If that fails, for example on a full disk, they are counted again when needed.
    private func saveSummaries() {
        let unsaved = replicaSummaries.takeUnsaved()
        if unsaved.isEmpty { return }
        try? write { db in
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

extension ReplicaSummary {
    /// Reads the summary in a replica's row; `nil` if it no longer holds.
    fileprivate init?(_ row: Row, _ last: UInt64, _ published: UInt64) throws {
        guard let counted = try row.decode(Int64?.self, forColumn: "counted"), UInt64(bitPattern: counted) == last,
            let valued = try row.decode(Bool?.self, forColumn: "valued"),
            let pending = published < last ? try row.decode(Int?.self, forColumn: "pending") : 0
        else { return nil }
        self.init(sequence: last, published: published, holdsValues: valued, pending: pending)
    }

    /// Counts what a replica holds, which reads all of its changes.
    fileprivate init(
        countingChangesOf replica: Int64, _ last: UInt64, _ published: UInt64, _ db: Database
    ) throws {
        let row = try Row.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT coalesce(max(is_value AND cause <> \(Cause.dropped.rawValue)), 0),
                        coalesce(sum(newest > :published AND \(Cause.isOwn)), 0)
                    FROM (SELECT max(sequence) AS newest, value IS NOT NULL AS is_value, cause FROM change
                        WHERE \(ChangeID.isOf(":replica")) GROUP BY key)
                    """), arguments: ["replica": replica, "published": Int64(bitPattern: published)])
        self.init(
            sequence: last, published: published, holdsValues: try row?.decode(atIndex: 0) ?? false,
            pending: try row?.decode(atIndex: 1) ?? 0)
    }
}

extension Replica {
    /// The replica's summary, which is counted only if it has changed.
    fileprivate var summary: ReplicaSummary {
        ReplicaSummary(
            sequence: sequence, published: published, holdsValues: usage.keys > 0 || usage.hidden > 0,
            pending: pendingKeys)
    }
}
