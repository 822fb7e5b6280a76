// SPDX-License-Identifier: Apache-2.0

internal import PropertyList

extension Value {
    /// The most bytes that the value takes in a message, as a variant.
    ///
    /// A layer may hold millions of Booleans in 4 MiB. Each takes eight bytes in a message, and the bus disconnects the
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

    /// Returns the most bytes that an entry of a dictionary takes in a message.
    static func entrySize(_ key: Text, _ value: Value) -> Int { 16 + key.utf8Count + value.marshalledSize }
}
