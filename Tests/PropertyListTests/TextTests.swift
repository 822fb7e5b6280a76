// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import PropertyList

@Suite struct TextTests {
    @Test func `canonically equivalent texts are different, and two keys of a dictionary`() {
        let composed: Text = "\u{E9}"
        let decomposed: Text = "e\u{301}"
        #expect(composed.string == decomposed.string)
        #expect(composed != decomposed)
        #expect(decomposed < composed)
        #expect([composed: 1, decomposed: 2].count == 2)
        #expect(Set([composed, decomposed, "\u{E9}"]).count == 2)
    }

    @Test func `texts sort as their bytes do`() {
        var generator = Generator(stream: 1)
        let texts = (0..<300).map { _ in Text(generator.string()) }
        for left in texts {
            for right in texts {
                let (a, b) = (Array(left.string.utf8), Array(right.string.utf8))
                #expect((left == right) == (a == b), "seed \(seed)")
                #expect((left < right) == a.lexicographicallyPrecedes(b), "seed \(seed)")
                if left == right { #expect(left.hashValue == right.hashValue, "seed \(seed)") }
            }
        }
    }

    @Test func `a difference at any place of any length decides`() {
        for count in 0..<40 {
            let bytes = [UInt8](repeating: 0x61, count: count)
            for index in 0..<count {
                var larger = bytes
                larger[index] = 0xE1
                expectOrder(bytes, larger)
                expectOrder(Array(larger[..<index]), bytes)
            }
            #expect(bytes.hasSameBytes(as: bytes))
        }
    }

    @Test func `a zero at any place of any length is found, and nothing else`() {
        for count in 0..<40 {
            for filling: UInt8 in [0x01, 0x7F, 0x80, 0x81, 0xFF] {
                let bytes = [UInt8](repeating: filling, count: count)
                #expect(!bytes.withUnsafeBytes { $0.containsZero })
                for index in 0..<count {
                    var zeroed = bytes
                    zeroed[index] = 0
                    #expect(zeroed.withUnsafeBytes { $0.containsZero })
                }
            }
        }
    }

    @Test func `a substring of a large string stays itself`() {
        let large = String(repeating: "żółw ", count: 100)
        let text = Text(String(large.dropFirst(7).prefix(20)))
        #expect(text == Text(String(Array(large)[7..<27])))
        #expect(text.utf8Count == Array(text.string.utf8).count)
    }

    private func expectOrder(_ small: [UInt8], _ large: [UInt8]) {
        small.withUnsafeBytes { small in
            large.withUnsafeBytes { large in
                #expect(small.precedes(large) && !large.precedes(small))
                #expect(!small.hasSameBytes(as: large) && !large.hasSameBytes(as: small))
            }
        }
    }
}
