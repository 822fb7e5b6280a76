// SPDX-License-Identifier: Apache-2.0

internal import GRDB

/// The changes of replicas that are gone, and the history of accounts that are not in use.
///
/// An account that is cleared may have all that a user may store, and to remove that in one transaction takes seconds.
/// So the transaction that removes the replicas only notes their ids, which are never used again, and their changes are
/// removed bit by bit.
package final class Leftovers {
    private unowned let database: UserDatabase
    /// Whether there are changes of replicas that are gone.
    package internal(set) var exist = false
    /// The history that is pruned after that.
    private var trimming = AccountTrimming()
    /// Called when ``removeSome()`` has something to do.
    package var onSome: (() -> Void)?

    init(of database: UserDatabase) { self.database = database }

    /// Looks for changes of replicas that are gone, after some may have been noted.
    func look() throws(EngineError) {
        exist = try database.read { db in try db.hasLeftovers }
        if exist { onSome?() }
    }

    /// Begins to prune the history of accounts that are not in use: see ``AccountTrimming``. What is not done when the
    /// database is closed is done the next time; a full database gives up history anyway.
    func pruneAccounts() {
        trimming = (try? AccountTrimming(of: database)) ?? AccountTrimming()
        if !trimming.isDone { onSome?() }
    }

    /// Removes some of the changes of replicas that are gone, or then of the history of a replica of an account that is
    /// not in use.
    /// - Returns: whether there may be more.
    @discardableResult
    package func removeSome() throws(EngineError) -> Bool {
        let isMore = try exist ? removeSomeChanges() : trimming.trimNext(in: database)
        return isMore || !trimming.isDone
    }

    /// Removes some of the changes of replicas that are gone: about a millisecond's work.
    /// - Returns: whether there may be more.
    private func removeSomeChanges() throws(EngineError) -> Bool {
        guard exist else { return false }
        exist = try database.write { db in
            guard let replica = try Int64.fetchOne(db.cachedStatement(sql: "SELECT min(replica) FROM leftover")) else {
                return false
            }
            if let changes = try db.changesToRemove(of: replica) {
                try db.run(
                    sql: "DELETE FROM change WHERE id BETWEEN ? AND ?",
                    arguments: [changes.lowerBound, changes.upperBound])
            } else {
                try db.run(sql: "DELETE FROM leftover WHERE replica = ?", arguments: [replica])
            }
            return true
        }
        return exist
    }

    /// Removes changes of replicas that are gone until the database has at most a size, in bytes.
    /// - Parameter steps: how often to remove some, at most.
    /// - Returns: the size afterwards, which is larger if there are too few.
    package func shrink(toSize target: Int, atMost steps: Int = .max) throws(EngineError) -> Int {
        var (size, left) = (try database.space.size(), steps)
        while size > target, left > 0, try removeSomeChanges() {
            size = try database.space.size()
            left -= 1
        }
        return size
    }
}

extension Database {
    var hasLeftovers: Bool {
        get throws { try Bool.fetchOne(cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM leftover)")) ?? false }
    }

    /// Removes replicas, and notes that their changes are to be removed: see ``Leftovers``.
    func deleteReplicas(_ condition: String, _ arguments: StatementArguments) throws {
        try execute(sql: "INSERT INTO leftover SELECT id FROM replica WHERE \(condition)", arguments: arguments)
        try execute(
            sql: "DELETE FROM context WHERE replica IN (SELECT id FROM replica WHERE \(condition))",
            arguments: arguments)
        try execute(sql: "DELETE FROM replica WHERE \(condition)", arguments: arguments)
    }

    /// Returns the ids of a replica's first changes: so many as are removed at once; `nil` if it has none.
    fileprivate func changesToRemove(of replica: Int64) throws -> ClosedRange<Int64>? {
        let rows = try Row.fetchCursor(
            cachedStatement(
                sql: """
                    SELECT id, coalesce(length(value), 0) FROM change WHERE \(ChangeID.isOf(":replica"))
                    ORDER BY id LIMIT \(Self.removedAtOnce.rows)
                    """),
            arguments: ["replica": replica])
        var (found, bytes): (ClosedRange<Int64>?, Int) = (nil, 0)
        while bytes < Self.removedAtOnce.bytes, let row = try rows.next() {
            let id: Int64 = try row.decode(atIndex: 0)
            bytes += try row.decode(Int.self, atIndex: 1)
            // In order, unless the database is damaged.
            found = min(found?.lowerBound ?? id, id)...max(found?.upperBound ?? id, id)
        }
        return found
    }

    private static let removedAtOnce = (rows: 256, bytes: 256 << 10)
}
