// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Glibc
import PropertyList
import ServerTesting
import Synchronization
import Testing
import UbiquitousStoreTesting

@testable import ControlCommands

/// Mistakes of users who use the program every day.
@Suite struct DailyUseTests {
    @Test(
        arguments: [
            (["set", "theme", "--check"], "A value is missing"), (["set", "theme", "-n"], "A value is missing"),
            (["set", "theme", "-strng", "dark"], "Did you mean -string?"),
            (["set", "theme", "-array", "1", "--check"], "Put -string before it"),
            (["set", "theme", "--frob"], "no option \"--frob\""),
        ] as [([String], String)])
    func `an option in the place of a value is refused, and not stored`(line: [String], words: String) async throws {
        try await Terminal.with { terminal in
            expect(try await terminal.ctl2(line), 2, words)
            #expect(try await terminal.store().everything().isEmpty)
        }
    }

    @Test(arguments: [
        ["set", "theme", "dark", "--check"], ["set", "theme", "--check", "dark"], ["set", "theme", "dark", "-n"],
        ["set", "theme", "-string", "dark", "--check"], ["set", "theme", "dark", "--store", notes, "--check"],
    ])
    func `an option works before the value and after it`(line: [String]) async throws {
        try await Terminal.with { terminal in
            let result = try await terminal.ctl2(line)
            #expect(result.output == "would set theme = dark", "\(result)")
            #expect(try await terminal.store().everything().isEmpty)
        }
    }

    @Test func `negative numbers and dashes are values`() async throws {
        try await Terminal.with { terminal in
            for (word, value) in [("-5", Value.integer(-5)), ("-0.5", .real(-0.5))] {
                expect(try await terminal.ctl("set", "key", word), 0)
                #expect(try await terminal.store().value("key") == value)
            }
            expect(try await terminal.ctl("set", "key", "-string", "--check"), 0)
            #expect(try await terminal.store().value("key") == .string("--check"))
        }
    }

    @Test func `a reader who has had enough is no error`() async throws {
        try await Terminal.with { terminal in
            try await terminal.store().set("key", .string(Text(String(repeating: "x", count: 300_000))))
            let shell = try terminal.shell()
            try await shell.shows("$ ")
            shell.type("ubiquitousctl list | head -c 3; echo; echo rea''dy\n")
            try await shell.shows("key\r\nready")
            #expect(!shell.screen.contains("ubiquitousctl:"))
        }
    }

    @Test func `standard streams that are closed are not other files by chance`() async throws {
        try await Terminal.with { terminal in
            try await terminal.store().set("theme", .string("dark"))
            func result(_ command: String, _ redirection: String) async throws -> String {
                let line = "ubiquitousctl \(command) \(redirection); echo \"code $?\""
                return try await terminal.line(line).output
            }
            #expect(try await result("get theme", "<&-") == "dark\ncode 0")
            #expect(try await result("get theme", "2>&-") == "dark\ncode 0")
            #expect(try await result("get none", "2>&-") == "code 1")
            #expect(try await result("set theme light", "<&- >&- 2>&-") == "code 0")
            #expect(try await terminal.line("ubiquitousctl get theme >&-").error.contains("Bad file descriptor"))
            #expect(try await terminal.line("ubiquitousctl import <&-").error.contains("Bad file descriptor"))
        }
    }

    @Test func `watch ends when what it says can't be written`() async throws {
        try await Terminal.with { terminal in
            let watching = try terminal.starting("ubiquitousctl watch --initial >/dev/full")
            // The program may see any of these changes first.
            try await eventually("it has ended") {
                try await terminal.store().set("number", .integer(.random(in: 0..<1_000_000)))
                return watching.exit != nil
            }
            #expect(watching.exit == .code(3))
        }
    }

    @Test func `the doctor looks at no users that don't exist`() async throws {
        try await Terminal.with { terminal in
            expect(try await terminal.ctl("doctor", "--user", "no-such-user"), 2, "There is no user")
        }
    }

    @Test(.enabled(if: geteuid() == 0, "this needs root")) func `the doctor looks at users who have nothing`()
        async throws
    {
        try await Terminal.with { terminal in
            expect(try await terminal.ctl("status", "--user", "nobody"), 3, "The user has no data on this device")
            let result = try await terminal.ctl("doctor", "--user", "nobody")
            #expect(result.code == 0 && result.output.contains("account: none; the user has no data"), "\(result)")
        }
    }

    @Test func `a manifest that the service's user can't read is said to be`() async throws {
        try await Terminal.with(started: false) { terminal in
            try terminal.write("app.plist", ManifestText(notes).xml)
            chmod(terminal.file("app.plist"), 0o600)
            let result = try await terminal.ctl("manifest", "check", terminal.file("app.plist"))
            #expect(result.code == 0 && result.error.contains("can't read it"), "\(result)")
        }
    }

    @Test(
        arguments: [
            (["gte", "theme"], "Did you mean \"get\"?"), (["lst"], "Did you mean \"list\"?"),
            (["account", "signin"], "Did you mean \"sign-in\"?"), (["stores", "frob"], "--help"),
            (["login", "folder:///x"], "Did you mean \"account sign-in\"?"), (["sign-out"], "account sign-out"),
            (["rm", "theme"], "Did you mean \"remove\"?"), (["ls"], "Did you mean \"list\"?"),
            (["sync"], "Did you mean \"account sync\"?"),
            (["account", "status"], "Did you mean \"ubiquitousctl status\"?"),
            (["frobnicate"], "\"ubiquitousctl --help\" lists the subcommands."),
            (["help", "gte"], "Did you mean \"get\"?"),
            (["help", "account", "signin"], "Did you mean \"sign-in\"?"),
            (["help", "get", "extra"], "\"ubiquitousctl get --help\" says what it takes."),
            (["help", "admin", "frobnicate"], "\"ubiquitousctl admin --help\" lists the subcommands."),
        ] as [([String], String)])
    func `a subcommand that there isn't is named, with the one that was meant`(line: [String], words: String)
        async throws
    {
        let result = try await run([Terminal.program] + line)
        let known = ["account", "stores", "help", "get", "admin"]
        expect(result, 2, "There is no subcommand \"\(line.first { !known.contains($0) } ?? "")\"", words)
    }

    @Test func `an option before the subcommand, and a path in place of an address, are said to be that`() async throws
    {
        for option in ["--bus", "-s", "--user=bob", "--json"] {
            expect(
                try await run([Terminal.program, option, "status"]), 2,
                "stands where the subcommand belongs", "Options follow the subcommand.")
        }
        #expect(try await run([Terminal.program, "--version"]).code == 0)
        expect(
            try await run([Terminal.program, "account", "sign-in", "/home/anna/Cloud"]), 2,
            "the address of that folder is folder:///home/anna/Cloud")
        expect(
            try await run([Terminal.program, "account", "sign-in", "file:///home/anna/Cloud"]), 2,
            "that of a folder is folder:///home/anna/Cloud")
        expect(try await run([Terminal.program, "set", "theme=dark"]), 2, "write \"set theme dark\"")
    }

    @Test func `a backup names the program that would compress it, if that isn't installed`() async throws {
        let line = ["env", "PATH=/nonexistent", Terminal.program, "admin", "backup", "/nonexistent/all.tar.zst"]
        expect(try await run(line), 2, "zstd, which the archive's name asks for, is not installed", ".tar")
    }

    @Test func `a date without a zone is local time`() async {
        // Other tests need another time zone, so this has its own process.
        await #expect(processExitsWith: .success) {
            setenv("TZ", "UTC-5:30", 1)
            let words = ["2001-01-01T05:30", "2001-01-01 05:30:01.5", "2001-01-02", "2001-01-01T00:00:00Z"]
            let seconds = try words.map { try DateWord.seconds($0) }
            #expect(seconds == [0, 1.5, 86_400 - 19_800, 0])
        }
    }

    @Test func `a time that local clocks skip is refused, and of one that they show twice the first is meant`() async {
        await #expect(processExitsWith: .success) {
            setenv("TZ", "Europe/Berlin", 1)
            let words = ["2026-03-29T01:59:59", "2026-03-29T03:00", "2026-10-25T02:30", "2026-07-01"]
            let times = try words.map { try DateWord.seconds($0) }
            let expected = [
                "2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z", "2026-10-25T00:30:00Z", "2026-06-30T22:00:00Z",
            ]
            #expect(times == (try expected.map { try DateWord.seconds($0) }))
            #expect { try DateWord.seconds("2026-03-29T02:30:00") } throws: { "\($0)".contains("skip that time") }
        }
    }

    @Test func `an impossible date is named`() {
        for (word, sentence) in [
            ("2026-02-30", "the month 2026-02 has 28 days"), ("2024-02-30T10:00", "the month 2024-02 has 29 days"),
            ("2026-13-01", "there is no month 2026-13"), ("2026-01-01T25:00", "there is no time 25:00"),
            ("2026-01-01 10:61:00Z", "there is no time 10:61:00"), ("2026-01-01T10:00:0", "it takes a time such as"),
            ("2026-01-01T10:00:60Z", "there is no time 10:00:60"),
            ("2026-01-01T10:00:00+25:00", "there is no time +25:00"),
        ] {
            #expect { try DateWord.seconds(word) } throws: { "\($0)".contains(sentence) }
        }
    }

    @Test func `of a key that is too long the beginning is shown`() async throws {
        try await Terminal.with { terminal in
            for line in [["get"], ["set"], ["history"], ["restore"]] {
                let result = try await terminal.ctl2(
                    line + [String(repeating: "k", count: 3_000)] + (line == ["set"] ? ["1"] : []))
                #expect(result.code != 0 && result.error.utf8.count < 400, "\(result)")
                if line != ["history"], line != ["restore"] { #expect(result.error.contains("kkk…\"")) }
            }
            let long = String(repeating: "k", count: 3_000)
            for line in [["read", "com.example.a", long], ["read", long], [long], ["write", long, "key", "1"]] {
                let result = try await terminal.ctl2(["defaults"] + line)
                #expect(result.code != 0 && result.error.utf8.count < 700, "\(result)")
            }
        }
    }

    @Test func `of a long value a check shows the beginning`() async throws {
        try await Terminal.with { terminal in
            try await terminal.store().set("key", .string(Text(String(repeating: "x", count: 300_000))))
            let result = try await terminal.ctl("set", "--check", "key", String(repeating: "y", count: 3_000))
            #expect(result.code == 0 && result.output.count < 500, "\(result.output.count)")
            #expect(result.output.contains("yyy… (now xxx"))
        }
    }

    @Test func `an argument that isn't UTF-8 is refused, and not stored as something else`() async throws {
        try await Terminal.with { terminal in
            let result = try await run(
                [
                    "env", "UBIQUITOUS_STORE_BUS=\(terminal.bus.address)", "UBIQUITOUS_STORE_IDENTIFIER=\(notes)", "sh",
                    "-c",
                ]
                    + ["\(Terminal.program) set key \"$(printf 'caf\\351')\""])
            expect(result, 2, "Argument 3 isn't UTF-8")
            #expect(try await terminal.store().everything().isEmpty)
        }
    }

    @Test func `import says that it reads what is typed`() async throws {
        try await Terminal.with { terminal in
            let person = try terminal.atTerminal("import")
            try await person.shows("end it with Ctrl-D")
            person.type("{\"theme\": \"dark\"}\n\u{4}")
            #expect(try await person.program.finish() == .code(0))
            #expect(try await terminal.store().value("theme") == .string("dark"))
        }
    }

    @Test func `history has the names of devices, and fits a narrow terminal`() async throws {
        try await Terminal.with { terminal in
            let folder = try terminal.device.directory.makeDirectory("folder", mode: 0o700)
            expect(try await terminal.ctl("account", "sign-in", "folder://\(folder)", "--device-name", "desk"), 0)
            expect(try await terminal.ctl("synchronize", "--wait"), 0)
            for theme in ["a rather long value that fills a line", "b"] {
                expect(try await terminal.ctl("set", "theme", theme), 0)
            }
            #expect(
                try await terminal.ctl("history", "theme").output.contains("replaced  desk  a rather long value"))
            let shell = try terminal.shell()
            try await shell.shows("$ ")
            shell.type("stty cols 40; ubiquitousctl history theme; echo rea''dy\n")
            try await shell.shows("ready\r\n")
            let lines = shell.screen.split(separator: "\r\n").drop { !$0.hasPrefix("1  ") }.prefix { $0 != "ready" }
            #expect(lines.count == 2 && lines.last == "   a rather long value that fills a line", "\(lines)")
        }
    }

    @Test func `what keys take that stay on this device is shown apart`() async throws {
        try await Terminal.with { (terminal: Terminal) async throws in
            try terminal.device.install(
                ManifestText("org.example.Editor", localKeys: ["window*"]).xml, as: "editor.plist")
            let set = { (key: String, value: String) in
                try await terminal.ctl2(["set", key, value], store: "org.example.Editor")
            }
            try await eventually("it is declared") { try await set("theme", "dark").code == 0 }
            expect(try await set("window.frame", String(repeating: "x", count: 1020)), 0)
            let usage = try await terminal.ctl2(["usage"], store: "org.example.Editor").output
            #expect(usage.contains("4 B of 1 MiB, 1 of 1024 keys"), "\(usage)")
            #expect(usage.contains("on this device only: 1020 B of 1 MiB, 1 of 1024 keys"), "\(usage)")
            let json = try await terminal.ctl2(["usage", "--json"], store: "org.example.Editor").output
            #expect(json.contains(#""local-bytes":1020"#) && json.contains(#""local-keys":1"#), "\(json)")
        }
    }

    @Test func `history is measured, and removed from all stores where somebody wants it`() async throws {
        try await Terminal.with { terminal in
            for store in [notes, "org.example.Other"] {
                for theme in ["dark", "light"] {
                    expect(try await terminal.ctl2(["set", "theme", theme], store: store), 0)
                }
            }
            let usage = try await terminal.ctl2(["usage"], store: "")
            #expect(usage.output.contains("Database") && usage.output.contains("of 256 MiB, of which about"))
            let sums = try await terminal.ctl2(["usage", "--json"], store: "").output
            #expect(sums.contains(#""keys":2"#) && sums.contains(#""history-bytes":"#), "\(sums)")
            let check = try await terminal.ctl2(["history", "trim", "--check"])
            #expect(check.output.hasPrefix("would remove earlier values that take about"), "\(check)")
            #expect(try await terminal.ctl("history", "theme").output.contains("dark"))
            #expect(try await terminal.ctl("history", "show", "theme").output.contains("dark"))
            for answer in ["n\n", "\n"] {
                let person = try terminal.atTerminal("history", "trim")
                try await person.shows("Remove the earlier values of all stores and settings? [y/N] ")
                person.type(answer)
                #expect(try await person.program.finish() == .code(3))
            }
            #expect(try await terminal.ctl2(["history", "trim", "--check"]).output == check.output)
            expect(try await terminal.ctl2(["history", "trim"]), 0)
            #expect(try await terminal.ctl2(["history", "trim", "--json"]).output == #"{"changed":false}"#)
            for store in [notes, "org.example.Other"] {
                expect(try await terminal.ctl2(["history", "theme"], store: store), 1)
                #expect(try await terminal.ctl2(["get", "theme"], store: store).output == "light")
            }
            #expect(try await terminal.ctl2(["usage"], store: "").output.contains("about 0 B history"))
        }
    }

    @Test func `to forget a device says that nothing is revoked`() async throws {
        try await Terminal.with { terminal in
            let folder = try terminal.device.directory.makeDirectory("folder", mode: 0o700)
            expect(try await terminal.ctl("account", "sign-in", "folder://\(folder)"), 0)
            let other = try await Second.device(on: "folder://\(folder)", named: "phone")
            defer { other.end() }
            try await eventually("the other device is known") {
                _ = try await terminal.ctl("account", "sync")
                return try await terminal.ctl("account", "devices").output.contains("phone")
            }
            let forgotten = try await terminal.ctl("account", "forget", "phone")
            #expect(forgotten.code == 0 && forgotten.error.contains("Nothing is revoked"))
            #expect(forgotten.error.contains("is listed again with its next change"))
            expect(try await terminal.ctl("account", "sync"), 0)
            for line in [["account", "sync"], ["set", "phone", "2"]] { _ = try await other.done(line) }
            try await eventually("the other device is listed again") {
                _ = try await other.done(["account", "sync"])
                _ = try await terminal.ctl("account", "sync")
                return try await terminal.ctl("account", "devices").output.contains("phone")
            }
        }
    }

    @Test func `whether a store is synced is read back`() async throws {
        try await Terminal.with { terminal in
            try await terminal.store().set("theme", .string("dark"))
            #expect(try await terminal.ctl("stores", "sync", notes).output == "on")
            expect(try await terminal.ctl("stores", "sync", "org.example.Nope"), 3, "There is no store")
            expect(try await terminal.ctl("stores", "sync", "org.example.Nope", "off"), 3, "There is no store")
            let check = try await terminal.ctl("stores", "sync", notes, "off", "--check").output
            #expect(check == "would keep \(notes) on this device")
            #expect(try await terminal.ctl("stores", "sync", notes, "on", "--json").output == #"{"changed":false}"#)
            #expect(try await terminal.ctl("stores", "sync", notes, "--json").output == #"{"synchronized":true}"#)
            expect(try await terminal.ctl("account", "resolve", "local"), 3, "isn't signed in")
            expect(try await terminal.ctl("stores", "sync", notes, "off"), 0)
            #expect(try await terminal.ctl("stores", "sync", notes).output == "off")
        }
    }

    @Test func `a manifest that was installed a moment ago counts`() async throws {
        try await Terminal.with { terminal in
            let fresh = "org.example.Fresh"
            try terminal.device.install(ManifestText(fresh).xml, as: "fresh.plist")
            expect(try await terminal.ctl2(["set", "theme", "dark"], store: fresh), 0)
        }
    }

    @Test(
        arguments: [
            (("not-found", "inactive", "dead", "", "", 0), "it isn't installed"),
            (("loaded", "failed", "failed", "exit-code", "", 203), "its program can't be run"),
            (("loaded", "failed", "failed", "exit-code", "/etc/x, line 3: no.", 78), "line 3"),
            (("loaded", "activating", "auto-restart", "exit-code", "", 238), "state directory"),
            (("loaded", "failed", "failed", "start-limit-hit", "", 0), "too often"),
            (("loaded", "failed", "failed", "start-limit-hit", "Serving, with /etc/x, line 1: no.", 0), "reset-failed"),
            (("masked", "inactive", "dead", "", "", 0), "masked"),
            (("loaded", "active", "running", "success", "", 0), nil),
            (("loaded", "activating", "start", "success", "", 0), nil),
        ] as [((String, String, String, String, String, Int32), String?)])
    func `what systemd knows of a service that can't start is said`(
        unit: (String, String, String, String, String, Int32), words: String?
    ) {
        let unit = ServiceUnit.Unit(
            load: unit.0, active: unit.1, sub: unit.2, result: unit.3, status: unit.4, exitStatus: unit.5)
        #expect(unit.reason?.contains(words ?? "") == (words == nil ? nil : true), "\(unit.reason ?? "nothing")")
    }

    @Test func `a database that was set aside is said where people look`() async throws {
        try await Terminal.with { terminal in
            try await terminal.store().set("theme", .string("dark"))
            let clean = try await terminal.ctl("list")
            #expect(clean.remarks == "")
            #expect(try await terminal.ctl("status").output.contains("Damage") == false)
            let name = "stores.sqlite.damaged-2026-11-21T093000Z"
            try Data().write(to: URL(filePath: "\(terminal.device.stateDirectory)/u\(geteuid())/\(name)"))
            let list = try await terminal.ctl("list")
            #expect(list.output == "theme = dark" && list.error.contains("A damaged database was set aside"), "\(list)")
            let german = try await terminal.ctl("list", variables: ["LC_ALL=de_DE.UTF-8"])
            #expect(german.error.contains("Eine beschädigte Datenbank"), "\(german)")
            let status = try await terminal.ctl("status")
            #expect(status.output.contains("Damage        a damaged database was set aside (\(name))"), "\(status)")
            #expect(try await terminal.ctl("status", "--json").output.contains(#""databases-set-aside":["\#(name)"]"#))
            #expect(try await terminal.ctl("doctor").code == 3)
        }
    }

    @Test func `the doctor tries the account's remote, or says why it doesn't`() async throws {
        let folder = MemoryFolder()
        let isBroken = Atomic<Bool>(false)
        let server = try ScriptedServer { request in
            isBroken.load(ordering: .acquiring) ? ServerAnswer(500) : folder.answer(to: request)
        }
        try await Terminal.with { terminal in
            #expect(try await terminal.ctl("doctor").output.contains("remote") == false)
            let url = "webdav://127.0.0.1:\(server.port)/dav"
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            let well = try await terminal.ctl("doctor")
            #expect(well.code == 0 && well.output.contains("ok     remote: \(url) passes all"), "\(well)")
            expect(try await terminal.ctl("account", "pause"), 0)
            let paused = try await terminal.ctl("doctor")
            #expect(paused.code == 0 && paused.output.contains("       remote: not tried: sync is paused"), "\(paused)")
            #expect(try await terminal.ctl("doctor", "--json").output.contains(#""step":"remote","tried":false"#))
            expect(try await terminal.ctl("account", "resume"), 0)
            isBroken.store(true, ordering: .releasing)
            let broken = try await terminal.ctl("doctor")
            #expect(
                broken.code == 3 && broken.output.contains("WRONG  folder: 127.0.0.1 reports an error"), "\(broken)")
        }
    }

    @Test func `the doctor says that the clocks differ, and leaves a server alone that refused the password`()
        async throws
    {
        let folder = MemoryFolder()
        let isShut = Atomic<Bool>(false)
        let server = try ScriptedServer { request in
            if isShut.load(ordering: .acquiring) { return ServerAnswer(401) }
            var answer = folder.answer(to: request)
            if let end = answer.bytes.firstIndex(of: UInt8(ascii: "\n")) {
                answer.bytes.insert(contentsOf: "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n".utf8, at: end + 1)
            }
            return answer
        }
        try await Terminal.with { terminal in
            expect(try await terminal.ctl("account", "sign-in", "webdav://127.0.0.1:\(server.port)/dav"), 0)
            let early = try await terminal.ctl("doctor")
            #expect(early.code == 3 && early.output.contains("WRONG  clock: The server's clock is 1"), "\(early)")
            #expect(early.output.contains(" days behind this device's."), "\(early)")
            // A clock keeps nobody from signing in.
            let place = "webdav://127.0.0.1:\(server.port)/dav"
            #expect(try await terminal.ctl("account", "sign-in", place, "--check").code == 0)
            isShut.store(true, ordering: .releasing)
            #expect(try await terminal.ctl("account", "sync").code != 0)
            let shut = try await terminal.ctl("doctor")
            #expect(shut.code == 3 && shut.output.contains("       remote: not tried: it refuses the"), "\(shut)")
        }
    }

    @Test func `the doctor names the files that the service refuses, and what they need`() async throws {
        try await Terminal.with { terminal in
            #expect(try await terminal.ctl("doctor").code == 0)
            let device = terminal.device
            try device.install(ManifestText("org.example.Third").xml, as: "third.plist", mode: 0o666)
            let managed = device.managedDirectory + "/10.plist"
            try Data("no property list".utf8).write(to: URL(filePath: managed))
            var result = try await terminal.ctl("doctor")
            try await eventually("the service has read both") {
                result = try await terminal.ctl("doctor")
                return result.output.components(separatedBy: "WRONG  files: ").count == 3
            }
            #expect(result.code == 3)
            let manifest = device.manifestDirectory + "/third.plist"
            #expect(result.output.contains("The manifest \(manifest) is refused: others may write to it."), "\(result)")
            #expect(result.output.contains("The managed settings in \(managed) are refused, and"), "\(result)")
            #expect(result.output.contains("A file needs the mode 644"), "\(result)")
            #expect(try await terminal.ctl("metrics").output.contains("\nubiquitous_store_warnings 2\n"))
            chmod(manifest, 0o644)
            try await eventually("the service has read the manifest") {
                result = try await terminal.ctl("doctor")
                return result.output.components(separatedBy: "WRONG  files: ").count == 2
            }
            #expect(result.output.contains("managed check FILE") && !result.output.contains("mode 644"), "\(result)")
            let forNobody = "<plist><dict><key>Groups</key><array><string>no such group</string></array></dict></plist>"
            try Data(forNobody.utf8).write(to: URL(filePath: managed))
            try await eventually("the service has looked for the group") {
                result = try await terminal.ctl("doctor")
                return result.output.contains("name the group no such group, which")
            }
            #expect(!result.output.contains("managed check FILE"), "\(result)")
            unlink(managed)
            try await eventually("all is well") { try await terminal.ctl("doctor").code == 0 }
        }
    }

    @Test func `the doctor waits 20 s for a remote that nobody has named, and says how to wait longer`() async throws {
        let folder = MemoryFolder()
        let server = try ScriptedServer { folder.answer(to: $0) }
        try await Terminal.with { terminal in
            let url = "webdav://127.0.0.1:\(server.port)/dav"
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            folder.isSilent = true
            let slow = try await terminal.ctl("doctor")
            #expect(slow.code == 3 && slow.output.contains("WRONG  remote: \(url) didn't pass all steps"), "\(slow)")
            #expect(slow.output.contains("\"ubiquitousctl doctor \(url)\" waits longer."), "\(slow)")
        }
    }

    @Test func `the doctor says of the command line what is wrong with it, and nothing of the service`() async throws {
        try await Terminal.with { terminal in
            let url = "webdav://127.0.0.1:1/dav"
            for (options, words) in [
                (["--login", "a"], "no password in standard input"),
                (["--password-file", "/nonexistent"], "/nonexistent"),
                (["--phrase-file", "/nonexistent"], "/nonexistent"),
            ] {
                let result = try await terminal.ctl2(["doctor", url] + options)
                expect(result, 2, words)
                #expect(result.output == "")
            }
        }
    }

    @Test func `what can't be done during a pause says how the pause ends`() async throws {
        try await Terminal.with { terminal in
            let folder = try terminal.device.directory.makeDirectory("folder", mode: 0o700)
            expect(try await terminal.ctl("account", "sign-in", "folder://\(folder)"), 0)
            expect(try await terminal.ctl("account", "pause"), 0)
            expect(try await terminal.ctl("account", "sync"), 4, "account resume")
            expect(try await terminal.ctl("synchronize", "--wait"), 4, "account resume")
            expect(try await terminal.ctl("get", "--fresh", "theme"), 4, "account resume")
            #expect(try await terminal.ctl("doctor").output.contains("account resume"))
        }
    }
}

/// Another device of the same account, on its own bus.
struct Second {
    private let bus: PrivateBus
    private let device: Device

    static func device(on url: String, named name: String, _ signingIn: String...) async throws -> Second {
        let bus = try await PrivateBus.start(.session)
        var options = Device.Options()
        options.name = name
        options.manifests = [ManifestText(notes)]
        let second = Second(bus: bus, device: try Device(on: bus, options))
        try await second.device.start()
        for line in [["account", "sign-in", url] + signingIn, ["set", "phone", "1"], ["synchronize", "--wait"]] {
            _ = try await second.done(line)
        }
        return second
    }

    /// Runs the program.
    func ctl(_ arguments: [String]) async throws -> ProgramResult {
        let variables = ["UBIQUITOUS_STORE_BUS=\(bus.address)", "UBIQUITOUS_STORE_IDENTIFIER=\(notes)"]
        return try await run(["env"] + variables + [Terminal.program] + arguments)
    }

    /// Runs the program, which has to succeed, and returns what it prints.
    func done(_ arguments: [String]) async throws -> String {
        let result = try await ctl(arguments)
        try #require(result.exit == .code(0), "\(result)")
        return result.output
    }

    func end() {
        device.kill()
        bus.end()
    }
}
