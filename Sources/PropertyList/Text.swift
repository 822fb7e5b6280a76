// SPDX-License-Identifier: Apache-2.0

/// A string that is compared, hashed and sorted by its UTF-8 bytes.
///
/// Swift's `String` compares by canonical equivalence, so that `"é" == "e\u{301}"`. To a store these are two strings,
/// and two keys of one dictionary: programs in other languages wrote them, and what is equal must have equal bytes.
public struct Text: Sendable {
    /// The string, with its UTF-8 in one piece.
    public let string: String

    /// Makes a text of any string; U+0000 is not refused here but by ``Value/validate(_:)`` and ``Key/init(_:)``.
    public init(_ string: String) {
        var string = string
        string.makeContiguousUTF8()
        self.string = string
    }

    /// The number of UTF-8 bytes, which is what the text counts in a value's size.
    public var utf8Count: Int { string.utf8.count }

    /// Whether U+0000 is in it. A D-Bus string cannot hold it.
    public var containsNUL: Bool { withBytes { $0.containsZero } }

    @inline(__always)
    func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        if let result = string.utf8.withContiguousStorageIfAvailable({ body(UnsafeRawBufferPointer($0)) }) {
            return result
        }
        // Not reached for the native strings that `init` makes; the standard library gives no such promise in its types.
        return Array(string.utf8).withUnsafeBytes(body)
    }
}

extension Text: Hashable, Comparable {
    /// Whether both have the same UTF-8 bytes.
    public static func == (left: Text, right: Text) -> Bool {
        left.utf8Count == right.utf8Count
            && left.withBytes { left in right.withBytes { left.hasSameBytes(as: $0) } }
    }

    /// Whether the left one's UTF-8 sorts first: at the first byte that differs, or as a proper prefix.
    public static func < (left: Text, right: Text) -> Bool {
        left.withBytes { left in right.withBytes { left.precedes($0) } }
    }

    /// Hashes the UTF-8 bytes.
    public func hash(into hasher: inout Hasher) {
        withBytes { hasher.combine(bytes: $0) }
        // No UTF-8 has this byte, so that the parts of ["a", "bc"] and ["ab", "c"] differ.
        hasher.combine(UInt8(0xFF))
    }
}

extension Text: ExpressibleByStringLiteral, CustomStringConvertible {
    /// The text of a literal.
    public init(stringLiteral value: String) {
        self.init(value)
    }

    /// The string.
    public var description: String { string }
}
