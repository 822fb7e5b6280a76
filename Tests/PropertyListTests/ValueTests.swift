// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Testing

@Suite struct ValueTests {
    @Test func `one, one point zero and true are three values`() {
        let values: [Value] = [
            .integer(1), .real(1), .boolean(true), .date(1), .string("1"), .data([1]), .array([.integer(1)]),
            .dictionary(["1": .integer(1)]),
        ]
        #expect(Set(values).count == values.count)
    }

    @Test func `reals and dates are equal by their bits`() {
        let otherNaN = Double(bitPattern: Double.nan.bitPattern + 1)
        #expect(Value.real(.nan) == .real(.nan))
        #expect(Value.real(.nan) != .real(otherNaN))
        #expect(Value.real(0) != .real(-0.0))
        #expect(Value.date(0) != .date(-0.0))
        #expect(Value.array([.real(.nan)]) == .array([.real(.nan)]))
    }

    @Test func `canonically equivalent keys stay two`() {
        let value = Value.dictionary(["\u{E9}": .integer(1), "e\u{301}": .integer(2)])
        #expect(value != .dictionary(["\u{E9}": .integer(2), "e\u{301}": .integer(1)]))
        #expect(value.size == 2 + 8 + 3 + 8)
    }

    @Test func `large data that differs in its last byte differs`() {
        let bytes = [UInt8](repeating: 7, count: 10_001)
        #expect(Value.data(bytes) == .data(bytes))
        #expect(Value.data(bytes) != .data(bytes.dropLast() + [8]))
        #expect(Value.data(bytes) != .data(bytes + [7]))
    }

    @Test func `equal values have equal bytes and hashes, and different values different bytes`() {
        var generator = Generator(stream: 2)
        // Small values, so that thousands of pairs are equal.
        let values = (0..<600).map { _ in generator.value(depth: 1) } + Vector.all.map(\.value)
        let encodings = values.map { $0.encoded() }
        var equalPairs = 0
        for (left, leftBytes) in zip(values, encodings) {
            for (right, rightBytes) in zip(values, encodings) {
                let isEqual = left == right
                #expect(isEqual == (leftBytes == rightBytes), "seed \(seed)")
                guard isEqual else { continue }
                equalPairs += 1
                #expect(left.hashValue == right.hashValue, "seed \(seed)")
            }
        }
        #expect(equalPairs > values.count + 1000)
    }
}
