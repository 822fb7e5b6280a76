// SPDX-License-Identifier: Apache-2.0

/// Reads what ``CanonicalEncoder`` writes, and refuses everything else.
///
/// Every method reads what the encoder's method of the same name writes, and advances; if it throws, the decoder stays
/// where it was. Call ``finish()`` after the last part of a record: unread bytes would make a second encoding of the
/// same record.
public struct CanonicalDecoder: Sendable {
    private let input: ArraySlice<UInt8>

    /// Is asked before elements are read, with the bytes that they take in memory. If it returns false, decoding fails.
    public var takesMemory: (@Sendable (_ bytes: Int) -> Bool)?

    /// The current position, in bytes from the start of the input.
    public private(set) var offset = 0

    /// Makes a decoder of all of the bytes.
    public init(_ bytes: [UInt8]) {
        input = bytes[...]
    }

    /// Makes a decoder of a slice; offsets count from its start.
    public init(_ bytes: ArraySlice<UInt8>) {
        input = bytes
    }

    /// The number of unread bytes.
    public var remaining: Int { input.count - offset }

    /// Whether everything was read.
    public var isAtEnd: Bool { remaining == 0 }

    /// Reads one byte.
    public mutating func byte() throws(CanonicalDecodingError) -> UInt8 {
        try read { (reader) throws(CanonicalDecodingError) in try reader.byte() }
    }

    /// Reads a LEB128 number in its shortest form.
    public mutating func varint() throws(CanonicalDecodingError) -> UInt64 {
        try read { (reader) throws(CanonicalDecodingError) in try reader.varint() }
    }

    /// Reads a count of elements, each of which takes at least `elementBytes` (1 or more) in the rest of the input. A
    /// count that can't fit is refused. Even so, do not reserve memory for all of them at once: an element may be much
    /// larger in memory.
    /// - Parameter memory: about how many bytes an element takes in memory; ``takesMemory`` may refuse them.
    public mutating func count(elementBytes: Int = 1, memory: Int = 0) throws(CanonicalDecodingError) -> Int {
        let (start, takesMemory) = (offset, takesMemory)
        return try read { (reader) throws(CanonicalDecodingError) in
            let count = try reader.count(elementBytes: elementBytes)
            if memory > 0, count > 0, takesMemory?(count * memory) == false {
                throw CanonicalDecodingError(.countBeyondEnd(UInt64(count)), offset: start)
            }
            return count
        }
    }

    /// Reads a signed number, from the varint of its zigzag.
    public mutating func zigzag() throws(CanonicalDecodingError) -> Int64 {
        try read { (reader) throws(CanonicalDecodingError) in try reader.zigzag() }
    }

    /// Reads eight bytes, big-endian.
    public mutating func fixed64() throws(CanonicalDecodingError) -> UInt64 {
        try read { (reader) throws(CanonicalDecodingError) in try reader.fixed64() }
    }

    /// Reads the next `count` bytes, without a length. A negative count reads nothing.
    public mutating func raw(_ count: Int) throws(CanonicalDecodingError) -> [UInt8] {
        try read { (reader) throws(CanonicalDecodingError) in Array(try reader.raw(count)) }
    }

    /// Reads bytes after their length.
    public mutating func data() throws(CanonicalDecodingError) -> [UInt8] {
        try read { (reader) throws(CanonicalDecodingError) in Array(try reader.data()) }
    }

    /// Reads UTF-8 after its length. Throws for invalid UTF-8, U+0000 and noncharacters.
    public mutating func text() throws(CanonicalDecodingError) -> Text {
        try read { (reader) throws(CanonicalDecodingError) in try reader.text() }
    }

    /// Reads a value. It is valid under `limits` (`depth` and `valueBytes`), so there is no need to call
    /// ``Value/validate(_:)``.
    public mutating func value(_ limits: Limits = .standard) throws(CanonicalDecodingError) -> Value {
        try sizedValue(limits).value
    }

    /// Reads a value, and returns its ``Value/size`` too.
    public mutating func sizedValue(
        _ limits: Limits = .standard
    ) throws(CanonicalDecodingError) -> (value: Value, size: Int) {
        try read { (reader) throws(CanonicalDecodingError) in try reader.value(limits) }
    }

    /// Throws if bytes are left.
    public func finish() throws(CanonicalDecodingError) {
        guard isAtEnd else { throw CanonicalDecodingError(.trailingBytes(remaining), offset: offset) }
    }

    /// Makes an error for a rule of the record around the values. `clause` must fit after "at byte 12: ".
    ///
    /// `offset` is where the error begins; `nil` is the current position.
    public func failure(_ clause: String, at offset: Int? = nil) -> CanonicalDecodingError {
        CanonicalDecodingError(.malformed(clause), offset: offset ?? self.offset)
    }

    private mutating func read<Part>(
        _ body: (inout ByteReader) throws(CanonicalDecodingError) -> Part
    ) throws(CanonicalDecodingError) -> Part {
        let start = offset
        let (part, end) = try input.withUnsafeBufferPointer { (bytes) throws(CanonicalDecodingError) in
            var reader = ByteReader(UnsafeRawBufferPointer(bytes), at: start)
            return (try body(&reader), reader.offset)
        }
        offset = end
        return part
    }
}

extension Value {
    /// Decodes exactly one canonical encoding. Throws what is wrong and where.
    ///
    /// The value is valid under `limits` (`depth` and `valueBytes`) and encodes to exactly these bytes.
    public init(encoded bytes: [UInt8], limits: Limits = .standard) throws(CanonicalDecodingError) {
        self = try Self.decode(bytes, limits: limits).value
    }

    /// Decodes a slice that is exactly one canonical encoding. Offsets count from its start.
    public init(encoded bytes: ArraySlice<UInt8>, limits: Limits = .standard) throws(CanonicalDecodingError) {
        self = try bytes.withUnsafeBufferPointer { (bytes) throws(CanonicalDecodingError) in
            try Self.decode(UnsafeRawBufferPointer(bytes), limits: limits).value
        }
    }

    /// Decodes exactly one canonical encoding from borrowed memory, such as a column of a database.
    public init(encoded bytes: UnsafeRawBufferPointer, limits: Limits = .standard) throws(CanonicalDecodingError) {
        self = try Self.decode(bytes, limits: limits).value
    }

    /// Decodes like ``init(encoded:limits:)``, and also returns the ``size``.
    public static func decode(
        _ bytes: [UInt8],
        limits: Limits = .standard
    ) throws(CanonicalDecodingError) -> (value: Value, size: Int) {
        try bytes.withUnsafeBufferPointer { (bytes) throws(CanonicalDecodingError) in
            try decode(UnsafeRawBufferPointer(bytes), limits: limits)
        }
    }

    /// Decodes borrowed memory, and also returns the ``size``.
    public static func decode(
        _ bytes: UnsafeRawBufferPointer,
        limits: Limits = .standard
    ) throws(CanonicalDecodingError) -> (value: Value, size: Int) {
        var reader = ByteReader(bytes)
        let decoded = try reader.value(limits)
        try reader.finish()
        return decoded
    }
}
