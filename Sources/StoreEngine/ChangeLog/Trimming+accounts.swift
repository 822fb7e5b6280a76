// SPDX-License-Identifier: Apache-2.0

internal import GRDB
internal import Replication

extension UserDatabase {
    /// Prunes the history of accounts that are not in use. A store keeps as much history in all of its accounts
    /// together as in one: first that of the account in use, then that of the accounts left last.
    ///
    /// It doesn't grow in the other accounts, so this runs when another account is entered, and never for a write.
    func trimAccounts(besides current: Account, _ db: Database) throws {
        let writer = try openWriter
        var bytes: [Int64: Int] = [:]
        for row in try replicasOfSeveralAccounts(with: current, db) {
            let (id, store): (Int64, Int64) = (try row.decode(forColumn: "id"), try row.decode(forColumn: "store"))
            var trimming = Trimming(
                isShared: true, published: try row.counter("published"), horizon: horizon, now: environment.time(),
                doubt: clockDoubt, bytes: bytes[store, default: 0])
            try ChangeReader.forEachOutline(of: id, db) { trimming.add($0) }
            bytes[store, default: 0] += trimming.history.bytes
            let isInUse = try row.decode(forColumn: "account") == current.id
            if isInUse || trimming.expendable.isEmpty { continue }
            try db.saveProgress(ofReplica: id)
            for sequences in trimming.expendable { try writer.remove(sequences, of: id) }
        }
    }

    /// Returns the replicas of stores that are in several accounts, those most worth keeping first.
    private func replicasOfSeveralAccounts(with current: Account, _ db: Database) throws -> [Row] {
        try Row.fetchAll(
            db,
            sql: """
                SELECT replica.* FROM replica JOIN account ON account.id = account
                WHERE account > 0 AND store IN (SELECT store FROM replica WHERE account > 0 AND account <> :current)
                ORDER BY account = :current DESC, left DESC, replica.id
                """,
            arguments: ["current": current.id])
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
