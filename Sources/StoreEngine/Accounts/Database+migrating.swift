// SPDX-License-Identifier: Apache-2.0

internal import GRDB
internal import Replication

extension Database {
    /// Copies values of one account to another, as provisional writes under an origin, for the keys of which the target
    /// knows nothing. Tombstones stay behind.
    /// - Parameters:
    ///   - ids: the ids for new replicas.
    ///   - stores: SQL: which rows of `store` to include.
    ///   - changes: SQL: which of their keys' last changes to include.
    ///   - replaces: whether a store in the target whose values have not arrived, and which therefore has only earlier
    ///     writes of this device, also takes what differs or was removed.
    func migrate(
        from source: Account, to target: Account, ids: ReplicaIDs, under origin: Origin, time: UInt64,
        stores: String = "true", changes: String = "true", replaces: Bool = false
    ) throws {
        let accounts: StatementArguments = ["source": source.id, "target": target.id]
        try execute(
            sql: """
                INSERT OR IGNORE INTO replica (id, store, account, downloaded)
                    SELECT \(ids.ofSelectedRows), store, :target, (SELECT cursor IS NOT NULL FROM account WHERE id = :target)
                        AND store IN \(AccountProgress.replicatedStores)
                    FROM replica WHERE account = :source AND store IN (SELECT id FROM store WHERE \(stores))
                """,
            arguments: accounts)
        // One store after the other, because SQLite keeps what it groups and sorts, with the values.
        let replicas = try Row.fetchAll(
            self,
            sql: """
                SELECT source.id, target.id FROM replica AS source JOIN replica AS target USING (store)
                WHERE source.account = :source AND target.account = :target
                    AND store IN (SELECT id FROM store WHERE \(stores))
                """,
            arguments: accounts)
        let values: StatementArguments = [
            "origin": Int64(bitPattern: origin.bits), "cause": Cause.migrated.rawValue,
            "dropped": Cause.dropped.rawValue, "time": Int64(bitPattern: time), "replaces": replaces,
        ]
        for row in replicas {
            let (source, target): (Int64, Int64) = try (row.decode(atIndex: 0), row.decode(atIndex: 1))
            try migrate(fromReplica: source, to: target, changes: changes, values)
        }
    }

    /// Copies values of one replica to another, as ``migrate(from:to:ids:under:time:stores:changes:replaces:)`` does.
    /// - Parameter values: what the new rows have in common, and whether they may replace others.
    private func migrate(
        fromReplica source: Int64, to target: Int64, changes: String, _ values: StatementArguments
    ) throws {
        let known = """
            FROM change AS known WHERE \(ChangeID.isOf("migrated.target", "known")) AND known.key = migrated.key
            """
        try run(
            sql: """
                INSERT OR FAIL INTO change
                    (id, generation, key, value, provisional, wall, counter, origin, cause, time)
                SELECT \(ChangeID.of("target", "last + row_number() OVER (ORDER BY sequence)")),
                    generation, key, value, 1, wall, counter, :origin, iif(value IS NULL, :dropped, :cause), :time
                FROM (
                    SELECT target.id AS target, target.downloaded AS arrived, source.published,
                        change.*, max(change.sequence),
                        max(target.sequence, \(ChangeID.lastSequence(of: "target.id"))) AS last
                    FROM replica AS source JOIN replica AS target JOIN change ON \(ChangeID.isOf("source.id"))
                    WHERE source.id = :source AND target.id = :target
                    GROUP BY key) AS migrated
                WHERE \(changes) AND value IS NOT (SELECT known.value \(known) ORDER BY known.id DESC LIMIT 1)
                    AND (:replaces AND NOT arrived OR NOT EXISTS (SELECT 1 \(known)))
                """,
            arguments: values + ["source": source, "target": target])
    }

    /// Gives every store a new generation, from which alone changes are known, because its visible values may have
    /// changed. Layers of defaults domains show nothing of any account, and keep theirs.
    /// - Parameter accounts: those whose values are shown now. What was not shown has no greater generation that anybody
    ///   knows.
    func raiseGenerations(of accounts: [Int64]) throws {
        // Keys that never leave the device are shown with every account.
        let shown = ([Account.none, Account.device] + accounts).map(String.init).joined(separator: ", ")
        try execute(
            sql: """
                UPDATE OR FAIL store SET generation = 1 + max(generation, coalesce(
                    (SELECT max(change.generation) FROM replica JOIN change ON \(ChangeID.isOf("replica.id"))
                     WHERE replica.store = store.id AND replica.account IN (\(shown))), 0))
                WHERE identifier NOT GLOB '!*';
                UPDATE OR FAIL store SET known_from = generation WHERE identifier NOT GLOB '!*'
                """)
    }
}
