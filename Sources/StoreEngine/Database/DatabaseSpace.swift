// SPDX-License-Identifier: Apache-2.0

// The history of all stores of a user, when it takes space that values need.
//
// Each store keeps a bounded history (see Retention), but a user may have many stores. Once the database has its
// largest size, the values that were replaced first are removed, whichever store they belong to. The history of a store
// that isn't open is not in memory, so all changes are read. That happens rarely, and frees much at once.

internal import GRDB

/// The size of a database, and its history, which gives way to values.
package struct DatabaseSpace {
    private let connection: Connection
    /// An upper bound of the bytes of all stores' history; `nil` until they are counted.
    private var historyBound: Int?
    /// The largest size of the file, in bytes; see ``bound(fileSize:)``.
    private var largestSize: Int?

    init(on connection: Connection) {
        self.connection = connection
    }

    // MARK: The file

    /// Returns the bytes of the database that are in use. The log beside it doesn't count: it has a bound of its own.
    package func size() throws(EngineError) -> Int {
        try connection.read { db in
            func number(_ pragma: String) throws -> Int { try Int.fetchOne(db, sql: "PRAGMA \(pragma)") ?? 0 }
            return try (number("page_count") - number("freelist_count")) * number("page_size")
        }
    }

    /// Returns the bytes of the file that are free, so that values can be written there without more of the disk.
    package func freeBytes() throws(EngineError) -> Int {
        try connection.read { db in
            func number(_ pragma: String) throws -> Int { try Int.fetchOne(db, sql: "PRAGMA \(pragma)") ?? 0 }
            return try number("freelist_count") * number("page_size")
        }
    }

    /// Limits the size of the file. A write that would need more fails with `EngineError.diskFull`, once no history is
    /// left to remove.
    ///
    /// A file that is already larger stays as it is.
    package mutating func bound(fileSize bytes: Int) throws(EngineError) {
        try connection.read { db in
            let pageSize = try Int.fetchOne(db, sql: "PRAGMA page_size") ?? 4096
            _ = try Int.fetchOne(db, sql: "PRAGMA max_page_count = \(max(1, bytes / pageSize))")
        }
        largestSize = bytes
    }

    /// Whether a write that failed has met the file's limit, and not a full disk, so that removing history may help.
    var mayMakeRoom: Bool {
        guard let largestSize, historyBound != 0, let size = try? size() else { return false }
        return size > largestSize - largestSize / 8
    }

    /// Returns whether the history may have so many bytes.
    package func mayFree(_ bytes: Int) -> Bool { historyBound.map { $0 >= bytes } ?? true }

    /// The least number of bytes of history to remove at once.
    static var leastRoom: Int { 256 << 10 }

    // MARK: History

    /// Counts a change of `size` bytes that becomes history.
    mutating func noteRetired(_ size: Int) {
        if let bound = historyBound { historyBound = bound + size + FormerChange.overhead }
    }

    /// Forgets the size of the history, which may now be anything.
    mutating func forgetHistorySize() { historyBound = nil }

    /// Returns the ids of all replicas, of all stores and accounts. Each has a history.
    func replicas() throws(EngineError) -> [Int64] {
        try connection.read { db in try Int64.fetchAll(db, sql: "SELECT id FROM replica") }
    }

    /// Removes changes of a replica's history.
    mutating func remove(_ changes: [FormerChange], of replica: Int64) throws(EngineError) {
        let writer = try connection.openWriter
        try connection.write { db in try writer.remove(changes, of: replica, db) }
        historyBound = historyBound.map { max(0, $0 - changes.reduce(0) { $0 + $1.bytes }) }
    }

    /// Removes the values that were replaced first, in one transaction.
    /// - Parameter bytes: about how many bytes of the database to free.
    /// - Returns: the removed changes, by replica.
    mutating func removeOldestHistory(bytes: Int) throws(EngineError) -> [Int64: [FormerChange]] {
        if historyBound == 0 { return [:] }
        let writer = try connection.openWriter
        let (removed, left) = try connection.write { db in
            var oldest = OldestChanges(bytes: bytes)
            for replica in try Int64.fetchAll(db, sql: "SELECT id FROM replica") {
                var reader = HistoryReader(of: replica)
                for change in try reader.read(.max, db) { oldest.add(change) }
            }
            let removed = oldest.byReplica()
            for (replica, changes) in removed { try writer.remove(changes, of: replica, db) }
            return (removed, oldest.bytesLeft)
        }
        historyBound = left
        return removed
    }
}

extension ChangeWriter {
    /// Removes changes of a replica. First saves what they may be the only record of.
    fileprivate func remove(_ changes: [FormerChange], of replica: Int64, _ db: Database) throws {
        if changes.isEmpty { return }
        try db.saveProgress(ofReplica: replica)
        for sequences in changes.map(\.sequence).sorted().runs { try remove(sequences, of: replica) }
    }
}
