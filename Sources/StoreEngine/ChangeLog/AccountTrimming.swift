// SPDX-License-Identifier: Apache-2.0

internal import GRDB
internal import Replication

/// Prunes the history of accounts that are not in use. A store keeps as much history in all of its accounts together as
/// in one: first that of the account in use, then that of the accounts left last.
///
/// It doesn't grow in the other accounts, so this runs when another account is entered, and never for a write. It takes
/// one replica after the other, since the accounts may have all that a user may store.
struct AccountTrimming {
    /// The replicas of stores in several accounts, those most worth keeping last.
    private var replicas: [Int64] = []
    /// The bytes of history that each store has in the replicas that were looked at.
    private var bytes: [Int64: Int] = [:]

    /// Has nothing to prune.
    init() {}

    /// Begins with all accounts of a database.
    init(of database: UserDatabase) throws(EngineError) {
        let current = database.account.id
        replicas = try database.read { db in
            try Int64.fetchAll(
                db,
                sql: """
                    SELECT replica.id FROM replica JOIN account ON account.id = account
                    WHERE account > 0 AND store IN (SELECT store FROM replica WHERE account > 0 AND account <> :current)
                    ORDER BY account = :current, left, replica.id DESC
                    """,
                arguments: ["current": current])
        }
    }

    var isDone: Bool { replicas.isEmpty }

    /// Prunes the history of the next replica.
    /// - Returns: whether there may be more.
    mutating func trimNext(in database: UserDatabase) throws(EngineError) -> Bool {
        guard let id = replicas.popLast() else { return false }
        let shown = database.shownAccounts
        var bytes = bytes
        defer { self.bytes = bytes }
        try database.write { db in
            let statement = try db.cachedStatement(sql: "SELECT * FROM replica WHERE id = ?")
            guard let row = try Row.fetchOne(statement, arguments: [id]) else { return }
            let store: Int64 = try row.decode(forColumn: "store")
            var trimming = Trimming(
                isShared: true, published: try row.counter("published"), horizon: database.horizon,
                now: database.environment.time(), doubt: database.clockDoubt, bytes: bytes[store, default: 0])
            try ChangeReader.forEachOutline(of: id, db) { trimming.add($0) }
            bytes[store, default: 0] += trimming.history.bytes
            // Loaded stores count the changes of the accounts that they show.
            let account: Int64 = try row.decode(forColumn: "account")
            if shown.contains(account) || trimming.expendable.isEmpty { return }
            try db.saveProgress(ofReplica: id)
            let writer = try database.openWriter
            for sequences in trimming.expendable { try writer.remove(sequences, of: id) }
        }
        return !isDone
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
