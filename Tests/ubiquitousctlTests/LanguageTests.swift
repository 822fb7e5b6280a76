// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import UbiquitousStoreTesting

@testable import ControlCommands

/// Messages in the languages that there are.
@Suite struct LanguageTests {
    /// The sentences of the program, from its sources. `defaults` speaks macOS's words, in English.
    private static func sentences() throws -> Set<String> {
        let root = repositoryFile("Sources/ubiquitousctl")
        let names = try #require(FileManager.default.enumerator(atPath: root)).compactMap { $0 as? String }
        let sources = names.filter { $0.hasSuffix(".swift") && !$0.contains("Defaults/") && !$0.contains("Language/") }
        return try Set(
            sources.flatMap {
                SentenceScanner(try String(contentsOfFile: "\(root)/\($0)", encoding: .utf8)).sentences()
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

    @Test func `the locale decides as it does for gettext`() {
        func isGerman(_ variables: [String: String]) -> Bool { !Catalogue.of { variables[$0] }.sentences.isEmpty }
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

    @Test func `messages are German for Germans, and results, words and codes are as ever`() async throws {
        try await Terminal.with { terminal in
            let german = ["LC_ALL=de_DE.UTF-8"]
            let absent = try await terminal.ctl("get", "größe", variables: german)
            expect(absent, 1, "Der Speicher hat keinen Wert für \"größe\"")
            expect(try await terminal.ctl("gte", variables: german), 2, "Meinten Sie „get“?")
            expect(
                try await terminal.ctl("set", "day", "-date", "2026-02-30", variables: german), 2,
                "passt nicht zu -date: der Monat 2026-02 hat 28 Tage")
            let status = try await terminal.ctl("status", variables: german)
            #expect(status.code == 0 && status.output.hasPrefix("State         signed-out"))
        }
    }
}

/// Finds the literals that the program's sources use as sentences.
private struct SentenceScanner {
    private let source: [Character]
    private let text: String

    init(_ text: String) { (self.text, source) = (text, Array(text)) }

    func sentences() -> [String] {
        // A full stop is no part of a word here.
        let starts = /\b(?:Failure|remark|localized|showing|failure|self\.init)\(|\.make\(|: Sentence\] = \[/
            .wordBoundaryKind(.simple)
        var found: [String] = []
        for match in text.matches(of: starts) {
            found += arguments(from: text.distance(from: text.startIndex, to: match.range.upperBound))
        }
        for match in text.matches(of: /: Sentence = (?=")/) {
            found.append(literal(at: text.distance(from: text.startIndex, to: match.range.upperBound)).format)
        }
        return found
    }

    /// The sentences up to the bracket that closes the one before `index`.
    private func arguments(from start: Int) -> [String] {
        var (index, depth, found) = (start, 1, [String]())
        while depth > 0 && index < source.count {
            if source[index] == "\"" {
                let (format, end) = literal(at: index)
                let isVerbatim = String(source[..<index].suffix(60)).trimmingCharacters(in: .whitespacesAndNewlines)
                    .hasSuffix("verbatim:")
                let isKey = end < source.count && source[end] == ":"
                let hasWords = format.replacing(/\{\d\}/, with: "").contains(/[A-Za-z]{2}/)
                if !isVerbatim && !isKey && hasWords { found.append(format) }
                index = end
                continue
            }
            if "([{".contains(source[index]) { depth += 1 }
            if ")]}".contains(source[index]) { depth -= 1 }
            index += 1
        }
        return found
    }

    private func starts(with word: String, _ index: Int) -> Bool { source[index...].starts(with: word) }

    /// The literal at a quotation mark, with numbers for what is interpolated, and where it ends.
    private func literal(at start: Int) -> (format: String, end: Int) {
        let quote = starts(with: "\"\"\"", start) ? "\"\"\"" : "\""
        var (index, format, count) = (start + quote.count, "", 0)
        while index < source.count && !starts(with: quote, index) {
            if starts(with: "\\(", index) {
                count += 1
                format += "{\(count)}"
                index = endOfInterpolation(index + 2)
            } else if source[index] == "\\" {
                // Of the escapes sentences have these two.
                format += source[index + 1] == "\n" ? "\\\n" : String(source[index + 1])
                index += 2
            } else {
                format.append(source[index])
                index += 1
            }
        }
        return (quote.count == 1 ? format : Self.unindented(format), index + quote.count)
    }

    private func endOfInterpolation(_ start: Int) -> Int {
        var (index, depth) = (start, 1)
        while depth > 0 && index < source.count {
            if source[index] == "\"" {
                index = literal(at: index).end
                continue
            }
            if source[index] == "(" { depth += 1 }
            if source[index] == ")" { depth -= 1 }
            index += 1
        }
        return index
    }

    private static func unindented(_ text: String) -> String {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropFirst()
        let indentation = lines.last?.count ?? 0
        return lines.dropLast().map { $0.dropFirst(indentation) }.joined(separator: "\n").replacing("\\\n", with: "")
    }
}
