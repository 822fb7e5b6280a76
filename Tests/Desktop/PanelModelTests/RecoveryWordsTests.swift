// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import PanelModel
@testable import UbiquitousStore

struct RecoveryWordsTests {
    private static let phrase = "abandon amount liar amount expire adjust cage candy arch gather drum buyer"
    private let words = RecoveryWords(phrase)

    @Test(arguments: [
        ("candy", true), (" CANDY ", true), ("cand", true), ("candle", true), ("can", false), ("cage", false),
        ("", false), ("sugar candy", false), ("Süß", false),
    ])
    func `a word is typed from the note as another device would read it`(text: String, isRight: Bool) {
        #expect(words.has(text, at: 7) == isRight)
    }

    @Test func `three different words are to be typed, in their order`() {
        for _ in 0..<100 {
            let places = words.placesToTest()
            #expect(Set(places).count == 3)
            #expect(places == places.sorted())
            #expect(places.allSatisfy(words.words.indices.contains))
        }
        #expect(!words.has("abandon", at: 12))
    }

    @Test func `words are in no description`() {
        var dumped = ""
        dump(words, to: &dumped)
        for text in ["\(words)", String(reflecting: words), dumped] { #expect(!text.contains("abandon")) }
    }

    @Test func `words that are typed rightly have no flaw, in any case and with any white space`() {
        let typed = "\n" + Self.phrase.uppercased().replacing(" ", with: " \t ")
        for end in typed.indices { #expect(TypedWords.flawSoFar(String(typed[..<end])) == nil) }
        #expect(TypedWords.flaw(typed) == nil)
    }

    @Test func `numbers and punctuation between them are no flaw`() {
        let typed = "1. " + Self.phrase.replacing(" ", with: ",\n2. ")
        for end in typed.indices { #expect(TypedWords.flawSoFar(String(typed[..<end])) == nil) }
        #expect(TypedWords.flaw(typed) == nil)
    }

    @Test(arguments: [
        ("", "There are 0 words, and the account has 12."), ("abandon", "There is 1 word, and the account has 12."),
        (
            phrase.split(separator: " ").dropLast().joined(separator: " "),
            "There are 11 words, and the account has 12."
        ),
        (phrase + " abandon", "There are more than 12 words."),
        (phrase.replacing("liar", with: "lair"), "Word 3 is not in the word list. Check its spelling."),
        (String(repeating: "a", count: 5000), "Word 1 is not in the word list. Check its spelling."),
    ])
    func `what is wrong with them is said before they are sent, and never with a word`(text: String, flaw: String) {
        #expect(TypedWords.flaw(text) == flaw)
    }

    @Test func `a word that is being typed is not wrong yet`() {
        #expect(TypedWords.flawSoFar("abandon am") == nil)
        #expect(TypedWords.flawSoFar("abandon lair") == nil)
        #expect(TypedWords.flawSoFar("abandon lair ") != nil)
    }

    @Test(arguments: [UbiquitousStoreError.Code.keyWrong, .invalidArguments, .backendUnavailable])
    func `what the account says of them is a sentence`(code: UbiquitousStoreError.Code) {
        let sentence = TypedWords.sentence(UbiquitousStoreError(code, "In English."))
        #expect(sentence.hasSuffix("."))
        #expect(!sentence.contains("In English"))
    }
}
