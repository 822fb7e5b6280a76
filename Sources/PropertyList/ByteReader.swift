// SPDX-License-Identifier: Apache-2.0

// The decoder proper, on bytes in memory. It treats all input as hostile: it doesn't reserve memory for announced
// counts, doesn't recurse deeper than the limit, and accepts only the one encoding of what it returns.
//
// Every method throws the offset at which the refused part begins; `offset` is then undefined.

/// Reads the parts of canonical bytes. It must not outlive the pointer. ``CanonicalDecoder`` is the public interface.
struct ByteReader {
    let input: UnsafeRawBufferPointer
    var offset: Int

    init(_ input: UnsafeRawBufferPointer, at offset: Int = 0) {
        self.input = input
        self.offset = offset
    }

    var remaining: Int { input.count - offset }

    mutating func byte() throws(CanonicalDecodingError) -> UInt8 {
        guard remaining > 0 else { throw CanonicalDecodingError(.truncated, offset: offset) }
        defer { offset += 1 }
        return input[offset]
    }

    mutating func varint() throws(CanonicalDecodingError) -> UInt64 {
        let start = offset
        var number: UInt64 = 0
        var shift: UInt64 = 0
        while offset < input.count {
            let byte = input[offset]
            offset += 1
            // The tenth byte holds only the 64th bit.
            if shift == 63, byte > 1 { throw CanonicalDecodingError(.varintTooLarge, offset: start) }
            number |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 {
                if byte == 0, shift > 0 { throw CanonicalDecodingError(.varintNotShortest, offset: start) }
                return number
            }
            shift += 7
        }
        throw CanonicalDecodingError(.truncated, offset: start)
    }

    mutating func zigzag() throws(CanonicalDecodingError) -> Int64 {
        let number = try varint()
        return Int64(bitPattern: (number >> 1) ^ (0 &- (number & 1)))
    }

    mutating func fixed64() throws(CanonicalDecodingError) -> UInt64 {
        guard remaining >= 8 else { throw CanonicalDecodingError(.truncated, offset: offset) }
        defer { offset += 8 }
        return UInt64(bigEndian: input.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    /// Reads a count of elements, each of which takes at least this many bytes.
    mutating func count(elementBytes: Int) throws(CanonicalDecodingError) -> Int {
        let start = offset
        let count = try varint()
        guard count <= UInt64(remaining / Swift.max(1, elementBytes)) else {
            throw CanonicalDecodingError(.countBeyondEnd(count), offset: start)
        }
        return Int(count)
    }

    /// Reads the next bytes, without a length.
    mutating func raw(_ count: Int) throws(CanonicalDecodingError) -> UnsafeRawBufferPointer {
        guard count <= remaining else {
            throw CanonicalDecodingError(.lengthBeyondEnd(UInt64(clamping: count)), offset: offset)
        }
        let start = offset
        offset += Swift.max(0, count)
        return input[slice: start..<offset]
    }

    /// Reads bytes after their length.
    mutating func data() throws(CanonicalDecodingError) -> UnsafeRawBufferPointer {
        let start = offset
        let length = try varint()
        guard length <= UInt64(remaining) else {
            throw CanonicalDecodingError(.lengthBeyondEnd(length), offset: start)
        }
        return try raw(Int(length))
    }

    mutating func text() throws(CanonicalDecodingError) -> Text {
        let bytes = try data()
        return try Self.text(bytes, at: offset - bytes.count)
    }

    /// Makes a text of the bytes that begin at `offset`.
    static func text(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(CanonicalDecodingError) -> Text {
        if bytes.containsZero, let index = bytes.firstIndex(of: 0) {
            throw CanonicalDecodingError(.containsNUL, offset: offset + index)
        }
        let text: Text
        do throws(UTF8.ValidationError) {
            // Takes half the time of String(validating:as:), and reports the position of an error.
            let utf8 = try UTF8Span(validating: bytes.assumingMemoryBound(to: UInt8.self).span)
            text = Text(String(copying: utf8))
        } catch {
            throw CanonicalDecodingError(.invalidUTF8, offset: offset + error.byteOffsets.lowerBound)
        }
        if let index = bytes.firstNoncharacter {
            throw CanonicalDecodingError(.containsNoncharacter, offset: offset + index)
        }
        return text
    }

    /// Reads a value, and returns its size too.
    mutating func value(_ limits: Limits) throws(CanonicalDecodingError) -> (value: Value, size: Int) {
        var reader = ValueReader(bytes: self, limits: limits)
        let value = try reader.value()
        offset = reader.bytes.offset
        return (value, reader.size)
    }

    func finish() throws(CanonicalDecodingError) {
        guard remaining == 0 else { throw CanonicalDecodingError(.trailingBytes(remaining), offset: offset) }
    }
}
