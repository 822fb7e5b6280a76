// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation
import RecoveryWordList
import SeededRandom
import Testing

@testable import Sealing

@Suite struct RecoveryPhraseTests {
    private static let words = RecoveryPhrase(of: .documented).words

    private func error(_ text: String) -> RecoveryPhraseError? {
        #expect(throws: RecoveryPhraseError.self) { try RecoveryPhrase(reading: text) }
    }

    @Test func `the list of words is the published one`() throws {
        let sum = "2f5eed53a4727b4bf8880d8f3f199efc90e58503646d9ff8eff3a2ed3b24dbda"
        let file = try Data(contentsOf: package.appending(path: "Sources/RecoveryWordList/english.txt"))
        #expect(hexadecimal(SHA256.hash(data: file)) == sum)
        #expect(WordList.words.count == 2048)
        #expect(Set(WordList.words.map { $0.prefix(4) }).count == 2048)
        #expect(Array(file) == WordList.words.flatMap { Array("\($0)\n".utf8) })
    }

    @Test func `every word is found by itself, by its first four letters and in capitals`() {
        for (place, word) in WordList.words.enumerated() {
            #expect(WordList.place(of: word.utf8) == place)
            #expect(WordList.place(of: word.prefix(4).utf8) == place)
            #expect(WordList.place(of: word.uppercased().utf8) == place)
        }
        for word in ["", "a", "ab", "aba", "zzzz", "addd", "aban1", "aban\u{0}", "äban", "ABAN\u{301}"] {
            #expect(WordList.place(of: word.utf8) == nil, "\(word)")
        }
    }

    @Test func `a phrase that is read again gives the key that it was made of`() throws {
        var random = SplitMix(seed: 1)
        for _ in 0..<500 {
            let key = random.key()
            let words = RecoveryPhrase(of: key).words
            #expect(words.count == 12)
            let text = words.map { Bool.random(using: &random) ? $0.uppercased() : String($0.prefix(4)) }
                .joined(separator: [" ", "\n", "\t ", "\u{3000}"].randomElement(using: &random) ?? " ")
            #expect(try RecoveryPhrase(reading: "  \(text)\r\n").key(key.identifier) == key)
        }
    }

    @Test(arguments: [
        (", ", "", ""), (" ", "\"", "\""), ("\n", "1. ", ""), ("; ", "12) ", ","), (" - ", "“", "”"), (",", "", ""),
        (" ", "\u{FEFF}", "."),
    ])
    func `numbers and punctuation between the words are ignored`(between: String, before: String, after: String)
        throws
    {
        let words = Self.words.map { before + $0 + after }.joined(separator: between)
        #expect(try RecoveryPhrase(reading: words).words == Self.words)
        #expect(error("\(words), 13. zoo") == .wordCount(13))
        #expect(error("1. \(Self.words[0])2 " + words) == .wordCount(13))
        #expect(error(words.replacing(Self.words[4], with: "5a5b")) == .unknownWord(at: 5))
    }

    @Test func `eleven words, thirteen and none are refused with their number`() {
        #expect(error(Self.words.dropLast().joined(separator: " ")) == .wordCount(11))
        #expect(error((Self.words + ["zoo"]).joined(separator: " ")) == .wordCount(13))
        #expect(error(" \n") == .wordCount(0))
        #expect(error(Self.words.joined()) == .wordCount(1))
    }

    @Test(arguments: 1...12)
    func `a misspelt word is refused with its place and without the word`(place: Int) throws {
        var words = Self.words
        words[place - 1] = "qxlimt"
        let error = error(words.joined(separator: " "))
        #expect(error == .unknownWord(at: place))
        let said = "\(try #require(error)) \(String(reflecting: error))"
        #expect(said.contains("\(place)") && !said.contains("qxlimt"))
        #expect(!Self.words.contains { said.contains(" \($0) ") })
    }

    @Test func `a phrase with one word exchanged for any other is nearly always refused`() {
        var passed = 0
        for place in 0..<12 {
            for word in WordList.words where word != Self.words[place] {
                var words = Self.words
                words[place] = word
                if (try? RecoveryPhrase(reading: words.joined(separator: " "))) != nil { passed += 1 }
            }
        }
        // The checksum has 4 bits: one in sixteen passes.
        #expect((1200...1900).contains(passed))
    }

    @Test func `the words of another account open none of this one's blobs`() throws {
        let other = try RecoveryPhrase(reading: RecoveryPhrase(of: .former).words.joined(separator: " "))
        let key = other.key(AccountKey.documented.identifier)
        let (bytes, _) = SealedBlob.seal(segment: [1, 2, 3], AccountKey.documented.blobs)
        #expect(throws: SealingFlaw.self) { try SealedBlob(segment: bytes, key.blobs) }
        #expect(!SealedMarker(of: .documented, time: 1, links: []).isGenuine(under: key.blobs))
    }

    @Test func `a text of a million words is refused before it is looked at`() {
        #expect(error(String(repeating: "zoo ", count: 1_000_000)) == .tooLong)
    }

    @Test func `what is printed of keys and phrases has no secret in it`() throws {
        let key = AccountKey.sample(secret: Array("sixteen secrets!".utf8), 7)
        let phrase = RecoveryPhrase(of: key)
        var said = ["\(key)", "\(phrase)", "\(key.blobs)", "\(Wrapping.sealed(key.blobs))", "\(MarkerChoice.using)"]
        for thing: Any in [key, phrase, key.blobs, Unlocking.account(key), Wrapping.sealed(key.blobs)] {
            var text = ""
            dump(thing, to: &text)
            said += [text, String(describing: thing), String(reflecting: thing)]
        }
        var secrets = phrase.words + [hexadecimal(key.secretData), "sixteen", "\(key.secretData)", "115, 105"]
        let derived = key.blobs
        for key in [derived.salt, derived.blob, derived.bucket, derived.marker, derived.successor] {
            let bytes = key.withUnsafeBytes { Array($0) }
            secrets += [hexadecimal(bytes), "\(bytes[0]), \(bytes[1]), \(bytes[2])"]
        }
        for text in said {
            let words = Set(text.split { !$0.isLetter }.map(String.init))
            #expect(!secrets.contains { $0.allSatisfy(\.isLetter) ? words.contains($0) : text.contains($0) }, "\(text)")
        }
    }
}
