// SPDX-License-Identifier: Apache-2.0

/// Gives each replica an id of its own.
///
/// A replica in memory has an id before it has a row. So SQLite can't choose the ids of rows, because it could choose
/// one that an open store will write under.
///
/// ``ChangeID`` leaves them 23 bits, which nobody uses up with replicas that have rows. So an id is used again that never
/// got one.
struct ReplicaIDs {
    private var last: Int64
    private var unused: [Int64] = []

    /// Starts after the greatest id in the database.
    init(after last: Int64) {
        self.last = last
    }

    /// - Throws: `EngineError.storage` if there are no more.
    mutating func next() throws(EngineError) -> Int64 {
        if let id = unused.popLast() { return id }
        guard last < ChangeID.lastReplica else { throw .storage("the database has too many stores") }
        last += 1
        return last
    }

    /// Takes back the id of a replica that never got a row.
    mutating func takeBack(_ id: Int64) { unused.append(id) }

    /// Skips the ids up to one that has a row.
    mutating func skip(to id: Int64) {
        last = max(last, id)
    }

    /// SQL: the ids of the rows that `INSERT INTO replica … SELECT` creates.
    var ofSelectedRows: String {
        "max(\(last), (SELECT coalesce(max(id), 0) FROM replica)) + row_number() OVER ()"
    }
}
