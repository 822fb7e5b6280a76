// SPDX-License-Identifier: Apache-2.0

/// A string that is compared, hashed and sorted by its UTF-8 bytes.
///
/// Swift's `String` compares by canonical equivalence, so `"é" == "e\u{301}"`. To a store these are two strings, and
/// two keys of a dictionary: programs in other languages distinguish them, and equal values must have equal bytes.
public struct Text: Sendable {
    /// The string, with contiguous UTF-8.
    public let string: String

    /// Makes a text of any string. ``Value/validate(_:)`` and ``Key/init(_:)`` refuse U+0000 and noncharacters; this
    /// doesn't.
    public init(_ string: String) {
        var string = string
        string.makeContiguousUTF8()
        self.string = string
    }

    /// The number of UTF-8 bytes, which a value's size counts.
    public var utf8Count: Int { string.utf8.count }

    /// Whether it contains U+0000, which a D-Bus string cannot.
    public var containsNUL: Bool { withBytes { $0.containsZero } }

    /// Whether it contains a noncharacter, such as U+FFFF. Unicode reserves them for a program's own use, and
    /// libsystemd refuses messages with them.
    public var containsNoncharacter: Bool { withBytes { $0.firstNoncharacter != nil } }

    /// Whether a message of the service can carry it: it has neither U+0000 nor a noncharacter.
    public var fitsMessages: Bool { !containsNUL && !containsNoncharacter }

    @inline(__always)
    func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        if let result = string.utf8.withContiguousStorageIfAvailable({ body(UnsafeRawBufferPointer($0)) }) {
            return result
        }
        // Never reached for the native strings that `init` makes, but the standard library's types don't promise that.
        return Array(string.utf8).withUnsafeBytes(body)
    }
}

extension Text: Hashable, Comparable {
    /// Whether both have the same UTF-8 bytes.
    public static func == (left: Text, right: Text) -> Bool {
        left.utf8Count == right.utf8Count
            && left.withBytes { left in right.withBytes { left.hasSameBytes(as: $0) } }
    }

    /// Whether the left one's UTF-8 sorts first: by the first different byte, or as a proper prefix.
    public static func < (left: Text, right: Text) -> Bool {
        left.withBytes { left in right.withBytes { left.precedes($0) } }
    }

    /// Hashes the UTF-8 bytes.
    public func hash(into hasher: inout Hasher) {
        withBytes { hasher.combine(bytes: $0) }
        // This byte never occurs in UTF-8, so ["a", "bc"] and ["ab", "c"] are hashed differently.
        hasher.combine(UInt8(0xFF))
    }
}

extension Text: ExpressibleByStringLiteral, CustomStringConvertible {
    /// Makes a text from a literal.
    public init(stringLiteral value: String) {
        self.init(value)
    }

    /// The string.
    public var description: String { string }
}
