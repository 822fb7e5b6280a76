// SPDX-License-Identifier: Apache-2.0

// What etcd's JSON gateway answers. Each answer is read here, once, and its numbers are brought into range: what is made
// of them elsewhere can be calculated with.

internal import PropertyList

/// The revisions that a cluster can have, far below where arithmetic on them would overflow. etcd counts from 1, and an
/// answer that has none counts as 0.
enum EtcdRevision {
    static let range: Range<Int64> = 0..<1 << 62

    /// A revision in an object.
    static func read(_ name: String, of object: Value?) throws(EtcdFlaw) -> Int64 {
        guard let field = object?[name] else { return 0 }
        guard let revision = field.int64, range.contains(revision) else { throw EtcdFlaw() }
        return revision
    }
}

/// The head of every answer.
struct EtcdHeader: Equatable {
    /// The cluster's revision.
    let revision: Int64
    /// Which cluster it is; 0: it does not say.
    let cluster: UInt64

    init(of answer: Value) throws(EtcdFlaw) {
        revision = try EtcdRevision.read("revision", of: answer["header"])
        cluster = answer["header"]?["cluster_id"]?.text.flatMap { UInt64($0) } ?? 0
    }
}

/// A row as etcd has it.
struct EtcdRow: Equatable {
    let key: [UInt8]
    let value: [UInt8]
    /// The revision of the cluster that the last change of it made.
    let modified: Int64
}

extension EtcdRow {
    init(_ json: Value) throws(EtcdFlaw) {
        guard let key = json["key"]?.bytes else { throw EtcdFlaw() }
        self.init(
            key: key, value: json["value"]?.bytes ?? [], modified: try EtcdRevision.read("mod_revision", of: json))
    }
}

/// What a range found.
struct EtcdRows {
    private(set) var rows: [EtcdRow] = []
    /// There are others after the limit.
    let hasMore: Bool

    /// - Parameter json: `nil` for an operation that finds nothing.
    init(_ json: Value?) throws(EtcdFlaw) {
        hasMore = json?["more"]?.isTrue ?? false
        for row in json?["kvs"]?.elements ?? [] { rows.append(try EtcdRow(row)) }
    }
}

/// What a transaction did.
struct EtcdOutcome {
    /// The conditions held.
    let isDone: Bool
    private let header: EtcdHeader
    /// The answers to the operations that were done, in their order; those that are no ranges have found nothing.
    private(set) var found: [EtcdRows] = []

    /// The cluster's revision afterwards.
    var revision: Int64 { header.revision }
    /// Which cluster it is; 0: it does not say.
    var cluster: UInt64 { header.cluster }

    init(_ json: Value) throws(EtcdFlaw) {
        header = try EtcdHeader(of: json)
        isDone = json["succeeded"]?.isTrue ?? false
        for answer in json["responses"]?.elements ?? [] { found.append(try EtcdRows(answer["response_range"])) }
    }
}

/// What a watch tells.
struct EtcdNotice {
    /// The cluster's revision.
    let revision: Int64
    /// The watch has begun.
    let isBeginning: Bool
    /// The watch is over.
    let isOver: Bool
    /// What came before this revision is forgotten there; 0: nothing that was asked for is.
    let compacted: Int64
    /// The rows that were written; `nil` for one that was removed, or makes no sense.
    let rows: [EtcdRow?]

    init(_ json: Value) throws(EtcdFlaw) {
        revision = try EtcdHeader(of: json).revision
        compacted = try EtcdRevision.read("compact_revision", of: json)
        (isBeginning, isOver) = (json["created"]?.isTrue == true, json["canceled"]?.isTrue == true)
        rows = (json["events"]?.elements ?? []).map { event in event["kv"].flatMap { try? EtcdRow($0) } }
    }
}
