// SPDX-License-Identifier: Apache-2.0

/// A property list: what a store holds under a key.
///
/// Two values are equal if and only if their canonical encodings are the same bytes (``encoded()``). So a kind is never
/// equal to another (`1`, `1.0` and `true` are three values), reals and dates are compared by their bits (a NaN equals
/// the NaN with the same bits, `0.0` is not `-0.0`) and strings by their UTF-8.
public enum Value: Sendable {
    /// True or false.
    case boolean(Bool)
    /// A whole number.
    case integer(Int64)
    /// A binary64 number; infinities and every NaN included.
    case real(Double)
    /// A string, without U+0000 and noncharacters.
    case string(Text)
    /// Any bytes.
    case data([UInt8])
    /// Seconds since 2001-01-01T00:00:00Z, finite; the same number as in Foundation's `Date`.
    case date(Double)
    /// Values in order.
    case array([Value])
    /// Values by key. A key may be empty and of any length, but has neither U+0000 nor noncharacters.
    case dictionary([Text: Value])
}

extension Value: Hashable {
    /// Whether both are the same kind and have the same canonical encoding.
    public static func == (left: Value, right: Value) -> Bool {
        switch (left, right) {
        case (.boolean(let left), .boolean(let right)): left == right
        case (.integer(let left), .integer(let right)): left == right
        case (.real(let left), .real(let right)): left.bitPattern == right.bitPattern
        case (.string(let left), .string(let right)): left == right
        case (.data(let left), .data(let right)): left.hasSameBytes(as: right)
        case (.date(let left), .date(let right)): left.bitPattern == right.bitPattern
        case (.array(let left), .array(let right)): left == right
        case (.dictionary(let left), .dictionary(let right)): left == right
        default: false
        }
    }

    /// Hashes what ``==(_:_:)`` compares.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(tag)
        switch self {
        case .boolean: break  // The tag tells.
        case .integer(let value): hasher.combine(value)
        case .real(let value), .date(let value): hasher.combine(value.bitPattern)
        case .string(let text): hasher.combine(text)
        case .data(let bytes):
            // Not combine(_: [UInt8]), which hashes byte by byte.
            hasher.combine(bytes.count)
            bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
        case .array(let values): hasher.combine(values)
        case .dictionary(let values): hasher.combine(values)
        }
    }
}

extension Value {
    /// The value's size in bytes, as the limits count it, at least 1.
    ///
    /// A Boolean counts 1; an integer, real or date 8; a string its UTF-8 bytes; data its bytes; a container the sum of
    /// its elements and of the UTF-8 bytes of its keys; but every value, nested ones included, at least 1. It is not
    /// the length of ``encoded()``. A sum beyond `Int.max` is `Int.max`.
    ///
    /// It visits the whole value recursively. For a value that isn't validated, call ``validate(_:)``, which is bounded
    /// and also returns the size.
    public var size: Int {
        switch self {
        case .array(let values):
            Swift.max(1, values.reduce(0) { $0.addingClamped($1.size) })
        case .dictionary(let values):
            Swift.max(1, values.reduce(0) { $0.addingClamped($1.key.utf8Count).addingClamped($1.value.size) })
        default: ownSize
        }
    }

    /// How deep containers are nested: 0 for a scalar, 1 for `[]`, one more than the deepest element otherwise.
    ///
    /// It visits the whole value recursively, like ``size``.
    public var depth: Int {
        switch self {
        case .array(let values): 1 + values.reduce(0) { Swift.max($0, $1.depth) }
        case .dictionary(let values): 1 + values.values.reduce(0) { Swift.max($0, $1.depth) }
        default: 0
        }
    }

    /// The size of a scalar or of an empty container: the value's own contribution.
    var ownSize: Int {
        switch self {
        case .boolean: 1
        case .integer, .real, .date: 8
        case .string(let text): Swift.max(1, text.utf8Count)
        case .data(let bytes): Swift.max(1, bytes.count)
        case .array(let values): values.isEmpty ? 1 : 0
        case .dictionary(let values): values.isEmpty ? 1 : 0
        }
    }
}

extension Int {
    /// The sum of two counts, clamped to `Int.max`.
    func addingClamped(_ other: Int) -> Int {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
