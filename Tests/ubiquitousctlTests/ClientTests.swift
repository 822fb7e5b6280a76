// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import Testing
import UbiquitousStoreTesting

/// The programs of docs/clients.md, unchanged, with the manifest of docs/app-manifest.md.
@Suite struct ClientTests {
    /// A language, how its program is run, and how to find out whether it can run here.
    struct Language: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// The language's name after the three backquotes.
        let tag: String
        /// A shell command; `$0` is the program, `$1` the bus's address.
        let command: String
        /// A shell command that succeeds if the language is installed.
        let probe: String

        static let all = [
            Language(
                testDescription: "C", tag: "c",
                command: """
                    cc -x c -Wall -Werror -Wno-unused-parameter -o "$0.bin" "$0" $(pkg-config --cflags --libs libsystemd) \
                    && exec "$0.bin" "$1"
                    """,
                probe: "cc --version && pkg-config --exists libsystemd"),
            Language(
                testDescription: "Python", tag: "python", command: "exec /usr/bin/python3 \"$0\" \"$1\"",
                probe: "/usr/bin/python3 -c 'from gi.repository import Gio'"),
            Language(
                testDescription: "JavaScript", tag: "js", command: "exec gjs \"$0\" \"$1\"", probe: "gjs --version"),
        ]
    }

    @Test(arguments: Language.all)
    func `a program in another language reads, writes, is told, and follows a restart`(language: Language) async throws
    {
        guard try await run(["sh", "-c", language.probe]).exit == .code(0) else {
            print("NOT TESTED: the \(language.testDescription) program of docs/clients.md, for it isn't installed here")
            return
        }
        try await Terminal.with(started: false) { terminal in
            // The manifest from the page about manifests replaces the usual one.
            try terminal.device.install(try pageBlock("docs/app-manifest.md", "xml"), as: "app0.plist")
            try await terminal.device.start()
            let store = try await terminal.store()
            try await store.set("theme", .string("dark"))
            try terminal.write("program", try pageBlock("docs/clients.md", language.tag))
            let program = try ChildProcess(
                ["sh", "-c", language.command, terminal.file("program"), terminal.bus.address],
                output: (terminal.file("output"), terminal.file("error")))
            try await Self.says("theme = dark\nready\n", terminal, program)
            #expect(try await store.value("greeting") == .string("hello"))

            try await store.set("theme", .string("light"))
            try await Self.says("theme = light\n", terminal, program)
            try await store.remove("theme")
            try await Self.says("theme removed\n", terminal, program)

            try await terminal.device.restart()
            try await terminal.store().set("theme", .string("blue"))
            try await Self.says("theme = blue\n", terminal, program)
            #expect(program.exit == nil, "it ended: \(terminal.text("error"))")
        }
    }

    @Test(arguments: Language.all)
    func `a program in another language reads a setting through the search order, and follows it`(
        language: Language
    ) async throws {
        guard try await run(["sh", "-c", language.probe]).exit == .code(0) else {
            print("NOT TESTED: settings in \(language.testDescription), for it isn't installed here")
            return
        }
        try await Terminal.with { terminal in
            let client = try await BusClient(terminal.bus)
            let editor = "org.example.Editor"
            try await client.domain("NSGlobalDomain").set("fontSize", .integer(9))
            try terminal.write("program", try pageBlock("docs/clients.md", language.tag + " settings"))
            let program = try ChildProcess(
                ["sh", "-c", language.command, terminal.file("program"), terminal.bus.address],
                output: (terminal.file("output"), terminal.file("error")))
            try await Self.says("fontSize = 9\n", terminal, program)
            try await client.domain(editor).set("fontSize", .integer(14))
            try await Self.says("fontSize = 14\n", terminal, program)
            try await client.domain(editor, isHost: true).set("fontSize", .integer(15))
            try await Self.says("fontSize = 15\n", terminal, program)

            try await terminal.device.restart()
            let path = terminal.device.managedDirectory + "/10-size.plist"
            try """
            <plist version="1.0"><dict><key>Locked</key><dict><key>\(editor)</key><array><string>font*</string></array>
            </dict><key>Recommended</key><dict><key>\(editor)</key><dict><key>fontSize</key>
            <integer>20</integer></dict></dict></dict></plist>
            """.write(toFile: path, atomically: true, encoding: .utf8)
            try await Self.says("fontSize = 20\n", terminal, program)
            #expect(program.exit == nil, "it ended: \(terminal.text("error"))")
        }
    }

    private static func says(_ text: String, _ terminal: Terminal, _ program: ChildProcess) async throws {
        try await eventually("the program says \(text)") {
            if program.exit != nil { throw StartFailed(description: terminal.text("error")) }
            return terminal.text("output").contains(text)
        }
    }

    private struct StartFailed: Error, CustomStringConvertible {
        let description: String
    }

}

/// Returns the only block of a page in a language.
func pageBlock(_ path: String, _ tag: String) throws -> String {
    let page = try String(contentsOfFile: repositoryFile(path), encoding: .utf8)
    let blocks = page.components(separatedBy: "```\(tag)\n")
    try #require(blocks.count == 2, "\(path) has one block in \(tag)")
    return blocks[1].components(separatedBy: "```")[0]
}

/// Returns the path of a file of the repository.
func repositoryFile(_ path: String, here: String = #filePath) -> String {
    URL(filePath: here).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: path).path
}
