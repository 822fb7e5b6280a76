// SPDX-License-Identifier: Apache-2.0

internal import GRDB
internal import Replication

/// What a replica holds, in numbers.
struct ReplicaSummary {
    /// The last sequence that was counted.
    let sequence: UInt64
    /// The sequence up to which the changes were published.
    let published: UInt64
    /// Whether a key has a value, shown or not.
    let holdsValues: Bool
    /// The number of keys with a pending change.
    let pending: Int
}

/// The summaries of replicas that are not in memory, as far as they are known.
struct ReplicaSummaries {
    private var known: [Int64: ReplicaSummary] = [:]
    private var unsaved: Set<Int64> = []

    /// Returns a replica's summary if it still holds.
    func summary(of replica: Int64, at sequence: UInt64, _ published: UInt64) -> ReplicaSummary? {
        known[replica].flatMap { $0.sequence == sequence && $0.published == published ? $0 : nil }
    }

    mutating func add(_ summary: ReplicaSummary, of replica: Int64) {
        known[replica] = summary
        unsaved.insert(replica)
    }

    /// Returns what is not in the database yet, once.
    mutating func takeUnsaved() -> [Int64: ReplicaSummary] {
        defer { unsaved = [] }
        return known.filter { unsaved.contains($0.key) }
    }
}

extension ReplicaSummary {
    /// Reads the summary in a replica's row; `nil` if it no longer holds.
    init?(_ row: Row, _ last: UInt64, _ published: UInt64) throws {
        guard let counted = try row.decode(Int64?.self, forColumn: "counted"), UInt64(bitPattern: counted) == last,
            let valued = try row.decode(Bool?.self, forColumn: "valued"),
            let pending = published < last ? try row.decode(Int?.self, forColumn: "pending") : 0
        else { return nil }
        self.init(sequence: last, published: published, holdsValues: valued, pending: pending)
    }

    /// Counts what a replica holds, which reads all of its changes.
    init(
        countingChangesOf replica: Int64, _ last: UInt64, _ published: UInt64, _ db: Database
    ) throws {
        let row = try Row.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT coalesce(max(is_value AND cause <> \(Cause.dropped.rawValue)), 0),
                        coalesce(sum(newest > :published AND \(Cause.isOwn)), 0)
                    FROM (SELECT max(sequence) AS newest, value IS NOT NULL AS is_value, cause FROM change
                        WHERE \(ChangeID.isOf(":replica")) GROUP BY key)
                    """), arguments: ["replica": replica, "published": Int64(bitPattern: published)])
        self.init(
            sequence: last, published: published, holdsValues: try row?.decode(atIndex: 0) ?? false,
            pending: try row?.decode(atIndex: 1) ?? 0)
    }
}

extension Replica {
    /// The replica's summary, which is counted only if it has changed.
    var summary: ReplicaSummary {
        ReplicaSummary(
            sequence: sequence, published: published, holdsValues: usage.keys > 0 || usage.hidden > 0,
            pending: pendingKeys)
    }
}
