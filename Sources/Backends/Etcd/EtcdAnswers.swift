// SPDX-License-Identifier: Apache-2.0

// The responses of etcd's JSON gateway. Each is decoded here, once, and its numbers are checked, so that other code can
// calculate with them.

internal import PropertyList

/// The revisions that a cluster can have, far below where arithmetic on them would overflow. etcd counts from 1; a
/// response without a revision counts as 0.
enum EtcdRevision {
    static let range: Range<Int64> = 0..<1 << 62

    /// Reads a revision from an object; 0 if it has none.
    static func read(_ name: String, of object: Value?) throws(EtcdFlaw) -> Int64 {
        guard let field = object?[name] else { return 0 }
        guard let revision = field.int64, range.contains(revision) else { throw EtcdFlaw() }
        return revision
    }
}

/// The header of every response.
struct EtcdHeader: Equatable {
    /// The cluster's revision.
    let revision: Int64
    /// The cluster's identifier; 0 if the response has none.
    let cluster: UInt64

    init(of answer: Value) throws(EtcdFlaw) {
        revision = try EtcdRevision.read("revision", of: answer["header"])
        cluster = answer["header"]?["cluster_id"]?.text.flatMap { UInt64($0) } ?? 0
    }
}

/// A row as etcd stores it.
struct EtcdRow: Equatable {
    let key: [UInt8]
    let value: [UInt8]
    /// The revision of the cluster that last changed the row.
    let modified: Int64
}

extension EtcdRow {
    init(_ json: Value) throws(EtcdFlaw) {
        guard let key = json["key"]?.bytes else { throw EtcdFlaw() }
        self.init(
            key: key, value: json["value"]?.bytes ?? [], modified: try EtcdRevision.read("mod_revision", of: json))
    }
}

/// The rows that a range found.
struct EtcdRows {
    private(set) var rows: [EtcdRow] = []
    /// Whether more rows follow after the limit.
    let hasMore: Bool
    /// How many rows the range has, without its limit and whenever they have changed.
    let count: Int

    /// - Parameters:
    ///   - json: the response; `nil` for an operation that isn't a range, and finds nothing.
    ///   - range: what was asked for. Other rows are the answer to another question, perhaps of another account.
    init(_ json: Value?, to range: EtcdRange?) throws(EtcdFlaw) {
        hasMore = json?["more"]?.isTrue ?? false
        count = json?["count"]?.int64.flatMap { Int(exactly: $0) } ?? 0
        for json in json?["kvs"]?.elements ?? [] {
            let row = try EtcdRow(json)
            guard range?.contains(row.key) == true else { throw EtcdFlaw() }
            rows.append(row)
        }
    }
}

/// The result of a transaction.
struct EtcdOutcome {
    /// Whether the conditions held.
    let isDone: Bool
    private let header: EtcdHeader
    /// The responses to the operations that were done, in their order. Those that aren't ranges have found nothing.
    private(set) var found: [EtcdRows] = []

    /// The cluster's revision afterwards.
    var revision: Int64 { header.revision }
    /// The cluster's identifier; 0 if the response has none.
    var cluster: UInt64 { header.cluster }

    /// Decodes the response to a transaction: one answer to each of its operations.
    init(_ json: Value, to transaction: EtcdTransaction) throws(EtcdFlaw) {
        header = try EtcdHeader(of: json)
        isDone = json["succeeded"]?.isTrue ?? false
        let answers = json["responses"]?.elements ?? []
        let operations = isDone ? transaction.operations : transaction.otherwise
        guard isDone || !transaction.conditions.isEmpty, answers.count == operations.count else { throw EtcdFlaw() }
        for (answer, operation) in zip(answers, operations) {
            found.append(try EtcdRows(answer["response_range"], to: operation.range))
        }
    }
}

/// A message of a watch.
struct EtcdNotice {
    /// The cluster's revision.
    let revision: Int64
    /// Whether the watch has begun.
    let isBeginning: Bool
    /// Whether the member has ended the watch.
    let isOver: Bool
    /// The revision before which the cluster has compacted its history; 0 if it has all that was asked for.
    let compacted: Int64
    /// The rows that were written; `nil` for one that was removed or is corrupt.
    let rows: [EtcdRow?]

    init(_ json: Value) throws(EtcdFlaw) {
        revision = try EtcdHeader(of: json).revision
        compacted = try EtcdRevision.read("compact_revision", of: json)
        (isBeginning, isOver) = (json["created"]?.isTrue == true, json["canceled"]?.isTrue == true)
        rows = (json["events"]?.elements ?? []).map { event in event["kv"].flatMap { try? EtcdRow($0) } }
    }
}
