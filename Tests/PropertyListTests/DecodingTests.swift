// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Testing

@Suite struct DecodingTests {
    @Test(arguments: Refusal.all)
    func `what is not canonical is refused, and where`(refusal: Refusal) {
        #expect(throws: CanonicalDecodingError(refusal.reason, offset: refusal.offset)) {
            try Value(encoded: refusal.bytes)
        }
    }

    @Test(arguments: Vector.all)
    func `every truncation is refused at an offset within it`(vector: Vector) {
        for count in 0..<vector.bytes.count {
            let error = #expect(throws: CanonicalDecodingError.self) { try Value(encoded: vector.bytes[..<count]) }
            #expect((error?.offset ?? -1) >= 0 && (error?.offset ?? .max) <= count)
        }
    }

    @Test(arguments: Vector.all)
    func `every bit flip is refused or is another value with exactly those bytes`(vector: Vector) {
        for bit in 0..<vector.bytes.count * 8 {
            var bytes = vector.bytes
            bytes[bit / 8] ^= 1 << (bit % 8)
            expectRefusalOrOneEncoding(bytes)
            if let value = try? Value(encoded: bytes) { #expect(value != vector.value) }
        }
    }

    @Test func `bytes from a generator, and damaged encodings, are refused or are one encoding`() {
        var generator = Generator(stream: 6)
        for _ in 0..<20_000 {
            // Low bytes are tags and small counts, so that the decoder accepts the beginning of some inputs.
            expectRefusalOrOneEncoding(
                generator.bytes(generator.below(12)).map { $0 % (generator.below(2) == 0 ? 12 : 255) }
            )
        }
        for _ in 0..<5000 {
            var bytes = generator.value().encoded()
            for _ in 0...generator.below(3) { bytes[generator.below(bytes.count)] = generator.bytes(1)[0] }
            expectRefusalOrOneEncoding(bytes)
        }
    }

    private func expectRefusalOrOneEncoding(_ bytes: [UInt8]) {
        guard let (value, size) = try? Value.decode(bytes) else { return }
        #expect(value.encoded() == bytes, "seed \(seed), bytes \(hex(bytes))")
        #expect((try? value.validate()) == size, "seed \(seed), bytes \(hex(bytes))")
    }

    @Test func `every byte that is no tag is refused`() {
        for byte in UInt8.min...UInt8.max where !(1...9).contains(byte) {
            #expect(throws: CanonicalDecodingError(.unknownTag(byte), offset: 0)) { try Value(encoded: [byte]) }
        }
    }

    @Test(arguments: [[UInt8]([0x08, 0x01]), [0x09, 0x01, 0x00]])
    func `sixteen levels are read, the seventeenth is refused at its tag, and so are a hundred thousand`(level: [UInt8])
        throws
    {
        func bytes(_ depth: Int) -> [UInt8] { Array([[UInt8]](repeating: level, count: depth).joined()) + [0x01] }
        #expect(try Value(encoded: bytes(16)).depth == 16)
        for depth in [17, 100_000] {
            #expect(throws: CanonicalDecodingError(.tooDeep(limit: 16), offset: 16 * level.count)) {
                try Value(encoded: bytes(depth))
            }
        }
        #expect(try Value(encoded: bytes(17), limits: Limits(depth: 17)).depth == 17)
    }

    @Test func `a value larger than the limit is refused where it exceeds it`() throws {
        let limits = Limits(valueBytes: 10)
        let bytes = Value.array([.integer(1), .string("ab"), .boolean(true)]).encoded()
        #expect(throws: CanonicalDecodingError(.tooLarge(limit: 10), offset: 8)) {
            try Value(encoded: bytes, limits: limits)
        }
        #expect(try Value.decode(bytes, limits: Limits(valueBytes: 11)).size == 11)
        let keys = Value.dictionary(["a": .integer(1), "bc": .boolean(true)]).encoded()
        #expect(throws: CanonicalDecodingError(.tooLarge(limit: 10), offset: 7)) {
            try Value(encoded: keys, limits: limits)
        }
        for empty: Value in [.array([]), .dictionary([:]), .string(""), .data([])] {
            let bytes = Value.array([.integer(1), empty, empty, empty]).encoded()
            #expect(throws: CanonicalDecodingError(.tooLarge(limit: 10), offset: 8)) {
                try Value(encoded: bytes, limits: limits)
            }
        }
    }

    @Test func `a count that fits the input but not the elements costs nothing`() {
        // Sixteen nested arrays, each of which claims all of the remaining 4 MB.
        var encoder = CanonicalEncoder()
        for _ in 0..<16 {
            encoder.byte(0x08)
            encoder.varint(4_000_000)
        }
        encoder.raw([UInt8](repeating: 0x00, count: 4_000_100))
        #expect(throws: CanonicalDecodingError(.unknownTag(0), offset: 16 * 5)) { try Value(encoded: encoder.bytes) }
    }

    @Test func `an error is a sentence with the offset`() {
        let error = CanonicalDecodingError(.duplicateKey, offset: 12)
        #expect(error.description == "The encoding is damaged or not ours, at byte 12: a dictionary has a key twice.")
    }
}
