// SPDX-License-Identifier: Apache-2.0

internal import GRDB
internal import PropertyList
internal import Replication

/// Counts or removes the history of all stores in steps, so that what else waits for the thread gets its turn between
/// them.
package struct HistoryPass {
    private let removes: Bool
    private var replicas: ArraySlice<Int64>
    private var reader: HistoryReader?
    /// The changes of the reader's replica that are to be removed.
    private var found: [FormerChange] = []
    /// The approximate size of what has been counted or removed so far, in bytes of the database.
    package private(set) var bytes = 0

    /// Begins with all replicas, of all stores and accounts.
    package init(of database: UserDatabase, removing removes: Bool) throws(EngineError) {
        try database.commit()
        self.removes = removes
        replicas = try database.space.replicas()[...]
    }

    /// Does a part of the work: about a millisecond's.
    /// - Returns: whether there is more.
    package mutating func step(in database: UserDatabase) throws(EngineError) -> Bool {
        if let replica = reader?.replica, !found.isEmpty, reader?.isDone == true || found.count >= Self.removedAtOnce {
            let part = Array(found.suffix(Self.removedAtOnce))
            found.removeLast(part.count)
            try database.history.remove(part, ofReplica: replica)
            bytes += part.reduce(0) { $0 + $1.bytes }
            return true
        }
        if reader?.isDone != false {
            guard let next = replicas.popFirst() else { return false }
            reader = HistoryReader(of: next)
        }
        let read = try database.read { db in try reader?.read(Self.rowsAtOnce, db) } ?? []
        if removes { found += read } else { bytes += read.reduce(0) { $0 + $1.bytes } }
        return true
    }

    private static let rowsAtOnce = 256
    private static let removedAtOnce = Retention.surplus
}

/// Reads the changes of a replica that aren't their key's last, newest first.
struct HistoryReader {
    let replica: Int64
    private var replaced: [Key: UInt64] = [:]
    /// The sequence of the next change at most.
    private var next = ChangeID.lastSequence
    private(set) var isDone = false

    init(of replica: Int64) { self.replica = replica }

    /// Reads the next rows, and returns those of the history.
    mutating func read(_ rows: Int, _ db: Database) throws -> [FormerChange] {
        var (found, count) = ([FormerChange](), 0)
        try ChangeReader.forEachOutline(of: replica, through: next, limit: rows, db) { change in
            count += 1
            next = max(1, change.sequence) - 1
            guard let time = replaced.updateValue(change.time, forKey: change.key) else { return }
            found.append(FormerChange(change, of: replica, replaced: time))
        }
        isDone = count < rows
        return found
    }
}
