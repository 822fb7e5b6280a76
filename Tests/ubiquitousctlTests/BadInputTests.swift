// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import Testing
import UbiquitousStoreTesting

/// Every subcommand with a wrong store, key or argument, and with a missing or silent service.
@Suite struct BadInputTests {
    /// A valid command line for each subcommand that uses a store.
    private static let onStores: [[String]] = [
        ["get", "key"], ["set", "key", "1"], ["remove", "key"], ["list"], ["export"], ["import"], ["watch"],
        ["usage"], ["history", "key"], ["restore", "key"], ["synchronize"],
    ]
    private static let onAccounts: [[String]] = [
        ["stores"], ["status"], ["identify"], ["account", "sign-in", "folder:///tmp"], ["account", "sign-out"],
        ["account", "switch", "folder:///tmp"], ["account", "sync"], ["account", "pause"], ["account", "resume"],
        ["account", "resolve", "local"], ["account", "devices"], ["account", "rename", "x"],
        ["account", "forget", "x"],
    ]

    @Test func `a store that no manifest declares is refused by every subcommand`() async throws {
        try await Terminal.with { terminal in
            try terminal.write("in.json", #"{"a": 1}"#)
            for line in Self.onStores {
                let result = try await terminal.ctl2(
                    line + (line == ["import"] ? [terminal.file("in.json")] : []), store: "org.example.None")
                expect(result, 3, "There is no store \"org.example.None\"", "ubiquitousctl identify")
            }
        }
    }

    @Test func `a name that no store and no domain can have is refused with what a name may be`() async throws {
        try await Terminal.with { terminal in
            for name in [".", "..", "a/b"] {
                expect(
                    try await terminal.ctl2(["set", "a", "1"], store: name), 2, "\"\(name)\" can't name a store",
                    "1 to 255 of the characters A-Z a-z 0-9 . _ -, and isn't . or ..")
            }
            for name in [".", ".."] {
                expect(
                    try await terminal.ctl("defaults", "write", name, "a", "1"), 2, "\"\(name)\" is not a domain",
                    "1 to 255 bytes of UTF-8 without slashes and control characters, and neither \".\" nor \"..\"")
            }
        }
    }

    @Test func `no store at all is an error of usage that says how to name one`() async throws {
        try await Terminal.with { terminal in
            expect(try await terminal.ctl2(["get", "key"], store: ""), 2, "No store is named", "--store")
        }
    }

    @Test func `a service that isn't there ends every subcommand with 4`() async throws {
        try await Terminal.with(started: false) { terminal in
            try terminal.write("in.json", #"{"a": 1}"#)
            for line in Self.onStores + Self.onAccounts {
                let result = try await terminal.ctl2(line + (line == ["import"] ? [terminal.file("in.json")] : []))
                expect(result, 4, "ubiquitousctl: The service isn't running", "--bus")
            }
            let doctor = try await terminal.ctl("doctor")
            #expect(doctor.code == 4)
            #expect(doctor.output.contains("WRONG  service: ") && !doctor.output.contains("ubiquitousctl doctor"))
            expect(
                try await terminal.ctl("get", "--bus", "unix:path=/nonexistent", "key"), 4, "The bus can't be reached")
        }
    }

    @Test func `a key that isn't there is 1, and one that can't be is refused`() async throws {
        try await Terminal.with { terminal in
            expect(try await terminal.ctl("get", "nothing"), 1, "no value for \"nothing\"")
            expect(try await terminal.ctl("get", ""), 1, "no value for \"\"")
            expect(try await terminal.ctl("set", "", "1"), 3, "The key is empty")
            expect(try await terminal.ctl("set", String(repeating: "k", count: 129), "1"), 3, "at most 128")
            expect(try await terminal.ctl("restore", "nothing"), 1, "no earlier values")
            let deep = String(repeating: "[", count: 17) + String(repeating: "]", count: 17)
            expect(try await terminal.ctl("set", "deep", deep), 3, "nested deeper than 16")
        }
    }

    @Test(arguments: [
        ["frob"], ["get"], ["get", "a", "b"], ["set"], ["set", "key"], ["set", "key", "a", "b"], ["set", "-int", "1"],
        ["set", "key", "1", "--store="], ["set", "key", "1", "-s"], ["set", "key", "1", "--bus", "nonsense"],
        ["set", "key", "-int", "x"], ["set", "key", "{\"a\""], ["remove"], ["list", "x"],
        ["export", "--format", "yaml"],
        ["import", "a", "b"], ["watch", "--frob"], ["defaults", "watch", "org.example.Editor", "--frob"],
        ["usage", "--keys", "-1"], ["history"], ["restore", "key", "x"],
        ["synchronize", "--timeout", "0"], ["synchronize", "--timeout", "5"],
        ["stores", "sync", "x", "maybe"], ["stores", "remove"], ["status", "x"],
        ["account", "sign-in"], ["account", "sign-in", "nonsense"],
        ["account", "sign-in", "webdavs://me:secret@host/"],
        ["account", "resolve", "both"], ["account", "rename", ""], ["account", "forget"], ["doctor", "nonsense"],
        ["get", "--user", "no such user", "key"], ["get", "--bus", "nonsense", "key"],
        ["get", "--user", "+0", "key"], ["get", "--user", "00", "key"], ["admin", "adopt", "u1", "+0"],
        ["account", "sign-in", "folder:///x", "--password-file", "/nonexistent"],
    ])
    func `a command line that isn't right ends with 2 and changes nothing`(line: [String]) async throws {
        try await Terminal.with { terminal in
            let result = try await terminal.ctl2(line)
            expect(result, 2)
            #expect(!result.error.isEmpty && !result.error.contains("Fatal") && !result.error.contains("secret@"))
            #expect(try await terminal.store().everything().isEmpty)
        }
    }

    @Test func `a negative number is told which numbers there are`() async throws {
        try await Terminal.with(started: false) { terminal in
            for value in [["--keys", "-5"], ["--keys=-5"]] {
                expect(try await terminal.ctl2(["usage"] + value + ["--json"]), 2, "--keys takes a number, 0 or more.")
            }
            let line = ["synchronize", "--wait", "--timeout", "-5"]
            expect(try await terminal.ctl2(line), 2, "--timeout takes 1 to 86400 seconds.")
            expect(try await terminal.ctl("usage", "--keys", "--json"), 2, "Missing value for '--keys <keys>'")
        }
    }

    @Test(arguments: ["0", "-1", "10", "27", "40"])
    func `help is whole where the terminal is narrow`(columns: String) async throws {
        try await Terminal.with(started: false) { terminal in
            let service = try ChildProcess.built("ubiquitous-stored")
            for (program, words) in [(Terminal.program, ["account", "sign-in", "--help"]), (service, ["--help"])] {
                let narrow = try await terminal.ctl(
                    arguments: words, variables: ["COLUMNS=\(columns)"], program: program)
                let wide = try await terminal.ctl(arguments: words, variables: ["COLUMNS=100"], program: program)
                let (short, long) = (narrow.output.split(separator: /\s+/), wide.output.split(separator: /\s+/))
                #expect(narrow.code == 0 && short == long, "\(narrow)")
            }
        }
    }

    @Test(arguments: [
        ["--json", "status"], ["account", "--json", "devices"], ["admin", "--check", "delete", "x"],
        ["manifest", "--json=1", "check", "x"],
    ])
    func `an option before a subcommand is told where it belongs`(line: [String]) async throws {
        try await Terminal.with(started: false) { terminal in
            expect(try await terminal.ctl2(line), 2, "where the subcommand belongs", "Options follow the subcommand")
            expect(try await terminal.ctl("account", "--frob"), 2)
            #expect(try await terminal.ctl("account", "--help").output.contains("SUBCOMMANDS"))
        }
    }

    @Test func `a web address is told as that of a folder of a WebDAV server`() async throws {
        try await Terminal.with(started: false) { terminal in
            for line in [["doctor"], ["account", "sign-in"]] {
                let result = try await terminal.ctl2(line + ["https://cloud.example.org/dav/me"])
                expect(result, 2, "is webdavs://cloud.example.org/dav/me.")
            }
        }
    }

    @Test func `output that can't be written is an error`() async throws {
        try await Terminal.with { terminal in
            try await terminal.store().set("key", .string("value"))
            let list = try ChildProcess(
                ["env", "UBIQUITOUS_STORE_BUS=\(terminal.bus.address)", Terminal.program, "list", "--store", notes],
                output: ("/dev/full", terminal.file("error")))
            #expect(try await list.finish() == .code(3))
            #expect(terminal.text("error").contains("No space left"))
            expect(try await terminal.line("ubiquitousctl set --json key other >/dev/full"), 3, "The change was made")
            #expect(try await terminal.store().value("key") == .string("other"))
            let set = try await terminal.line("ubiquitousctl set --check --json key third >/dev/full")
            expect(set, 3, "Standard output can't be written to: No space left")
            try terminal.write("app.plist", ManifestText(notes).xml)
            let check = "ubiquitousctl manifest check \(terminal.file("app.plist")) >/dev/full"
            expect(try await terminal.line(check), 3, "No space left")
        }
    }

    @Test func `a password as an argument is refused, and not repeated`() async throws {
        try await Terminal.with(started: false) { terminal in
            let line = ["account", "sign-in", "--password", "hunter2", "webdav://localhost/me"]
            let result = try await terminal.ctl2(line)
            expect(result, 2, "There is no --password")
            #expect(!result.error.contains("hunter2"))
        }
    }

    @Test func `what takes long says so, once in a file and with its time at a terminal`() async throws {
        try await Terminal.with { terminal in
            try await terminal.store().set("theme", .string("dark"))
            terminal.device.signal(SIGSTOP)
            let list = try terminal.start("list")
            let person = try terminal.atTerminal("list", variables: ["NO_COLOR=1"])
            try await eventually("the program says what it waits for") {
                terminal.text("error") == "Waiting for the service …\n"
            }
            try await person.shows("\rWaiting for the service … 2 s")
            terminal.device.signal(SIGCONT)
            #expect(try await list.finish() == .code(0))
            // The message is erased when the result comes.
            try await person.shows("\r\u{1B}[Ktheme = dark\r\n")
        }
    }

    @Test func `colours are for terminals that have them and people who want them`() async throws {
        try await Terminal.with { terminal in
            try await terminal.store().set("theme", .string("dark"))
            #expect(try await !terminal.ctl("usage").output.contains("\u{1B}"))
            for (variables, isColoured) in [
                ([], true), (["NO_COLOR=1"], false), (["NO_COLOR="], true), (["TERM=dumb"], false),
            ] {
                let usage = try terminal.atTerminal("usage", variables: variables)
                try await usage.shows("of 1024 keys")
                #expect(usage.screen.contains("\u{1B}[32m█") == isColoured, "\(variables)")
                let nothing = try terminal.atTerminal("get", "nothing", variables: variables)
                try await nothing.shows("no value")
                #expect(nothing.screen.contains("\u{1B}[31mubiquitousctl:") == isColoured, "\(variables)")
            }
        }
    }
}

extension Terminal {
    /// Runs the program on another store, or on none if `store` is "".
    func ctl2(_ arguments: [String], store: String = notes) async throws -> ProgramResult {
        try await run(
            ["env", "UBIQUITOUS_STORE_BUS=\(bus.address)", "UBIQUITOUS_STORE_IDENTIFIER=\(store)", Self.program]
                + arguments)
    }
}
