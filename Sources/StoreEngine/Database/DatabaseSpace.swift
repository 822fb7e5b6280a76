// SPDX-License-Identifier: Apache-2.0

// The history of all stores of a user, where it takes the room that values need.
//
// Each store keeps a bounded past (see Retention), but a user may have many stores. Where the database is as large as
// it may be, the values that were replaced first give way, whichever store they are of. The past of a store that is
// not open is known to nobody, so all changes are gone through; that is done rarely, and frees much at once.

internal import GRDB
internal import PropertyList

/// The room that a database takes, and the history in it, which gives way to values.
public struct DatabaseSpace {
    private let connection: Connection
    /// What the history of all stores takes at most; `nil` until it was gone through.
    private var historyBound: Int?
    /// What the file may grow to; see ``bound(fileSize:)``.
    private var largestSize: Int?

    init(on connection: Connection) {
        self.connection = connection
    }

    // MARK: The file

    /// The bytes of the database that hold something; the log beside it, which has a bound of its own, does not count.
    public func size() throws(EngineError) -> Int {
        try connection.read { db in
            func number(_ pragma: String) throws -> Int { try Int.fetchOne(db, sql: "PRAGMA \(pragma)") ?? 0 }
            return try (number("page_count") - number("freelist_count")) * number("page_size")
        }
    }

    /// Has the file never get larger: what would need more fails with `EngineError.diskFull`, once there is no history
    /// left that could give way.
    ///
    /// One that is larger already stays as it is.
    public mutating func bound(fileSize bytes: Int) throws(EngineError) {
        try connection.read { db in
            let pageSize = try Int.fetchOne(db, sql: "PRAGMA page_size") ?? 4096
            _ = try Int.fetchOne(db, sql: "PRAGMA max_page_count = \(max(1, bytes / pageSize))")
        }
        largestSize = bytes
    }

    /// Whether it is the bound of the file that a write has met, and not the end of the disk.
    var mayMakeRoom: Bool {
        guard let largestSize, historyBound != 0, let size = try? size() else { return false }
        return size > largestSize - largestSize / 8
    }

    /// Whether there may be so many bytes of history.
    public func mayFree(_ bytes: Int) -> Bool { historyBound.map { $0 >= bytes } ?? true }

    /// What is removed of the history at once, at least.
    static var leastRoom: Int { 256 << 10 }

    // MARK: History

    /// Counts a change that becomes history.
    mutating func noteRetired(_ size: Int) {
        if let bound = historyBound { historyBound = bound + size + FormerChange.overhead }
    }

    /// There may be any amount of history now.
    mutating func forgetHistorySize() { historyBound = nil }

    /// The parts of all stores and accounts that have a history each.
    func replicas() throws(EngineError) -> [Int64] {
        try connection.read { db in try Int64.fetchAll(db, sql: "SELECT id FROM replica") }
    }

    /// What the history of all stores takes, about.
    mutating func historySize() throws(EngineError) -> Int {
        var size = 0
        for replica in try replicas() { size += try historySize(ofReplica: replica) }
        historyBound = size
        return size
    }

    /// What the history of a part takes, about.
    func historySize(ofReplica replica: Int64) throws(EngineError) -> Int {
        var size = 0
        try connection.read { db in try Self.forEachFormerChange(of: replica, db) { size += $0.bytes } }
        return size
    }

    /// Removes the history of a part.
    /// - Returns: what was removed.
    mutating func clearHistory(ofReplica replica: Int64) throws(EngineError) -> [FormerChange] {
        let writer = try connection.openWriter
        let changes = try connection.write { db in
            var changes: [FormerChange] = []
            try Self.forEachFormerChange(of: replica, db) { changes.append($0) }
            try writer.remove(changes, of: replica, db)
            return changes
        }
        historyBound = historyBound.map { max(0, $0 - changes.reduce(0) { $0 + $1.bytes }) }
        return changes
    }

    /// Removes the values that were replaced first, in one transaction.
    /// - Parameter bytes: about how many bytes of the database are to be freed.
    /// - Returns: what was removed, by the parts that had it.
    mutating func removeOldestHistory(bytes: Int) throws(EngineError) -> [Int64: [FormerChange]] {
        if historyBound == 0 { return [:] }
        let writer = try connection.openWriter
        let (removed, left) = try connection.write { db in
            var oldest = OldestChanges(bytes: bytes)
            for replica in try Int64.fetchAll(db, sql: "SELECT id FROM replica") {
                try Self.forEachFormerChange(of: replica, db) { oldest.add($0) }
            }
            let removed = oldest.byReplica()
            for (replica, changes) in removed { try writer.remove(changes, of: replica, db) }
            return (removed, oldest.bytesLeft)
        }
        historyBound = left
        return removed
    }

    /// Calls `body` with each change that is not its key's last.
    private static func forEachFormerChange(
        of replica: Int64, _ db: Database, _ body: (FormerChange) -> Void
    ) throws {
        var replaced: [Key: UInt64] = [:]
        try ChangeReader.forEachOutline(of: replica, db) { change in
            defer { replaced[change.key] = change.time }
            guard let time = replaced[change.key] else { return }
            body(FormerChange(change, of: replica, replaced: time))
        }
    }
}

extension ChangeWriter {
    /// Removes changes of a replica, after what they may be the only evidence of was written.
    fileprivate func remove(_ changes: [FormerChange], of replica: Int64, _ db: Database) throws {
        if changes.isEmpty { return }
        try db.saveProgress(ofReplica: replica)
        for sequences in changes.map(\.sequence).sorted().runs { try remove(sequences, of: replica) }
    }
}
