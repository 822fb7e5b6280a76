// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import Testing
import UbiquitousStoreTesting

@Suite struct FileTests {
    private static func fill(_ store: StoreClient) async throws -> [Text: Value] {
        let values = Dictionary(uniqueKeysWithValues: ValueTests.values.enumerated().map { (Text("key\($0)"), $1) })
        try await store.apply(values.map { (key: $0.key.string, value: $0.value) }, options: { _ in })
        return try await store.everything()
    }

    @Test(arguments: ["xml", "binary", "json"])
    func `export and import round-trip everything`(format: String) async throws {
        try await Terminal.with { terminal in
            let (store, other) = (try await terminal.store(), try await terminal.store("org.example.Other"))
            var values = try await Self.fill(store)
            if format == "xml" {
                let refused = try await terminal.ctl("export", "--format", "xml")
                let (key, _) = try #require(values.first(where: { $0.value == .string("\u{1B}[31m") }))
                expect(refused, 3, "the key \"\(key)\" or its value has", "character U+001B", "binary or JSON.")
                // XML can't hold these.
                for (key, value) in values where value == .string("\u{1B}[31m") {
                    try await store.remove(key.string)
                    values[key] = nil
                }
            }
            let file = terminal.file("store.\(format)")
            #expect(try await terminal.ctl("export", file, "--format", format).code == 0)
            expect(try await terminal.ctl("import", file, "--store", "org.example.Other"), 0)
            #expect(try await other.everything() == values)
            #expect(try await terminal.ctl("import", file, "--check").output == "nothing would change")
        }
    }

    @Test func `an import through a pipe sets what is there and leaves the rest`() async throws {
        try await Terminal.with { terminal in
            let store = try await terminal.store()
            try await store.apply(["a": .integer(1), "b": .integer(2)])
            let generation = try await store.generation()
            expect(try await terminal.ctl("import", input: #"{"b": 3, "c": 4}"#), 0)
            #expect(try await store.everything() == ["a": .integer(1), "b": .integer(3), "c": .integer(4)])
            #expect(try await store.generation() == generation + 1)
            #expect(
                try await terminal.ctl("import", "--replace", "--dry-run", input: #"{"b": 3}"#).output
                    == "would remove a\nwould remove c")
            expect(try await terminal.ctl("import", "--replace", input: #"{"b": 3}"#), 0)
            #expect(try await store.everything() == ["b": .integer(3)])
        }
    }

    @Test func `an import that the store has no room for changes nothing`() async throws {
        try await Terminal.with { terminal in
            let half = String(repeating: "x", count: 600_000)
            let file = #"{"a": 1, "b": "\#(half)", "c": "\#(half)"}"#
            expect(try await terminal.ctl("import", input: file), 3, "ubiquitousctl usage")
            expect(try await terminal.ctl("import", "--check", input: file), 3, "would have 1200008 bytes")
            #expect(try await terminal.store().everything().isEmpty)
        }
    }

    @Test(arguments: [
        ("{\"a\": 1,\n\"b\": [1,}", "line 2, column 9"), ("<plist>\n<dict><key>a</dict></plist>", "line 2, column 13"),
        ("bplist00garbage", "byte 15"), ("[1]", "a value of type array"), ("", "is empty"),
        (#"{"\#(String(repeating: "k", count: 129))": 1}"#, "shorten it to at most 128"),
    ])
    func `a broken file is refused with the place, and nothing is changed`(text: String, sentence: String) async throws
    {
        try await Terminal.with { terminal in
            try terminal.write("broken", text)
            let result = try await terminal.ctl("import", terminal.file("broken"))
            expect(result, sentence.contains("128") ? 3 : 2, sentence)
            #expect(try await terminal.store().everything().isEmpty)
        }
    }

    @Test func `a file that isn't there, or can't be written, is an error that names it`() async throws {
        try await Terminal.with { terminal in
            expect(try await terminal.ctl("import", "/nonexistent/file"), 2, "\"/nonexistent/file\" can't be opened")
            expect(try await terminal.ctl("export", "/nonexistent/file"), 2, "/nonexistent/file\" can't be written")
        }
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP, SIGKILL])
    func `a signal during an export leaves the old file and no other`(signal: Int32) async throws {
        try await Terminal.with { terminal in
            _ = try await Self.fill(try await terminal.store())
            let directory = try terminal.device.directory.makeDirectory("exports")
            try terminal.write("exports/store.json", "old")
            terminal.device.signal(SIGSTOP)
            let export = try terminal.start("export", directory + "/store.json")
            try await eventually("the export waits for the service") { terminal.text("error").contains("Waiting") }
            export.send(signal)
            #expect(try await export.finish() == .signal(signal))
            #expect(terminal.text("exports/store.json") == "old")
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == ["store.json"])
        }
    }

    @Test func `an export replaces a file, follows a link and keeps the mode`() async throws {
        try await Terminal.with { terminal in
            try await terminal.store().set("theme", .string("dark"))
            try terminal.write("real", "old")
            chmod(terminal.file("real"), 0o640)
            symlink("real", terminal.file("link.json"))
            expect(try await terminal.ctl("export", terminal.file("link.json")), 0)
            #expect(terminal.text("real") == "{\n  \"theme\": \"dark\"\n}\n")
            var status = stat()
            lstat(terminal.file("link.json"), &status)
            #expect(status.st_mode & S_IFMT == S_IFLNK)
            stat(terminal.file("real"), &status)
            #expect(status.st_mode & 0o777 == 0o640)
        }
    }
}
