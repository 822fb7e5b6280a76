// SPDX-License-Identifier: Apache-2.0

// How an etcd cluster answers requests: rows with revisions, transactions, and a history that can be forgotten.
// Requests and answers have the form of its JSON gateway, before they are text.

internal import Etcd
internal import PropertyList

/// The contents of a cluster. It is a value: a copy is a snapshot.
struct EtcdModel {
    private(set) var revision: Int64 = 1
    private(set) var compacted: Int64 = 0
    /// Sorted by their keys.
    private(set) var rows: [Row] = []
    /// Every write since the last compaction.
    private(set) var events: [Event] = []
    /// The rows at each revision since then.
    private var history: [Int64: [Row]] = [:]

    struct Row {
        let key: [UInt8]
        let value: [UInt8]
        let created: Int64
        let modified: Int64

        func json(keysOnly: Bool = false) -> Value {
            var fields: [Text: Value] = [
                "key": .base64(key), "create_revision": .string(Text("\(created)")),
                "mod_revision": .string(Text("\(modified)")),
            ]
            if !keysOnly, !value.isEmpty { fields["value"] = .base64(value) }
            return .dictionary(fields)
        }
    }

    struct Event {
        let key: [UInt8]
        let revision: Int64
        /// `nil` if the row was deleted.
        let row: Row?
    }

    /// The reason for which the cluster refuses a request.
    struct Refusal: Error {
        let code: Int
        let reason: String
    }

    private static let mostOperations = 128

    // MARK: Questions

    var header: Value { .dictionary(["revision": .string(Text("\(revision)"))]) }

    mutating func answer(_ path: String, _ question: Value) throws(Refusal) -> Value {
        var fields: [Text: Value]
        switch path {
        case "/v3/kv/range": fields = try range(question)
        case "/v3/kv/txn": fields = try transaction(question)
        default: throw Refusal(code: 12, reason: "unknown service")
        }
        fields["header"] = header
        return .dictionary(fields)
    }

    /// Whether a transaction writes something if its conditions hold.
    static func writes(_ question: Value) -> Bool {
        (question["success"]?.elements ?? []).contains { $0["request_range"] == nil }
    }

    private func range(_ question: Value) throws(Refusal) -> [Text: Value] {
        let (at, since) = (question["revision"]?.int64 ?? 0, question["min_mod_revision"]?.int64 ?? 0)
        if at > revision { throw Refusal(code: 11, reason: "mvcc: required revision is a future revision") }
        guard at == 0 || at >= compacted, let rows = at == 0 ? rows : history[at] else {
            throw Refusal(code: 11, reason: "mvcc: required revision has been compacted")
        }
        let key = question["key"]?.bytes ?? []
        let end = question["range_end"]?.bytes
        var (found, count): ([Row], Int) = ([], 0)
        for row in rows[place(of: key, in: rows)...] {
            guard end.map({ row.key.lexicographicallyPrecedes($0) }) ?? (row.key == key) else { break }
            count += 1
            if row.modified >= since { found.append(row) }
        }
        let limit = question["limit"]?.int64.map(Int.init) ?? 0
        let isMore = limit > 0 && found.count > limit
        if isMore { found = Array(found.prefix(limit)) }
        let keysOnly = question["keys_only"]?.isTrue ?? false
        return [
            "kvs": .array(found.map { $0.json(keysOnly: keysOnly) }), "more": .boolean(isMore),
            "count": .string(Text("\(count)")),
        ]
    }

    private mutating func transaction(_ question: Value) throws(Refusal) -> [Text: Value] {
        let conditions = question["compare"]?.elements ?? []
        let (success, failure) = (question["success"]?.elements ?? [], question["failure"]?.elements ?? [])
        if max(conditions.count, success.count, failure.count) > Self.mostOperations {
            throw Refusal(code: 3, reason: "etcdserver: too many operations in txn request")
        }
        let isDone = conditions.allSatisfy(holds)
        let responses = try perform(isDone ? success : failure)
        return ["succeeded": .boolean(isDone), "responses": .array(responses)]
    }

    private func holds(_ condition: Value) -> Bool {
        let row = row(condition["key"]?.bytes ?? [])
        switch condition["target"]?.text {
        case "VALUE": return row?.value == condition["value"]?.bytes
        case "CREATE":
            let (created, other) = (row?.created ?? 0, condition["create_revision"]?.int64 ?? 0)
            return condition["result"]?.text == "GREATER" ? created > other : created == other
        case "MOD": return (row?.modified ?? 0) == condition["mod_revision"]?.int64 ?? 0
        default: return false
        }
    }

    /// Performs the operations of a transaction. All its writes get one revision; without a write the revision stays.
    private mutating func perform(_ operations: [Value]) throws(Refusal) -> [Value] {
        let written = operations.compactMap { $0["request_put"]?["key"] }
        if Set(written).count < written.count {
            throw Refusal(code: 3, reason: "etcdserver: duplicate key given in txn request")
        }
        var responses: [Value] = []
        let next = revision + 1
        for operation in operations {
            if let question = operation["request_range"] {
                responses.append(.dictionary(["response_range": .dictionary(try range(question))]))
            } else if let put = operation["request_put"] {
                write(put["key"]?.bytes ?? [], put["value"]?.bytes ?? [], next)
                responses.append(.dictionary(["response_put": .dictionary([:])]))
            } else if let deletion = operation["request_delete_range"] {
                for key in keys(of: deletion) { write(key, nil, next) }
                responses.append(.dictionary(["response_delete_range": .dictionary([:])]))
            }
        }
        if events.last?.revision == next {
            revision = next
            history[next] = rows
        }
        return responses
    }

    private mutating func write(_ key: [UInt8], _ value: [UInt8]?, _ next: Int64) {
        let place = place(of: key, in: rows)
        let former = place < rows.count && rows[place].key == key ? rows[place] : nil
        guard let value else {
            guard former != nil else { return }
            rows.remove(at: place)
            return events.append(Event(key: key, revision: next, row: nil))
        }
        let row = Row(key: key, value: value, created: former?.created ?? next, modified: next)
        if former == nil { rows.insert(row, at: place) } else { rows[place] = row }
        events.append(Event(key: key, revision: next, row: row))
    }

    /// The keys that a deletion names. A single key need not exist.
    private func keys(of deletion: Value) -> [[UInt8]] {
        let key = deletion["key"]?.bytes ?? []
        guard let end = deletion["range_end"]?.bytes else { return [key] }
        return rows[place(of: key, in: rows)..<place(of: end, in: rows)].map(\.key)
    }

    private func row(_ key: [UInt8]) -> Row? {
        let place = place(of: key, in: rows)
        return place < rows.count && rows[place].key == key ? rows[place] : nil
    }

    /// The index of a key, or the index at which to insert it.
    private func place(of key: [UInt8], in rows: [Row]) -> Int {
        var (low, high) = (0, rows.count)
        while low < high {
            let middle = (low + high) / 2
            if rows[middle].key.lexicographicallyPrecedes(key) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    // MARK: History

    /// Advances the revision, as writes to other accounts do.
    mutating func advance(by count: Int64) {
        revision += count
        history[revision] = rows
    }

    /// The events since a revision, inclusive.
    func events(since revision: Int64) -> ArraySlice<Event> {
        events[((events.lastIndex { $0.revision < revision } ?? -1) + 1)...]
    }

    /// Forgets the history before the present revision.
    mutating func compact() {
        compacted = revision
        (events, history) = ([], [revision: rows])
    }

    /// The same rows in a cluster that was restored from this snapshot. It has no history.
    var restored: EtcdModel {
        var model = self
        model.compact()
        return model
    }
}
