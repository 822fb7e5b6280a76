// SPDX-License-Identifier: Apache-2.0

/// Gives each replica an id of its own.
///
/// A replica in memory has an id before it has a row. So SQLite can't choose the ids of rows, because it could choose
/// one that an open store will write under.
struct ReplicaIDs {
    private var last: Int64

    /// Starts after the greatest id in the database.
    init(after last: Int64) {
        self.last = last
    }

    mutating func next() -> Int64 {
        last += 1
        return last
    }

    /// Skips the ids up to one that has a row.
    mutating func skip(to id: Int64) {
        last = max(last, id)
    }

    /// SQL: the ids of the rows that `INSERT INTO replica … SELECT` creates.
    var ofSelectedRows: String {
        "max(\(last), (SELECT coalesce(max(id), 0) FROM replica)) + row_number() OVER ()"
    }
}
