// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Testing

@Suite struct KeyTests {
    @Test(arguments: ["a", "é", "\u{1}", "a b\nc", String(repeating: "k", count: 128)])
    func `a key within the rules is one`(string: String) throws {
        #expect(try Key(string).string == string)
        #expect(Key(unchecked: string).violation == nil)
    }

    @Test func `an empty key is refused`() {
        #expect(throws: KeyError.empty) { try Key("") }
    }

    @Test func `129 code units are refused, and so is any larger number`() {
        for length in [129, 130, 384, 385, 1_000_000] {
            let string = String(repeating: "k", count: length)
            #expect(throws: KeyError.tooLong(utf16Length: length)) { try Key(string) }
        }
    }

    @Test func `a key is measured in UTF-16, not in bytes or characters`() throws {
        #expect(try Key(String(repeating: "\u{1F600}", count: 64)).text.utf8Count == 256)
        #expect(throws: KeyError.tooLong(utf16Length: 130)) { try Key(String(repeating: "\u{1F600}", count: 65)) }
        #expect(try Key(String(repeating: "\u{20AC}", count: 128)).text.utf8Count == 384)
        #expect(throws: KeyError.tooLong(utf16Length: 129)) { try Key(String(repeating: "\u{20AC}", count: 129)) }
        // One character.
        #expect(throws: KeyError.tooLong(utf16Length: 129)) {
            try Key("e" + String(repeating: "\u{301}", count: 128))
        }
    }

    @Test(arguments: ["\0", "a\0", "\0a", "a long enough key\0 with more"])
    func `a key with U+0000 is refused`(string: String) {
        #expect(throws: KeyError.containsNUL) { try Key(string) }
        #expect(Key(unchecked: string).violation == .containsNUL)
        #expect(Key(unchecked: string).string == string)
    }

    @Test(arguments: [0xFFFF, 0xFDD0, 0x10_FFFE] as [UInt32])
    func `a key with a noncharacter is refused`(number: UInt32) throws {
        let string = "a" + String(try #require(Unicode.Scalar(number)))
        #expect(throws: KeyError.containsNoncharacter) { try Key(string) }
        #expect(Key(unchecked: string).violation == .containsNoncharacter)
    }

    @Test func `a key of a domain may have 512 code units, and not one more`() throws {
        let longest = String(repeating: "k", count: 512)
        #expect(try Key(longest, limit: Limits.domain.keyLength).string == longest)
        let error = KeyError.tooLong(utf16Length: 513, limit: 512)
        #expect(throws: error) { try Key(longest + "k", limit: Limits.domain.keyLength) }
        #expect(error.description == "The key has 513 UTF-16 code units; shorten it to at most 512.")
    }

    @Test func `keys are compared and sorted by bytes`() throws {
        #expect(try Key("\u{E9}") != Key("e\u{301}"))
        #expect(
            try [Key("\u{1F600}"), Key("\u{FFFD}"), Key("b"), Key("ab"), Key("a")].sorted().map(\.string)
                == ["a", "ab", "b", "\u{FFFD}", "\u{1F600}"]
        )
    }

    @Test func `every error says what to do, and not what the key was`() {
        for error in [KeyError.empty, .tooLong(utf16Length: 200), .containsNUL, .containsNoncharacter] {
            #expect(error.description.hasPrefix("The key ") && error.description.hasSuffix("."))
        }
    }
}
