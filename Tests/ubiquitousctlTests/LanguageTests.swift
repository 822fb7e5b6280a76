// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import UbiquitousStoreTesting

@testable import ControlCommands
@testable import ServiceMessages

/// Messages in each language.
@Suite struct LanguageTests {
    /// Returns the program's sentences, from its sources. Those of `defaults` are macOS's, in English.
    private static func sentences() throws -> Set<String> {
        let root = repositoryFile("Sources/ubiquitousctl")
        let names = try #require(FileManager.default.enumerator(atPath: root)).compactMap { $0 as? String }
        let sources = names.filter { $0.hasSuffix(".swift") && !$0.contains("Defaults/") && !$0.contains("Language/") }
        return try Set(
            sources.flatMap {
                SentenceScanner(try String(contentsOfFile: "\(root)/\($0)", encoding: .utf8)).translatable()
            })
    }

    private static func placeholders(_ text: String) -> [String] {
        text.matches(of: /\{\d\}/).map { String($0.output) }.sorted()
    }

    @Test(arguments: Catalogue.languages.keys)
    func `every message is translated, and nothing that isn't one`(language: String) throws {
        let (sentences, translated) = (try Self.sentences(), try #require(Catalogue.languages[language]).sentences)
        #expect(sentences.count > 150)
        #expect(sentences.subtracting(translated.keys).sorted() == [], "not translated")
        #expect(Set(translated.keys).subtracting(sentences).sorted() == [], "not in the program any more")
        for (sentence, translation) in translated {
            #expect(Self.placeholders(sentence) == Self.placeholders(translation), "\(translation)")
        }
    }

    @Test func `the service says the messages that are translated for it`() throws {
        let root = repositoryFile("Sources")
        let names = try #require(FileManager.default.enumerator(atPath: root)).compactMap { $0 as? String }
        let elsewhere = ["ubiquitousctl/", "Desktop/", "ServiceMessages/"]
        let sources = names.filter { name in
            name.hasSuffix(".swift") && !elsewhere.contains { name.hasPrefix($0) }
        }
        let texts = try sources.map { try String(contentsOfFile: "\(root)/\($0)", encoding: .utf8) }
        let said = Set(texts.flatMap { SentenceScanner($0).all() })
        for translations in ServiceMessages.languages.values {
            // What is put into another message may be a literal in its interpolation.
            let unsaid = translations.keys.filter { message in
                !["", " ", "{1} "].contains { said.contains($0 + message) }
                    && !texts.contains { $0.contains("\"\(message)\"") }
            }
            #expect(unsaid.sorted() == [])
            for (message, translation) in translations {
                #expect(Self.placeholders(message) == Self.placeholders(translation), "\(translation)")
            }
        }
        for beginning in Failure.adviceByBeginning.keys {
            #expect(said.contains { $0.hasPrefix(beginning) }, "\(beginning)")
        }
    }

    @Test func `sentences stand in the order of their bytes`() throws {
        let file = repositoryFile("Sources/ubiquitousctl/Language/Catalogue+german.swift")
        let keys = SentenceScanner(try String(contentsOfFile: file, encoding: .utf8)).keys(
            after: /Catalogue\(sentences: \[/)
        #expect(Set(keys) == Set(Catalogue.german.sentences.keys) && keys.count == Catalogue.german.sentences.count)
        #expect(keys == keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
    }

    @Test func `the locale decides as it does for gettext`() {
        func isGerman(_ variables: [String: String]) -> Bool {
            MessageLanguage.preferred(in: { variables[$0] }).contains("de")
        }
        #expect(isGerman(["LANG": "de_DE.UTF-8"]) && isGerman(["LC_MESSAGES": "de_AT", "LANG": "C"]))
        #expect(isGerman(["LC_ALL": "", "LANG": "de"]) && isGerman(["LANG": "fr_FR.UTF-8", "LANGUAGE": "fr:de"]))
        #expect(!isGerman([:]) && !isGerman(["LANG": "en_US.UTF-8"]) && !isGerman(["LANG": "den_CA"]))
        #expect(!isGerman(["LC_ALL": "C.UTF-8", "LANG": "de_DE.UTF-8", "LANGUAGE": "de"]))
        #expect(!isGerman(["LANG": "de_DE.UTF-8", "LANGUAGE": "en:de"]))
    }

    @Test func `what is put into a message is not taken for a part of it`() {
        let catalogue = Catalogue(sentences: ["{1} in {2}": "in {2}: {1}"])
        #expect(catalogue.text("{1} in {2}", ["{2}", "{9}"]) == "in {9}: {2}")
        #expect(Catalogue.english.text("{1} in {2} {x} {", ["a", "b"]) == "a in b {x} {")
    }

    @Test func `what is put into a translation is quoted as in its language`() throws {
        let (german, format) = (try #require(Catalogue.languages["de"]), "There is no data {1}.")
        let words = ["\"a\"": "„a“", "\"a\", \"b\"": "\"a\", \"b\"", "\"": "\"", "a\"": "a\""]
        for (word, quoted) in words { #expect(german.text(format, [word]) == "Es gibt keine Daten \(quoted).") }
        #expect(Catalogue.english.text(format, ["\"a\""]) == "There is no data \"a\".")
        #expect(german.text("Not translated: {1}", ["\"a\""]) == "Not translated: \"a\"")
    }

    @Test func `the parser's frequent errors are German for Germans, and as ever for others`() async throws {
        let cases: [(words: [String], german: String, english: String)] = [
            (["list", "--jsn"], "Unbekannte Option „--jsn“. Meinten Sie „--json“?", "Unknown option '--jsn'. Did"),
            (["watch", "--foo"], "Unbekannte Option „--foo“\n", "Unknown option '--foo'\n"),
            (["list", "--frobnicate"], "Unbekannte Option „--frobnicate“", "Unknown option '--frobnicate'"),
            (["list", "--bus"], "Der Wert für „--bus <bus>“ fehlt", "Missing value for '--bus <bus>'"),
            (["list", "--json=1"], "Die Option „--json“ erwartet keinen Wert", "The option '--json' does not take"),
            (["get"], "Das Argument „<key>“ fehlt", "Missing expected argument '<key>'"),
            (["list", "a"], "Unerwartetes Argument „a“", "Unexpected argument 'a'"),
            (["list", "a", "b"], "2 unerwartete Argumente: 'a', 'b'", "2 unexpected arguments: 'a', 'b'"),
            (["export", "--format", "x"], "Der Wert „x“ ist ungültig für „--format", "The value 'x' is invalid for"),
            (["set"], "Fehler: ", "Error: "),
        ]
        try await Terminal.with(started: false) { terminal in
            for (words, german, english) in cases {
                let result = try await terminal.ctl(arguments: words, variables: ["LC_ALL=de_DE.UTF-8"])
                expect(result, 2, "Fehler: ", german, "\nAufruf: ubiquitousctl", "Mehr dazu: „ubiquitousctl")
                expect(try await terminal.ctl(arguments: words), 2, "Error: ", english, "\nUsage: ubiquitousctl")
            }
            let german = try await terminal.ctl("get", variables: ["LC_ALL=de_DE.UTF-8"])
            expect(german, 2, "\nHilfe:  <key>")
        }
    }

    @Test func `messages are German for Germans, and results, words and codes are as ever`() async throws {
        try await Terminal.with { terminal in
            let german = ["LC_ALL=de_DE.UTF-8"]
            let absent = try await terminal.ctl("get", "größe", variables: german)
            expect(absent, 1, "Der Speicher hat keinen Wert für „größe“")
            expect(try await terminal.ctl("gte", variables: german), 2, "Meinten Sie „get“?")
            expect(
                try await terminal.ctl("set", "day", "-date", "2026-02-30", variables: german), 2,
                "passt nicht zu -date: der Monat 2026-02 hat 28 Tage")
            expect(try await terminal.ctl("history", "", variables: german), 1, "Einen solchen Schlüssel kann es nicht")
            expect(try await terminal.ctl("account", "sync", variables: german), 3, "Gerät ist nicht angemeldet")
            // The service says this, in English.
            let nowhere = ["account", "sign-in", "folder:///tmp/nowhere/at/all"]
            let failed = try await terminal.ctl(arguments: nowhere, variables: german)
            #expect(failed.error.contains("/tmp/nowhere/at") && !failed.error.contains(" is "), "\(failed)")
            let english = try await terminal.ctl(arguments: nowhere)
            #expect(english.code == failed.code && english.error != failed.error, "\(english)")
            let status = try await terminal.ctl("status", variables: german)
            #expect(status.code == 0 && status.output.hasPrefix("State         signed-out"))
        }
    }
}
