// SPDX-License-Identifier: Apache-2.0

import Glibc
import PropertyList
import Testing
import UbiquitousStoreTesting

@testable import ControlCommands

/// The small program that the package installs as ubiquitousctl.
@Suite struct QuickGetTests {
    /// Compiles it with another path of the full program.
    private func quickGet(_ terminal: Terminal, leavingTo commands: String) async throws -> String {
        let program = terminal.file("quick-get")
        let source = repositoryFile("packaging/quick-get/ubiquitousctl.c")
        let result = try await run([
            "clang", "-O2", "-Wall", "-Wextra", "-Werror", "-DCOMMANDS=\"\(commands)\"", source, "-o", program,
        ])
        try #require(result.exit == .code(0), "\(result.error)")
        return program
    }

    @Test func `it answers plain values by itself`() async throws {
        try await Terminal.with { terminal in
            let program = try await quickGet(terminal, leavingTo: "/bin/false")
            let store = try await terminal.store()
            let values: [(Value, String)] = [
                (.integer(.min), "-9223372036854775808"), (.boolean(true), "true"), (.boolean(false), "false"),
                (.string("dark blue"), "dark blue"), (.string("Grüße"), "Grüße"), (.string("x\\\"{"), "x\\\"{"),
            ]
            for (value, word) in values {
                try await store.set("key", value)
                for line in [["get", "key"], ["get", "-s", notes, "key"], ["get", "--store", notes, "key"]] {
                    let result = try await terminal.ctl(arguments: line, program: program)
                    #expect(result.code == 0 && result.output == word && result.error == "", "\(result)")
                }
            }
        }
    }

    @Test func `with any value it prints what the other program does`() async throws {
        try await Terminal.with { terminal in
            let program = try await quickGet(terminal, leavingTo: Terminal.program)
            let store = try await terminal.store()
            var random = SystemRandomNumberGenerator()
            let text = " \"'\\{}[]$-+.0123eEtrufalsnNI:,\n\t\u{85}\u{A0}\u{FEFF}é\u{7FF}\u{1F600}"
            let scalars = Array(text.unicodeScalars)
            let strings = (0..<40).map { _ in
                let scalars = (0..<Int.random(in: 0..<6, using: &random)).compactMap { _ in
                    scalars.randomElement(using: &random)
                }
                return Value.string(Text(String(String.UnicodeScalarView(scalars))))
            }
            let words = ["nan", "NaN", "Infinity", "inf", "t", "true ", "nul", "nullx", "e1"]
            for value in ValueTests.values + strings + words.map({ .string(Text($0)) }) {
                try await store.set("key", value)
                let result = try await terminal.ctl(arguments: ["get", "key"], program: program)
                #expect(result.code == 0 && result.output == ValueText.word(value), "\(value): \(result)")
            }
        }
    }

    @Test func `it leaves every other command line to the other program`() async throws {
        try await Terminal.with { terminal in
            try await terminal.store().set("key", .integer(1))
            let program = try await quickGet(terminal, leavingTo: Terminal.program)
            for line in [
                [], ["get"], ["get", ""], ["get", "-s"], ["get", "-s", "a"], ["get", "-s", "", "key"],
                ["get", "nothing"], ["get", "-s", "--json", "key"], ["get", "--json", "key"],
                ["get", "--store=\(notes)", "key"], ["get", "a", "b"], ["get", "--", "key"], ["get", "-x"],
                ["gte", "key"], ["--store", "a", "get", "key"], ["get", "-s", "org.example.Nobody", "key"],
                ["get", "-s", "not an identifier", "key"], ["list"], ["--version"],
            ] {
                let result = try await terminal.ctl(arguments: line, program: program)
                #expect(result == (try await terminal.ctl(arguments: line)), "\(line)")
            }
        }
    }

    @Test func `a value that is read slowly is printed once`() async throws {
        try await Terminal.with { terminal in
            let program = try await quickGet(terminal, leavingTo: Terminal.program)
            try await terminal.store().set("key", .string(Text("A" + String(repeating: "x", count: 200_000))))
            #expect(try await terminal.line("\(program) get key | (sleep 2; wc -c)").output == "200002")
        }
    }

    @Test func `a service that lets it wait is left to the program that says so`() async throws {
        try await Terminal.with { terminal in
            let program = try await quickGet(terminal, leavingTo: "/bin/echo")
            terminal.device.signal(SIGSTOP)
            let result = try await terminal.ctl(arguments: ["get", "key"], program: program)
            #expect(result.output == "get key" && result.code == 0)
        }
    }
}
