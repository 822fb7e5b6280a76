// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Testing
import UbiquitousStoreTesting

@testable import ControlCommands

@Suite struct ValueTests {
    /// Values of every type, and strings that could be mistaken for something else.
    static let values: [Value] = [
        .boolean(true), .integer(12), .integer(-5), .integer(.min), .real(1), .real(-0.0), .real(.nan),
        .real(-.infinity), .real(.leastNonzeroMagnitude), .real(Double(bitPattern: 0xFFF8_0000_0000_0001)),
        .date(812_345_678),
        .date(812_345_678.123456), .date(-0.0), .date(1e300), .data([]), .data([0, 255, 10]), .string("dark"),
        .string(""), .string("12"), .string("true"), .string("null"), .string("-x"), .string("--help"), .string("-"),
        .string("a b"), .string(" a"), .string("a\n"), .string("\u{1B}[31m"), .string("\"quoted\""), .string("{x"),
        .string("e\u{301}"), .string("\u{FEFF}x"), .string("007"), .string("99999999999999999999"), .string("$(id)"),
        .array([]), .array([.array([.string("1"), .integer(1), .real(1), .boolean(true)])]), .dictionary([:]),
        .dictionary(["a": .dictionary(["": .data([1]), "é": .date(0.25)])]), .dictionary(["$date": .string("x")]),
    ]

    @Test(arguments: values)
    func `a value's word is read back as the same value and type`(value: Value) throws {
        #expect(try ValueText.value(ValueText.word(value)) == value)
    }

    @Test(arguments: ["webdavs://ada@dav.example:8443/a_b,c", "x`id`;$(id)&", "it's", ""])
    func `a shell takes a quoted word as it is`(word: String) async throws {
        let quoted = Output.shellWord(word)
        #expect(try await run(["sh", "-c", "printf %s \(quoted)"]).output == word)
        #expect((quoted == word) == word.hasPrefix("webdavs:"))
    }

    @Test func `what a terminal would obey and not show is written as an escape, in keys and values`() throws {
        for text in ["a\u{202E}b", "\u{2066}", "\u{2028}"] {
            let word = ValueText.word(.string(Text(text)))
            #expect(word.unicodeScalars.allSatisfy { $0.value < 0x7F } && word == ValueText.word(key: Text(text)))
            #expect(try ValueText.value(word) == .string(Text(text)))
        }
        // Marks belong to ordinary text in Hebrew and Arabic.
        #expect(ValueText.word(.string("\u{5D0}\u{200F}")) == "\u{5D0}\u{200F}")
    }

    @Test func `what get prints, set reads back as the same value and type`() async throws {
        try await Terminal.with { terminal in
            let store = try await terminal.store()
            // One value of each type; another test reads the others back without a process for each.
            let values = Dictionary(Self.values.map { ($0.typeName, $0) }) { $1 }
            for value in values.values {
                try await store.set("key", value)
                let printed = try await terminal.ctl("get", "key")
                #expect(printed.code == 0)
                try await store.remove("key")
                expect(try await terminal.ctl("set", "key", printed.output), 0)
                #expect(try await store.value("key") == value, "\(printed.output)")
            }
        }
    }

    @Test func `a word means the value that it was made of, whatever the string`() throws {
        var generator = SystemRandomNumberGenerator()
        let scalars = Array(" \"'\\{}[]$-+.0123eEtrufalsn:,\n\t\u{0}\u{85}\u{FEFF}\u{301}é\u{1F600}".unicodeScalars)
        for _ in 0..<5_000 {
            var string = String.UnicodeScalarView()
            for _ in 0..<Int.random(in: 0..<6, using: &generator) {
                string.append(scalars[Int.random(in: 0..<scalars.count, using: &generator)])
            }
            let value = Value.string(Text(String(string)))
            try #require(try ValueText.value(ValueText.word(value)) == value, "\(ValueText.word(value))")
        }
    }

    @Test(
        arguments: [
            (["-string", "12"], .string("12")), (["-string", "--help"], .string("--help")),
            (["--", "-5"], .integer(-5)), (["--", "--help"], .string("--help")),
            (["-int", "-5"], .integer(-5)),
            (["-float", "2"], .real(2)), (["-float", "-0.0"], .real(-0.0)), (["-float", "nan"], .real(.nan)),
            (["-bool", "YES"], .boolean(true)), (["-bool", "0"], .boolean(false)),
            (["-data", "00fF"], .data([0, 255])),
            (["-data", ""], .data([])), (["-date", "2001-01-01T01:00:00+01:00"], .date(0)),
            (["-array"], .array([])),
            (
                ["-array", "1", "-string", "1", "-dict", "a", "x"],
                .array([.integer(1), .string("1"), .dictionary(["a": .string("x")])])
            ),
            (["-dict", "-int", "-int", "1"], .dictionary(["-int": .integer(1)])), (["dark"], .string("dark")),
            (["12"], .integer(12)), (["12.0"], .real(12)), (["1e3"], .real(1000)),
            (["{\"a\": [true]}"], .dictionary(["a": .array([.boolean(true)])])),
            (["-dict"], .dictionary([:])),
        ] as [([String], Value)])
    func `typed words are values`(words: [String], value: Value) throws {
        let (read, rest) = try TypedWords.value(words[...])
        #expect(read == value)
        #expect(rest.isEmpty)
    }

    @Test(
        arguments: [
            ([], "A value is missing"), (["-int"], "A value is missing after -int"), (["-int", "1.5"], "whole number"),
            (["-int", "9223372036854775808"], "whole number"), (["-float", "1e999"], "it takes a number"),
            (["-bool", "maybe"], "true, yes, 1"), (["-date", "tomorrow"], "2026-11-21T09:30:00Z"),
            (["-array", "a", "--check"], "--check goes before the value"),
            (["-date", "2026-02-30"], "2026-02 has 28 days"), (["-data", "abc"], "pairs of hexadecimal digits"),
            (["-dict", "a"], "has no value"), (["-dict", "a", "1", "a", "2"], "comes twice"),
            (["{\"a\":}"], "column 6"),
            (["null"], "No value is null"), (["99999999999999999999"], "64 bits"),
            (["1e400"], "The value is not JSON"), (["-0.5E+999"], "The value is not JSON"),
        ] as [([String], String)])
    func `a wrong type is refused with what it takes`(words: [String], sentence: String) {
        #expect { try TypedWords.value(words[...]) } throws: { "\($0)".contains(sentence) }
    }

    @Test func `types, raw strings and JSON are printed when asked for`() async throws {
        try await Terminal.with { terminal in
            try await terminal.store().set("key", .string("12"))
            #expect(try await terminal.ctl("get", "key", "--type").output == "string")
            #expect(try await terminal.ctl("get", "key", "--raw").output == "12")
            #expect(try await terminal.ctl("get", "key", "--json").output == "\"12\"")
            expect(try await terminal.ctl("get", "key", "--json", "--raw"), 2, "Only one of")
            try await terminal.store().set("key", .integer(12))
            expect(try await terminal.ctl("get", "key", "--raw"), 2, "\"key\" is of type int")
        }
    }

    @Test func `a value is read from standard input`() async throws {
        try await Terminal.with { terminal in
            expect(try await terminal.ctl("set", "key", "-", input: "[1, \"x\"]\n"), 0)
            #expect(try await terminal.store().value("key") == .array([.integer(1), .string("x")]))
            let large = String(repeating: "x", count: 400_000)
            expect(try await terminal.ctl("set", "key", "-", input: large), 0)
            #expect(try await terminal.store().value("key") == .string(Text(large)))
        }
    }
}
