// SPDX-License-Identifier: Apache-2.0

// What is asked of etcd's JSON gateway (https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway):
// protocol buffers as JSON, with keys and values in Base64, 64-bit numbers as strings, and nothing where the value is
// zero, empty or false. What it answers is in EtcdAnswers.

package import PropertyList
internal import PropertyListFiles

/// Rows of a range.
struct EtcdRange {
    var key: [UInt8]
    /// The key after the last one; `nil`: only `key`.
    var end: [UInt8]?
    /// Rows that were not changed since are left out.
    var since: Int64 = 0
    /// As they were then; 0: as they are.
    var revision: Int64 = 0
    var limit = 0
    var keysOnly = false

    /// One row.
    init(_ key: [UInt8], keysOnly: Bool = false) { (self.key, self.keysOnly) = (key, keysOnly) }

    /// Rows from a key to the one before another.
    init(from key: [UInt8], to end: [UInt8]) { (self.key, self.end) = (key, end) }

    /// All rows under a prefix, which ends with a slash.
    init(under prefix: [UInt8], since: Int64 = 0, keysOnly: Bool = false) {
        (key, end, self.since, self.keysOnly) = (prefix, Self.end(of: prefix), since, keysOnly)
    }

    /// The first key that does not begin with a prefix, of which the last byte is no 0xFF.
    private static func end(of prefix: [UInt8]) -> [UInt8] {
        prefix.dropLast() + [(prefix.last ?? 0) &+ 1]
    }

    var json: Value {
        var fields: [Text: Value] = ["key": .base64(key)]
        if let end { fields["range_end"] = .base64(end) }
        if since > 0 { fields["min_mod_revision"] = .integer(since + 1) }
        if revision > 0 { fields["revision"] = .integer(revision) }
        if limit > 0 { fields["limit"] = .integer(Int64(limit)) }
        if keysOnly { fields["keys_only"] = .boolean(true) }
        return .dictionary(fields)
    }
}

/// One thing that a transaction does.
enum EtcdOperation {
    case put([UInt8], [UInt8])
    case delete([UInt8])
    case deleteAll(EtcdRange)
    case range(EtcdRange)

    /// About how many bytes of a request it takes.
    var size: Int {
        switch self {
        case .put(let key, let value): key.count + value.count + 16
        case .delete(let key): key.count + 16
        case .range(let range), .deleteAll(let range): range.key.count + (range.end?.count ?? 0) + 32
        }
    }

    fileprivate var json: Value {
        switch self {
        case .put(let key, let value):
            .dictionary(["request_put": .dictionary(["key": .base64(key), "value": .base64(value)])])
        case .delete(let key):
            .dictionary(["request_delete_range": .dictionary(["key": .base64(key)])])
        case .deleteAll(let range): .dictionary(["request_delete_range": range.json])
        case .range(let range): .dictionary(["request_range": range.json])
        }
    }
}

/// What has to be so for a transaction to do something.
enum EtcdCondition {
    case value([UInt8], is: [UInt8])
    case exists([UInt8])
    case isMissing([UInt8])
    /// Nobody has written the row since this revision; 0: it is not there.
    case isUnchanged([UInt8], since: Int64)

    fileprivate var json: Value {
        switch self {
        case .value(let key, let value):
            .dictionary(["key": .base64(key), "target": .string("VALUE"), "value": .base64(value)])
        case .exists(let key):
            .dictionary([
                "key": .base64(key), "target": .string("CREATE"), "result": .string("GREATER"),
                "create_revision": .integer(0),
            ])
        case .isMissing(let key):
            .dictionary(["key": .base64(key), "target": .string("CREATE"), "create_revision": .integer(0)])
        case .isUnchanged(let key, let revision):
            .dictionary(["key": .base64(key), "target": .string("MOD"), "mod_revision": .integer(revision)])
        }
    }
}

/// Several operations at once, or none of them.
struct EtcdTransaction {
    var conditions: [EtcdCondition] = []
    var operations: [EtcdOperation] = []
    /// What is done instead if a condition does not hold.
    var otherwise: [EtcdOperation] = []

    /// About how many bytes it takes.
    var size: Int { (operations + otherwise).reduce(0) { $0 + $1.size } }

    var json: Value {
        .dictionary([
            "compare": .array(conditions.map(\.json)), "success": .array(operations.map(\.json)),
            "failure": .array(otherwise.map(\.json)),
        ])
    }
}

// MARK: - JSON

extension Value {
    /// Bytes as the gateway has them.
    package static func base64(_ bytes: [UInt8]) -> Value { .string(Text(Base64.encode(bytes))) }

    /// Something in an object; `nil` if this is none, or has no such thing.
    package subscript(_ name: String) -> Value? {
        if case .dictionary(let fields) = self { fields[Text(name)] } else { nil }
    }

    package var elements: [Value] { if case .array(let values) = self { values } else { [] } }
    package var isTrue: Bool { self == .boolean(true) }
    package var text: String? { if case .string(let text) = self { text.string } else { nil } }

    /// What is in Base64; `nil` if it is not.
    package var bytes: [UInt8]? { text.flatMap(Base64.decode) }

    /// A 64-bit number, which is a string. It may be any: check its range before you calculate with it.
    package var int64: Int64? {
        switch self {
        case .integer(let number): number
        case .string(let text): Int64(text.string)
        default: nil
        }
    }
}
