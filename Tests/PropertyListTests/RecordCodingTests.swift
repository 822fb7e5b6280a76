// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Testing

@Suite struct RecordCodingTests {
    @Test func `a record comes back part by part`() throws {
        var encoder = CanonicalEncoder(capacity: 64)
        encoder.byte(7)
        encoder.varint(.max)
        encoder.count(3)
        encoder.zigzag(.min)
        encoder.fixed64(0x0102_0304_0506_0708)
        encoder.raw([1, 2, 3])
        encoder.data([4, 5])
        encoder.text("é")
        encoder.value(.array([.boolean(true)]))

        var decoder = CanonicalDecoder(encoder.bytes)
        #expect(try decoder.byte() == 7)
        #expect(try decoder.varint() == .max)
        #expect(try decoder.count() == 3)
        #expect(try decoder.zigzag() == .min)
        #expect(try decoder.fixed64() == 0x0102_0304_0506_0708)
        #expect(try decoder.raw(3) == [1, 2, 3])
        #expect(try decoder.data() == [4, 5])
        #expect(try decoder.text() == "é")
        #expect(decoder.remaining == 3 && !decoder.isAtEnd)
        let (value, size) = try decoder.sizedValue()
        #expect(value == .array([.boolean(true)]) && size == 1)
        #expect(decoder.isAtEnd)
        try decoder.finish()
    }

    @Test func `numbers around every power of two are written as the obvious way writes them`() throws {
        let powers = (0..<64).map { UInt64(1) << $0 }
        for number in powers.flatMap({ [$0 &- 1, $0, $0 &+ 1] }) + [.max] {
            var encoder = CanonicalEncoder()
            encoder.varint(number)
            #expect(encoder.bytes == slowVarint(number))
            var decoder = CanonicalDecoder(encoder.bytes)
            #expect(try decoder.varint() == number)
            for signed in [Int64(truncatingIfNeeded: number), 0 &- Int64(truncatingIfNeeded: number)] {
                var encoder = CanonicalEncoder()
                encoder.zigzag(signed)
                var decoder = CanonicalDecoder(encoder.bytes)
                #expect(try decoder.zigzag() == signed)
            }
        }
    }

    @Test func `after a refusal the decoder is where it was`() throws {
        var decoder = CanonicalDecoder([0x01, 0x05, 0x61])
        _ = try decoder.byte()
        #expect(throws: CanonicalDecodingError(.lengthBeyondEnd(5), offset: 1)) { try decoder.text() }
        #expect(throws: CanonicalDecodingError(.lengthBeyondEnd(3), offset: 1)) { try decoder.raw(3) }
        #expect(throws: CanonicalDecodingError(.truncated, offset: 1)) { try decoder.fixed64() }
        #expect(throws: CanonicalDecodingError(.trailingBytes(2), offset: 1)) { try decoder.finish() }
        #expect(decoder.offset == 1)
        #expect(try decoder.raw(2) == [0x05, 0x61])
        #expect(throws: CanonicalDecodingError(.truncated, offset: 3)) { try decoder.byte() }
        #expect(throws: CanonicalDecodingError(.truncated, offset: 3)) { try decoder.varint() }
    }

    @Test func `a count of elements that cannot fit is refused`() throws {
        let bytes: [UInt8] = [0x03, 0, 0, 0, 0, 0]
        for (elementBytes, fits) in [(0, true), (1, true), (2, false), (Int.max, false)] {
            var decoder = CanonicalDecoder(bytes)
            if fits {
                #expect(try decoder.count(elementBytes: elementBytes) == 3)
            } else {
                #expect(throws: CanonicalDecodingError(.countBeyondEnd(3), offset: 0)) {
                    try decoder.count(elementBytes: elementBytes)
                }
            }
        }
    }

    @Test func `a negative count reads nothing and writes zero`() throws {
        var decoder = CanonicalDecoder([1])
        #expect(try decoder.raw(-1) == [])
        #expect(decoder.offset == 0)
        var encoder = CanonicalEncoder()
        encoder.count(-1)
        #expect(encoder.bytes == [0])
    }

    @Test func `offsets in a slice count from its start`() {
        let bytes: [UInt8] = [9, 9, 9, 0x80]
        var decoder = CanonicalDecoder(bytes[3...])
        #expect(throws: CanonicalDecodingError(.truncated, offset: 0)) { try decoder.varint() }
    }

    @Test func `a record's own rule is refused with its words and offset`() {
        let decoder = CanonicalDecoder([1, 2])
        #expect(decoder.failure("the stamps go back").offset == 0)
        let error = decoder.failure("the stamps go back", at: 1)
        #expect(error == CanonicalDecodingError(.malformed("the stamps go back"), offset: 1))
        #expect(error.description.hasSuffix("at byte 1: the stamps go back."))
    }
}
