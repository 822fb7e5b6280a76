// SPDX-License-Identifier: Apache-2.0

internal import GRDB
internal import Replication

/// What is still to be done of pruning the history of accounts that are not in use.
struct AccountTrimming {
    /// The replicas of stores in several accounts, those most worth keeping last.
    private var replicas: [Int64]
    /// The bytes of history that each store has in the replicas that were looked at.
    private var bytes: [Int64: Int] = [:]

    init(_ replicas: [Int64] = []) { self.replicas = replicas }

    var isDone: Bool { replicas.isEmpty }

    mutating func next() -> Int64? { replicas.popLast() }

    func bytes(ofStore store: Int64) -> Int { bytes[store, default: 0] }

    mutating func note(_ count: Int, ofStore store: Int64) { bytes[store, default: 0] += count }
}

extension UserDatabase {
    /// Begins to prune the history of accounts that are not in use. A store keeps as much history in all of its accounts
    /// together as in one: first that of the account in use, then that of the accounts left last.
    ///
    /// It doesn't grow in the other accounts, so this runs when another account is entered, and never for a write. It
    /// goes on in ``removeLeftovers()``, since the accounts may have all that a user may store. What is not done when the
    /// database is closed is done the next time; a full database gives up history anyway.
    func trimAccounts() {
        let current = account.id
        let found = try? read { db in
            AccountTrimming(
                try Int64.fetchAll(
                    db,
                    sql: """
                        SELECT replica.id FROM replica JOIN account ON account.id = account
                        WHERE account > 0 AND store IN (SELECT store FROM replica WHERE account > 0 AND account <> :current)
                        ORDER BY account = :current, left, replica.id DESC
                        """,
                    arguments: ["current": current]))
        }
        accountTrimming = found ?? AccountTrimming()
        if !accountTrimming.isDone { onLeftovers?() }
    }

    /// Prunes the history of the next replica.
    /// - Returns: whether there may be more.
    func trimNextReplica() throws(EngineError) -> Bool {
        guard let id = accountTrimming.next() else { return false }
        let shown = shownAccounts
        try write { db in
            let statement = try db.cachedStatement(sql: "SELECT * FROM replica WHERE id = ?")
            guard let row = try Row.fetchOne(statement, arguments: [id]) else { return }
            let store: Int64 = try row.decode(forColumn: "store")
            var trimming = Trimming(
                isShared: true, published: try row.counter("published"), horizon: horizon, now: environment.time(),
                doubt: clockDoubt, bytes: accountTrimming.bytes(ofStore: store))
            try ChangeReader.forEachOutline(of: id, db) { trimming.add($0) }
            accountTrimming.note(trimming.history.bytes, ofStore: store)
            // Loaded stores count the changes of the accounts that they show.
            let account: Int64 = try row.decode(forColumn: "account")
            if shown.contains(account) || trimming.expendable.isEmpty { return }
            try db.saveProgress(ofReplica: id)
            let writer = try openWriter
            for sequences in trimming.expendable { try writer.remove(sequences, of: id) }
        }
        return !accountTrimming.isDone
    }
}

extension Database {
    /// Saves what a replica's changes may be the only record of, before some of them are removed.
    func saveProgress(ofReplica id: Int64) throws {
        try run(
            sql: """
                INSERT INTO context (replica, origin, n)
                    SELECT replica, origin, max(coalesce(n, sequence)) FROM change
                    WHERE \(ChangeID.isOf(":replica")) AND \(Cause.isOwn) GROUP BY origin
                ON CONFLICT (replica, origin) DO UPDATE SET n = max(n, excluded.n)
                """,
            arguments: ["replica": id])
        try run(
            sql: """
                UPDATE replica SET sequence = max(sequence, \(ChangeID.lastSequence(of: ":replica")))
                WHERE id = :replica
                """,
            arguments: ["replica": id])
    }
}
