// SPDX-License-Identifier: Apache-2.0

/// Gives each replica an id of its own.
///
/// A replica in memory has an id before it has a row, so SQLite can't choose the ids of rows: it would choose one that
/// an open store is going to write under.
struct ReplicaIDs {
    private var last: Int64

    /// The ids after the greatest one in the database.
    init(after last: Int64) {
        self.last = last
    }

    mutating func next() -> Int64 {
        last += 1
        return last
    }

    /// Leaves out the ids up to one that has a row.
    mutating func skip(to id: Int64) {
        last = max(last, id)
    }

    /// SQL: the ids of the rows that `INSERT INTO replica … SELECT` makes.
    var ofSelectedRows: String {
        "max(\(last), (SELECT coalesce(max(id), 0) FROM replica)) + row_number() OVER ()"
    }
}
