// SPDX-License-Identifier: Apache-2.0

// The changes of replicas that are gone. An account that is cleared may have all that a user may store, and to remove
// that in one transaction takes seconds. So the transaction that removes the replicas only notes their ids, which are
// never used again, and their changes are removed bit by bit.

internal import GRDB

extension UserDatabase {
    /// Looks for changes of replicas that are gone, after some may have been noted.
    func noteLeftovers() throws(EngineError) {
        hasLeftovers = try read { db in try db.hasLeftovers }
        if hasLeftovers { onLeftovers?() }
    }

    /// Removes some of the changes of replicas that are gone, or then of the history of a replica of an account that is
    /// not in use.
    /// - Returns: whether there may be more.
    @discardableResult
    package func removeLeftovers() throws(EngineError) -> Bool {
        let isMore = try hasLeftovers ? removeSomeLeftovers() : trimNextReplica()
        return isMore || !accountTrimming.isDone
    }

    /// Removes some of the changes of replicas that are gone: about a millisecond's work.
    /// - Returns: whether there may be more.
    private func removeSomeLeftovers() throws(EngineError) -> Bool {
        guard hasLeftovers else { return false }
        hasLeftovers = try write { db in
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
        return hasLeftovers
    }

    /// Removes changes of replicas that are gone until the database has at most a size, in bytes.
    /// - Parameter steps: how often to remove some, at most.
    /// - Returns: the size afterwards, which is larger if there are too few.
    package func shrinkLeftovers(toSize target: Int, atMost steps: Int = .max) throws(EngineError) -> Int {
        var (size, left) = (try space.size(), steps)
        while size > target, left > 0, try removeSomeLeftovers() {
            size = try space.size()
            left -= 1
        }
        return size
    }
}

extension Database {
    var hasLeftovers: Bool {
        get throws { try Bool.fetchOne(cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM leftover)")) ?? false }
    }

    /// Removes replicas, and notes that their changes are to be removed: see ``UserDatabase/noteLeftovers()``.
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
            found = (found?.lowerBound ?? id)...id
        }
        return found
    }

    private static let removedAtOnce = (rows: 256, bytes: 256 << 10)
}
