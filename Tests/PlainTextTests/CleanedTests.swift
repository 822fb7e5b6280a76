// SPDX-License-Identifier: Apache-2.0

import PlainText
import SeededRandom
import Testing

struct CleanedTests {
    @Test func `a text that can be shown stays as it is`() {
        for text in ["", "A sentence, é.", "e\u{301}", "👩‍👩‍👧", "12345"] {
            #expect(text.cleaned(atMost: text.utf8.count) == text)
        }
    }

    @Test(
        arguments: [
            0, 0x0A, 0x1B, 0x7F, 0x9F, 0x200E, 0x2028, 0x202E, 0x2066, 0xFDD0, 0xFDEF, 0xFFFE, 0x10_FFFF,
        ] as [UInt32])
    func `what can't be sent or shown is replaced`(_ number: UInt32) throws {
        let scalar = try #require(Unicode.Scalar(number))
        #expect("a\(scalar)b".cleaned(atMost: 100) == "a\u{FFFD}b")
    }

    @Test func `a reason that is a sentence leaves one full stop to the sentence around it`() {
        #expect("It is full.".clause == "It is full")
        for reason in ["it is full", "wait ...", ""] { #expect(reason.clause == reason) }
    }

    @Test func `a text that is too long is cut between characters and ends with an ellipsis`() {
        #expect("123456".cleaned(atMost: 5) == "12\u{2026}")
        #expect("1ääää".cleaned(atMost: 8) == "1ää\u{2026}")
        #expect("1ääää".cleaned(atMost: 8, ending: "") == "1äää")
        // One character of a hundred bytes.
        #expect(("e" + String(repeating: "\u{301}", count: 50)).cleaned(atMost: 20) == "\u{2026}")
    }

    @Test func `what is cleaned is too long only if the replacements are`() {
        #expect("a\nb".cleaned(atMost: 5) == "a\u{FFFD}b")
        #expect("a\nb".cleaned(atMost: 4) == "a\u{2026}")
    }

    @Test func `whatever the text and the limit, the result is bounded and stays as it is`() {
        var random = SplitMix(seed: 17)
        for _ in 0..<5000 {
            let scalars = (0..<random.next() % 40).compactMap { _ in
                Unicode.Scalar(UInt32(random.next() % (random.next() % 2 == 0 ? 0x2100 : 0x11_0000)))
            }
            let text = String(String.UnicodeScalarView(scalars))
            let limit = Int(random.next() % 60)
            for ending in ["", "\u{2026}"] {
                let cleaned = text.cleaned(atMost: limit, ending: ending)
                #expect(cleaned.utf8.count <= max(limit, ending.utf8.count))
                #expect(cleaned.cleaned(atMost: max(limit, 3)) == cleaned)
            }
        }
    }
}
