// SPDX-License-Identifier: Apache-2.0

// The requests to etcd's JSON gateway (https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway): protocol buffers as JSON.
// Keys and values are in Base64, 64-bit numbers are strings, and a field that is zero, empty or false is absent.
// EtcdAnswers decodes the responses.

package import PropertyList
internal import PropertyListFiles

/// A request for a range of rows.
struct EtcdRange {
    var key: [UInt8]
    /// The key after the last one; `nil` for `key` alone.
    var end: [UInt8]?
    /// The revision since which a row must have changed to be returned; 0 for all rows.
    var since: Int64 = 0
    /// The revision at which the rows are read; 0 for the present one.
    var revision: Int64 = 0
    var limit = 0
    var keysOnly = false

    /// Makes a range of one row.
    init(_ key: [UInt8], keysOnly: Bool = false) { (self.key, self.keysOnly) = (key, keysOnly) }

    /// Makes a range from a key up to another, which is excluded.
    init(from key: [UInt8], to end: [UInt8]) { (self.key, self.end) = (key, end) }

    /// Makes a range of all rows under a prefix, which ends with a slash.
    init(under prefix: [UInt8], since: Int64 = 0, keysOnly: Bool = false) {
        (key, end, self.since, self.keysOnly) = (prefix, Self.end(of: prefix), since, keysOnly)
    }

    /// Returns the first key after all that begin with a prefix. The prefix's last byte must not be 0xFF.
    private static func end(of prefix: [UInt8]) -> [UInt8] {
        prefix.dropLast() + [(prefix.last ?? 0) &+ 1]
    }

    /// Returns whether a key is in the range.
    func contains(_ key: [UInt8]) -> Bool {
        guard let end else { return key == self.key }
        return !key.lexicographicallyPrecedes(self.key) && key.lexicographicallyPrecedes(end)
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

/// One operation of a transaction.
enum EtcdOperation {
    case put([UInt8], [UInt8])
    case delete([UInt8])
    case deleteAll(EtcdRange)
    case range(EtcdRange)

    /// What the operation reads; `nil` if it reads nothing.
    var range: EtcdRange? { if case .range(let range) = self { range } else { nil } }

    /// About how many bytes the operation takes in a request.
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

/// A condition of a transaction.
enum EtcdCondition {
    case value([UInt8], is: [UInt8])
    case exists([UInt8])
    case isMissing([UInt8])
    /// The row has not been written since this revision; 0 if the row must not exist.
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

/// Several operations, of which all or none are applied.
struct EtcdTransaction {
    var conditions: [EtcdCondition] = []
    var operations: [EtcdOperation] = []
    /// The operations that are done instead if a condition doesn't hold.
    var otherwise: [EtcdOperation] = []

    /// About how many bytes the operations take in a request.
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
    /// Encodes bytes as the gateway does.
    package static func base64(_ bytes: [UInt8]) -> Value { .string(Text(Base64.encode(bytes))) }

    /// A field of an object; `nil` if this isn't an object, or has no such field.
    package subscript(_ name: String) -> Value? {
        if case .dictionary(let fields) = self { fields[Text(name)] } else { nil }
    }

    package var elements: [Value] { if case .array(let values) = self { values } else { [] } }
    package var isTrue: Bool { self == .boolean(true) }
    package var text: String? { if case .string(let text) = self { text.string } else { nil } }

    /// The bytes that a Base64 string encodes; `nil` if this is none.
    package var bytes: [UInt8]? { text.flatMap(Base64.decode) }

    /// A 64-bit number, written as a string. It may have any value: check its range before you calculate with it.
    package var int64: Int64? {
        switch self {
        case .integer(let number): number
        case .string(let text): Int64(text.string)
        default: nil
        }
    }
}
