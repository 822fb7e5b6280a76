// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Testing

@Suite struct EncodingTests {
    @Test(arguments: Vector.all)
    func `a vector encodes to its bytes and back`(vector: Vector) throws {
        #expect(hex(vector.value.encoded()) == vector.hex)
        #expect(try Value(encoded: vector.bytes) == vector.value)
    }

    @Test func `every generated value comes back, with its size, from the bytes of the obvious encoder`() throws {
        var generator = Generator(stream: 4)
        for _ in 0..<5000 {
            let value = generator.value()
            let bytes = value.encoded()
            #expect(bytes == slowEncoding(value), "seed \(seed)")
            let decoded = try Value.decode(bytes)
            #expect(decoded.value == value, "seed \(seed)")
            #expect(decoded.size == value.size, "seed \(seed)")
        }
    }

    @Test func `the order in which a dictionary was filled does not show`() {
        var generator = Generator(stream: 5)
        for count in [0, 1, 2, 3, 10, 100, 1000] {
            var entries = (0..<count).map { _ in
                (Text(generator.string() + generator.string()), generator.value(depth: 2))
            }
            entries = Dictionary(entries) { first, _ in first }.map { ($0, $1) }
            let expected = slowEncoding(.dictionary(Dictionary(entries) { first, _ in first }))
            for _ in 0..<5 {
                entries.shuffle(using: &generator)
                var dictionary: [Text: Value] = [:]
                for (key, value) in entries { dictionary[key] = value }
                #expect(Value.dictionary(dictionary).encoded() == expected, "seed \(seed)")
            }
        }
    }

    @Test func `slices and borrowed memory decode as arrays do`() throws {
        let value = Value.array([.string("hello"), .integer(-300)])
        let bytes = value.encoded()
        let surrounded = [9, 9] + bytes + [9]
        let slice = surrounded[2..<2 + bytes.count]
        #expect(try Value(encoded: slice) == value)
        #expect(try bytes.withUnsafeBytes { try Value(encoded: $0) } == value)
        #expect(
            try surrounded.withUnsafeBytes {
                try Value(encoded: UnsafeRawBufferPointer(rebasing: $0[2..<2 + bytes.count]))
            } == value
        )
        #expect(throws: CanonicalDecodingError(.trailingBytes(1), offset: bytes.count)) {
            try Value(encoded: surrounded[2...])
        }
    }

    @Test func `encoding into an encoder appends`() {
        var encoder = CanonicalEncoder()
        encoder.byte(0xAA)
        Value.dictionary(["b": .boolean(true), "a": .boolean(false)]).encode(into: &encoder)
        encoder.value(.integer(1))
        #expect(hex(encoder.bytes) == "aa 09 02 01 61 01 01 62 02 03 02")
    }
}
