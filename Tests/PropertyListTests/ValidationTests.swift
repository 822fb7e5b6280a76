// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import PropertyList

@Suite struct ValidationTests {
    @Test func `size and depth are what the obvious count says`() throws {
        var generator = Generator(stream: 3)
        let values = (0..<5000).map { _ in generator.value() } + Vector.all.map(\.value)
        for value in values {
            #expect(value.size == slowSize(value), "seed \(seed)")
            #expect(value.depth == slowDepth(value), "seed \(seed)")
            #expect(try value.validate() == value.size, "seed \(seed)")
        }
    }

    @Test func `nothing is smaller than one, nested or not`() throws {
        let nothings: [Value] = [.string(""), .data([]), .array([]), .dictionary([:]), .boolean(false)]
        for value in nothings {
            #expect(value.size == 1)
        }
        #expect(Value.array(nothings).size == 5)
        #expect(Value.array([.array([.array([])])]).size == 1)
        #expect(Value.dictionary(["": .string("")]).size == 1)
    }

    @Test func `a mebibyte fits exactly, one byte more does not`() throws {
        let limit = 1_048_576
        for makeValue in fillings {
            let (fits, larger) = (makeValue(limit), makeValue(limit + 1))
            #expect(try fits.validate() == limit)
            #expect(fits.size == limit)
            #expect(larger.size == limit + 1)
            #expect(throws: ValueError.tooLarge(size: limit + 1, limit: limit)) { try larger.validate() }
            #expect(try Value.decode(fits.encoded()).size == limit)
            #expect(throws: CanonicalDecodingError.self) { try Value(encoded: larger.encoded()) }
        }
    }

    /// Makes values of a number of bytes, of every kind that can be that large.
    private var fillings: [@Sendable (Int) -> Value] {
        [
            { .data(Array(repeating: 0, count: $0)) },
            { .string(Text(String(repeating: "x", count: $0))) },
            { .array(Array(repeating: .boolean(true), count: $0)) },
            { .dictionary([Text(String(repeating: "k", count: $0 - 1)): .boolean(true)]) },
        ]
    }

    @Test func `a value whose parts are shared is refused before it is counted to the end`() {
        // 1000 to the 15th scalars, in a few kilobytes of memory.
        var value = Value.string("")
        for _ in 0..<15 { value = .array(Array(repeating: value, count: 1000)) }
        let limit = Limits.standard.valueBytes
        #expect(throws: ValueError.tooLarge(size: limit + 1, limit: limit)) { try value.validate() }
    }

    @Test func `a size beyond the largest integer does not wrap`() {
        #expect(Int.max.addingClamped(1) == .max)
        #expect((Int.max - 1).addingClamped(.max) == .max)
        #expect(3.addingClamped(4) == 7)
    }

    @Test(arguments: [false, true])
    func `sixteen levels are allowed, the seventeenth is refused`(dictionaries: Bool) throws {
        #expect(try nested(16, dictionaries).validate() == 8)
        #expect(nested(16, dictionaries).depth == 16)
        #expect(throws: ValueError.tooDeep(limit: 16)) { try nested(17, dictionaries).validate() }
        #expect(throws: ValueError.tooDeep(limit: 0)) { try Value.array([]).validate(Limits(depth: 0)) }
        #expect(try Value.integer(1).validate(Limits(depth: 0)) == 8)
    }

    @Test func `a value nested a hundred thousand deep is refused without a crash`() {
        var value = nested(100_000, false)
        #expect(throws: ValueError.tooDeep(limit: 16)) { try value.validate() }
        // Swift frees nested arrays recursively and would run out of stack, so take the value apart from the outside.
        while case .array(let elements) = value, let inner = elements.first { value = inner }
        #expect(value == .integer(1))
    }

    private func nested(_ depth: Int, _ dictionaries: Bool) -> Value {
        (0..<depth).reduce(.integer(1)) { value, _ in dictionaries ? .dictionary(["": value]) : .array([value]) }
    }

    @Test(arguments: [
        Value.string("\0"), .string("a string with U+0000 in its end\0"), .array([.string("a\0b")]),
        .dictionary(["\0": .integer(1)]), .dictionary(["a": .dictionary(["k\0": .integer(1)])]),
    ])
    func `U+0000 is refused in strings and keys at every level`(value: Value) {
        #expect(throws: ValueError.containsNUL) { try value.validate() }
        #expect(throws: CanonicalDecodingError.self) { try Value(encoded: value.encoded()) }
    }

    @Test func `of all scalars but U+0000, the 66 noncharacters are refused, wherever they stand`() throws {
        for number in 1...0x10_FFFF as ClosedRange<UInt32> {
            guard let scalar = Unicode.Scalar(number) else { continue }
            let isNoncharacter = (0xFDD0...0xFDEF).contains(number) || number & 0xFFFE == 0xFFFE
            // Before, within and after words of eight bytes, and beside scalars of two bytes.
            let text =
                String(repeating: "a\u{E9}", count: Int(number % 5)) + String(scalar) + (number % 2 == 0 ? "" : "b")
            #expect(Text(text).containsNoncharacter == isNoncharacter)
            if number % 97 == 0 || isNoncharacter {
                let value = Value.dictionary([Text(text): .string(Text(text))])
                #expect(((try? value.validate()) == nil) == isNoncharacter)
                #expect(((try? Value(encoded: value.encoded())) == nil) == isNoncharacter)
            }
        }
    }

    @Test(arguments: [Double.infinity, -.infinity, .nan, .signalingNaN])
    func `a date that is not finite is refused, a real is not`(number: Double) throws {
        #expect(throws: ValueError.dateNotFinite) { try Value.date(number).validate() }
        #expect(throws: ValueError.dateNotFinite) { try Value.array([.date(number)]).validate() }
        #expect(try Value.real(number).validate() == 8)
    }

    @Test func `data may hold zeroes`() throws {
        #expect(try Value.data([0, 0]).validate() == 2)
    }

    @Test func `every error is a sentence`() {
        for error in [
            ValueError.tooDeep(limit: 16), .tooLarge(size: 9, limit: 8), .containsNUL, .containsNoncharacter,
            .dateNotFinite,
        ] {
            #expect(error.description.hasSuffix("."))
        }
    }
}
