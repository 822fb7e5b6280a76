// SPDX-License-Identifier: Apache-2.0

internal import PropertyList

extension Value {
    /// As many bytes as the value has in a message at most, as a variant.
    ///
    /// A layer may hold millions of Booleans in 4 MiB, and each takes eight bytes on the bus, which disconnects the
    /// sender of a message that is too large.
    var marshalledSize: Int {
        switch self {
        case .boolean: 8
        case .integer, .real, .date: 16
        case .string(let text): 12 + text.utf8Count
        case .data(let bytes): 12 + bytes.count
        case .array(let values): values.reduce(20) { $0 + $1.marshalledSize }
        case .dictionary(let values): values.reduce(24) { $0 + Self.entrySize($1.key, $1.value) }
        }
    }

    /// The same of an entry of a dictionary.
    static func entrySize(_ key: Text, _ value: Value) -> Int { 16 + key.utf8Count + value.marshalledSize }
}
