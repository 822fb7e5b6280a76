// SPDX-License-Identifier: Apache-2.0

// The canonical encoding: one encoding per value, equal bytes for equal values. The database stores it, digests are
// made of it, and it travels to remotes. docs/remote-format.md specifies it, with vectors that a test compares with
// this code.
//
// Integers are varints: settings are mostly small integers (counts, enumerations, versions), which take two bytes with
// their tag instead of nine. A varint has one shortest form, which the decoder requires. Reals and dates have their
// high bits set, so a varint would be longer: they take eight bytes, big-endian.

/// Writes canonical bytes: values, and the parts of records that contain them.
///
/// Every method appends, and none can fail. The method of ``CanonicalDecoder`` with the same name reads what it writes.
public struct CanonicalEncoder: Sendable {
    /// The bytes written so far.
    public private(set) var bytes: [UInt8] = []

    /// Makes an encoder with room for this many bytes.
    public init(capacity: Int = 0) {
        if capacity > 0 { bytes.reserveCapacity(capacity) }
    }

    /// Writes one byte.
    public mutating func byte(_ byte: UInt8) {
        bytes.append(byte)
    }

    /// Writes an unsigned number as LEB128 in its shortest form: 1 to 10 bytes, seven bits each, the lowest first.
    public mutating func varint(_ number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    /// Writes a count or a length, as a varint. A negative count is written as 0.
    public mutating func count(_ count: Int) {
        varint(UInt64(clamping: count))
    }

    /// Writes a signed number as the varint of its zigzag (0, -1, 1, -2 … become 0, 1, 2, 3 …), so that small numbers
    /// are short.
    public mutating func zigzag(_ number: Int64) {
        varint(UInt64(bitPattern: (number << 1) ^ (number >> 63)))
    }

    /// Writes eight bytes, big-endian. Of a `Double`, write its `bitPattern`.
    public mutating func fixed64(_ number: UInt64) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    /// Writes bytes without a length: a digest, or a record that is already encoded.
    public mutating func raw(_ bytes: [UInt8]) {
        self.bytes.append(contentsOf: bytes)
    }

    /// Writes the UTF-8 of a text, without a length.
    public mutating func raw(_ text: Text) {
        text.withBytes { bytes.append(contentsOf: $0) }
    }

    /// Writes the number of bytes as a varint, then the bytes.
    public mutating func data(_ bytes: [UInt8]) {
        count(bytes.count)
        self.bytes.append(contentsOf: bytes)
    }

    /// Writes the number of UTF-8 bytes as a varint, then the UTF-8. U+0000 and noncharacters are written too, but
    /// refused when read.
    public mutating func text(_ text: Text) {
        text.withBytes {
            count($0.count)
            bytes.append(contentsOf: $0)
        }
    }

    /// Writes a value with its tag. An invalid value is written, and refused when read. This recurses as deep as the
    /// value is nested, so validate values from outside first.
    public mutating func value(_ value: Value) {
        bytes.append(value.tag.rawValue)
        switch value {
        case .boolean: break
        case .integer(let number): zigzag(number)
        case .real(let number), .date(let number): fixed64(number.bitPattern)
        case .string(let text): self.text(text)
        case .data(let bytes): data(bytes)
        case .array(let values):
            count(values.count)
            for value in values { self.value(value) }
        case .dictionary(let values): entries(of: values)
        }
    }

    /// Writes the entries unsorted and then sorts their positions in the written bytes. That takes a third of the time
    /// of sorting keys and values, each move of which changes reference counts.
    private mutating func entries(of dictionary: [Text: Value]) {
        count(dictionary.count)
        let start = bytes.count
        var entries: [Entry] = []
        entries.reserveCapacity(dictionary.count)
        for (key, value) in dictionary {
            let entryStart = bytes.count - start
            text(key)
            let keyEnd = bytes.count - start
            self.value(value)
            let key = keyEnd - key.utf8Count..<keyEnd
            entries.append(Entry(start: entryStart, key: key, end: bytes.count - start))
        }
        if entries.count > 1 { sort(&entries, from: start) }
    }

    private mutating func sort(_ entries: inout [Entry], from start: Int) {
        let unsorted = Array(bytes[start...])
        bytes.removeSubrange(start...)
        unsorted.withUnsafeBytes { unsorted in
            entries.sort { unsorted[slice: $0.key].precedes(unsorted[slice: $1.key]) }
            for entry in entries {
                bytes.append(contentsOf: unsorted[slice: entry.start..<entry.end])
            }
        }
    }

    /// The position of a dictionary's entry, relative to the first one.
    private struct Entry {
        var start: Int
        var key: Range<Int>
        var end: Int
    }
}

extension Value {
    /// The canonical encoding: the same bytes for every equal value, in every process and version.
    ///
    /// The value must be valid (``validate(_:)``); otherwise ``init(encoded:limits:)`` refuses the bytes.
    public func encoded() -> [UInt8] {
        var encoder = CanonicalEncoder(capacity: encodedCapacity)
        encoder.value(self)
        return encoder.bytes
    }

    /// Appends the canonical encoding.
    public func encode(into encoder: inout CanonicalEncoder) {
        encoder.value(self)
    }

    /// Enough room for most values of this kind and count, because growing costs more than some unused bytes. Large
    /// containers do grow.
    private var encodedCapacity: Int {
        switch self {
        case .boolean: 1
        case .integer, .real, .date: 11
        case .string(let text): text.utf8Count + 11
        case .data(let bytes): bytes.count + 11
        case .array(let values): Swift.min(values.count, 256) * 16 + 11
        case .dictionary(let values): Swift.min(values.count, 256) * 48 + 11
        }
    }
}
