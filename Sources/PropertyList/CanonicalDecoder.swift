// SPDX-License-Identifier: Apache-2.0

/// Reads what ``CanonicalEncoder`` wrote, and refuses everything else.
///
/// Every method reads what the encoder's method of the same name writes and moves on; if it throws, the decoder stays
/// where it was. After the last part of a record call ``finish()``: bytes that nobody reads would make a second
/// encoding of the same record.
public struct CanonicalDecoder: Sendable {
    private let input: ArraySlice<UInt8>

    /// The position of what is read next, in bytes from the start of what the decoder was given.
    public private(set) var offset = 0

    /// Reads all of the bytes.
    public init(_ bytes: [UInt8]) {
        input = bytes[...]
    }

    /// Reads the slice; offsets count from its start.
    public init(_ bytes: ArraySlice<UInt8>) {
        input = bytes
    }

    /// The number of bytes that are not read yet.
    public var remaining: Int { input.count - offset }

    /// Whether everything was read.
    public var isAtEnd: Bool { remaining == 0 }

    /// One byte.
    public mutating func byte() throws(CanonicalDecodingError) -> UInt8 {
        try read { (reader) throws(CanonicalDecodingError) in try reader.byte() }
    }

    /// A LEB128 number in its shortest form.
    public mutating func varint() throws(CanonicalDecodingError) -> UInt64 {
        try read { (reader) throws(CanonicalDecodingError) in try reader.varint() }
    }

    /// A count of elements, each of which takes at least `elementBytes` (1 or more) in what follows; a count that can't
    /// fit is refused. Still do not reserve memory for all of them at once: an element may be much larger in memory.
    public mutating func count(elementBytes: Int = 1) throws(CanonicalDecodingError) -> Int {
        try read { (reader) throws(CanonicalDecodingError) in try reader.count(elementBytes: elementBytes) }
    }

    /// A signed number, from the varint of its zigzag.
    public mutating func zigzag() throws(CanonicalDecodingError) -> Int64 {
        try read { (reader) throws(CanonicalDecodingError) in try reader.zigzag() }
    }

    /// Eight bytes, big-endian.
    public mutating func fixed64() throws(CanonicalDecodingError) -> UInt64 {
        try read { (reader) throws(CanonicalDecodingError) in try reader.fixed64() }
    }

    /// The next `count` bytes, without a length. A negative count is none.
    public mutating func raw(_ count: Int) throws(CanonicalDecodingError) -> [UInt8] {
        try read { (reader) throws(CanonicalDecodingError) in Array(try reader.raw(count)) }
    }

    /// Bytes after their length.
    public mutating func data() throws(CanonicalDecodingError) -> [UInt8] {
        try read { (reader) throws(CanonicalDecodingError) in Array(try reader.data()) }
    }

    /// UTF-8 after its length; neither invalid UTF-8 nor U+0000 passes.
    public mutating func text() throws(CanonicalDecodingError) -> Text {
        try read { (reader) throws(CanonicalDecodingError) in try reader.text() }
    }

    /// A value. It is valid under `limits` (`depth` and `valueBytes`), so ``Value/validate(_:)`` need not be asked.
    public mutating func value(_ limits: Limits = .standard) throws(CanonicalDecodingError) -> Value {
        try sizedValue(limits).value
    }

    /// A value and its ``Value/size``, counted on the way.
    public mutating func sizedValue(
        _ limits: Limits = .standard
    ) throws(CanonicalDecodingError) -> (value: Value, size: Int) {
        try read { (reader) throws(CanonicalDecodingError) in try reader.value(limits) }
    }

    /// Throws if bytes are left.
    public func finish() throws(CanonicalDecodingError) {
        guard isAtEnd else { throw CanonicalDecodingError(.trailingBytes(remaining), offset: offset) }
    }

    /// An error for a rule of the record around the values; `clause` can follow "at byte 12: ".
    ///
    /// `offset` is where what breaks the rule begins, or `nil` for where the decoder is.
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
    /// Decodes one canonical encoding, all of it; throws what is wrong and where.
    ///
    /// What it returns is valid under `limits` (`depth` and `valueBytes`) and encodes to exactly these bytes.
    public init(encoded bytes: [UInt8], limits: Limits = .standard) throws(CanonicalDecodingError) {
        self = try Self.decode(bytes, limits: limits).value
    }

    /// Decodes one canonical encoding, all of the slice; offsets count from its start.
    public init(encoded bytes: ArraySlice<UInt8>, limits: Limits = .standard) throws(CanonicalDecodingError) {
        self = try bytes.withUnsafeBufferPointer { (bytes) throws(CanonicalDecodingError) in
            try Self.decode(UnsafeRawBufferPointer(bytes), limits: limits).value
        }
    }

    /// Decodes one canonical encoding, all of it, out of memory that is only borrowed: a column of a database.
    public init(encoded bytes: UnsafeRawBufferPointer, limits: Limits = .standard) throws(CanonicalDecodingError) {
        self = try Self.decode(bytes, limits: limits).value
    }

    /// Decodes like ``init(encoded:limits:)``, and returns the ``size`` that was counted on the way.
    public static func decode(
        _ bytes: [UInt8],
        limits: Limits = .standard
    ) throws(CanonicalDecodingError) -> (value: Value, size: Int) {
        try bytes.withUnsafeBufferPointer { (bytes) throws(CanonicalDecodingError) in
            try decode(UnsafeRawBufferPointer(bytes), limits: limits)
        }
    }

    /// Decodes borrowed memory, and returns the ``size`` that was counted on the way.
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
