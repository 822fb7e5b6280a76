// SPDX-License-Identifier: Apache-2.0

/// Reads one value, counting its size and checking every rule of a value on the way.
struct ValueReader {
    var bytes: ByteReader
    let limits: Limits
    /// The size counted so far.
    var size = 0

    /// Reads the value that begins here, inside this many containers.
    mutating func value(nesting: Int = 0) throws(CanonicalDecodingError) -> Value {
        let start = bytes.offset
        let byte = try bytes.byte()
        guard let tag = Tag(rawValue: byte) else { throw CanonicalDecodingError(.unknownTag(byte), offset: start) }
        switch tag {
        case .false, .true:
            try count(1, at: start)
            return .boolean(tag == .true)
        case .integer:
            try count(8, at: start)
            return .integer(try bytes.zigzag())
        case .real:
            try count(8, at: start)
            return .real(Double(bitPattern: try bytes.fixed64()))
        case .date: return try date(at: start)
        case .string: return try string(at: start)
        case .data: return try data(at: start)
        case .array: return try array(at: start, nesting: nesting)
        case .dictionary: return try dictionary(at: start, nesting: nesting)
        }
    }

    private mutating func date(at start: Int) throws(CanonicalDecodingError) -> Value {
        try count(8, at: start)
        let seconds = Double(bitPattern: try bytes.fixed64())
        guard seconds.isFinite else { throw CanonicalDecodingError(.dateNotFinite, offset: start) }
        return .date(seconds)
    }

    private mutating func string(at start: Int) throws(CanonicalDecodingError) -> Value {
        let utf8 = try bytes.data()
        // Count before copying, here and for data.
        try count(Swift.max(1, utf8.count), at: start)
        return .string(try ByteReader.text(utf8, at: bytes.offset - utf8.count))
    }

    private mutating func data(at start: Int) throws(CanonicalDecodingError) -> Value {
        let data = try bytes.data()
        try count(Swift.max(1, data.count), at: start)
        return .data(Array(data))
    }

    private mutating func array(at start: Int, nesting: Int) throws(CanonicalDecodingError) -> Value {
        let nesting = try enter(nesting, at: start)
        let elements = try bytes.count(elementBytes: 1)
        if elements == 0 { try count(1, at: start) }
        var values: [Value] = []
        values.reserveCapacity(Swift.min(elements, Self.trustedCount))
        for _ in 0..<elements {
            values.append(try value(nesting: nesting))
        }
        return .array(values)
    }

    private mutating func dictionary(at start: Int, nesting: Int) throws(CanonicalDecodingError) -> Value {
        let nesting = try enter(nesting, at: start)
        // The minimum is the length of an empty key, and a Boolean.
        let entries = try bytes.count(elementBytes: 2)
        if entries == 0 { try count(1, at: start) }
        var values = [Text: Value](minimumCapacity: Swift.min(entries, Self.trustedCount))
        var previous: UnsafeRawBufferPointer?
        for _ in 0..<entries {
            let key = try key(after: previous)
            values[key.text] = try value(nesting: nesting)
            previous = key.utf8
        }
        return .dictionary(values)
    }

    private mutating func key(
        after previous: UnsafeRawBufferPointer?
    ) throws(CanonicalDecodingError) -> (text: Text, utf8: UnsafeRawBufferPointer) {
        let utf8 = try bytes.data()
        let start = bytes.offset - utf8.count
        if let previous, !previous.precedes(utf8) {
            let isDuplicate = previous.hasSameBytes(as: utf8)
            throw CanonicalDecodingError(isDuplicate ? .duplicateKey : .keysOutOfOrder, offset: start)
        }
        try count(utf8.count, at: start)
        return (try ByteReader.text(utf8, at: start), utf8)
    }

    /// The maximum number of elements to reserve memory for because of a count. An element takes many times its encoded
    /// bytes in memory, and sixteen nested counts may each claim the whole rest of the input.
    private static var trustedCount: Int { 256 }

    private func enter(_ nesting: Int, at offset: Int) throws(CanonicalDecodingError) -> Int {
        guard nesting < limits.depth else {
            throw CanonicalDecodingError(.tooDeep(limit: limits.depth), offset: offset)
        }
        return nesting + 1
    }

    private mutating func count(_ more: Int, at offset: Int) throws(CanonicalDecodingError) {
        size = size.addingClamped(more)
        if size > limits.valueBytes {
            throw CanonicalDecodingError(.tooLarge(limit: limits.valueBytes), offset: offset)
        }
    }
}
