// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import Testing
import UbiquitousStoreTesting

@Suite struct AccountTests {
    private static func withFolder(_ body: (Terminal, String) async throws -> Void) async throws {
        try await Terminal.with { terminal in
            let folder = try terminal.device.directory.makeDirectory("folder", mode: 0o700)
            try await body(terminal, "folder://\(folder)")
        }
    }

    @Test func `signing in and out is told, checked and done once`() async throws {
        try await Self.withFolder { terminal, url in
            expect(try await terminal.ctl("account", "switch", url), 3, "isn't signed in")
            #expect(try await terminal.ctl("account", "sign-in", url, "--check").output == "would sign in to \(url)")
            #expect(try await terminal.ctl("status").output.contains("signed-out"))
            #expect(try await terminal.ctl("account", "sign-in", url, "--json").output == #"{"changed":true}"#)
            try await eventually("the first download") {
                try await terminal.ctl("status", "--json").output.contains(#""initial-sync-done":true"#)
            }
            #expect(try await terminal.ctl("account", "sign-in", url, "--json").output == #"{"changed":false}"#)
            expect(try await terminal.ctl("account", "sign-in", url + "2"), 3, "account switch")
            expect(try await terminal.ctl("synchronize", "--wait"), 0)
            #expect(try await terminal.ctl("account", "sign-out", "--check").output == "would sign out of \(url)")
            expect(try await terminal.ctl("account", "sign-out"), 0)
            #expect(try await terminal.ctl("account", "sign-out", "--check").output == "nothing would change")
        }
    }

    @Test func `devices are listed, renamed and not found`() async throws {
        try await Self.withFolder { terminal, url in
            expect(try await terminal.ctl("account", "sign-in", url, "--device-name", "desk"), 0)
            #expect(try await terminal.ctl("account", "devices").output.contains("desk"))
            expect(try await terminal.ctl("account", "forget", "phone"), 1, "There is no device \"phone\"")
            #expect(
                try await terminal.ctl("account", "rename", "kitchen", "--check").output
                    == "would rename \"desk\" to \"kitchen\"")
            expect(try await terminal.ctl("account", "rename", "kitchen"), 0)
            #expect(try await terminal.ctl("account", "devices", "--json").output.contains(#""name":"kitchen""#))
            expect(try await terminal.ctl("account", "forget", "kitchen"), 3)
        }
    }

    @Test func `sync is paused and resumed`() async throws {
        try await Self.withFolder { terminal, url in
            expect(try await terminal.ctl("account", "pause"), 3, "account sign-in URL")
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            #expect(try await terminal.ctl("account", "pause", "--json").output == #"{"changed":true}"#)
            #expect(try await terminal.ctl("status").output.hasPrefix("State         paused"))
            #expect(try await terminal.ctl("account", "pause", "--json").output == #"{"changed":false}"#)
            #expect(try await terminal.ctl("account", "resume", "--json").output == #"{"changed":true}"#)
            #expect(try await terminal.ctl("account", "resolve", "local", "--json").output == #"{"changed":false}"#)
        }
    }

    @Test func `a store is kept on the device, and forgotten`() async throws {
        try await Self.withFolder { terminal, url in
            try await terminal.store().set("theme", .string("dark"))
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            expect(try await terminal.ctl("stores", "sync", notes, "off"), 0)
            expect(try await terminal.ctl("stores", "sync", notes, "on"), 0)
            #expect(try await terminal.ctl("stores").output == notes)
            expect(try await terminal.ctl("stores", "remove", "org.example.Nothing"), 3)
        }
    }

    @Test func `the doctor finds what is wrong with a remote`() async throws {
        try await Self.withFolder { terminal, url in
            let well = try await terminal.ctl("doctor", url)
            #expect(well.code == 0 && !well.output.contains("WRONG"), "\(well)")
            let wrong = try await terminal.ctl("doctor", url + "/nothing/here")
            #expect(wrong.code == 3 && wrong.output.contains("WRONG  open: "), "\(wrong)")
        }
    }

    @Test func `a password is taken from a pipe or a terminal that doesn't show it`() async throws {
        try await Self.withFolder { terminal, url in
            expect(
                try await terminal.ctl("account", "sign-in", url, "--login", "me"), 2, "no password in standard input")
            try terminal.write("empty", "\n")
            let empty = try await terminal.ctl("account", "sign-in", url, "--password-file", terminal.file("empty"))
            expect(empty, 2, "There is no password in the file")
            // script(1) is a terminal: it shows what the terminal echoes.
            let command = "\(Terminal.program) account sign-in \(url) --login me --bus '\(terminal.bus.address)'"
            let script = try await run([
                "sh", "-c",
                "(sleep 1; while ! grep -q Password \"$1\"; do sleep 0.1; done; echo s3cret) | script -qefc \"$0\" \"$1\"",
                command, terminal.file("typescript"),
            ])
            #expect(script.output.contains("Password of me for \(url): "))
            #expect(!script.output.contains("s3cret"))
        }
    }
}

@Suite struct SettingUpTests {
    @Test func `the service says whom it takes the program for`() async throws {
        try await Terminal.with { terminal in
            let identity = try await terminal.ctl("identify")
            #expect(identity.output.contains(notes))
            #expect(try await terminal.ctl("identify", "--json").output.contains(#""engine":"host""#))
        }
    }

    @Test func `a manifest is checked without a service`() async throws {
        try await Terminal.with(started: false) { terminal in
            try terminal.write("good.plist", ManifestText(notes, localKeys: ["window*"]).xml)
            let good = try await terminal.ctl("manifest", "check", terminal.file("good.plist"))
            #expect(good.code == 0 && good.output.contains(notes) && good.output.contains("window*"))
            try terminal.write("bad.plist", ManifestText("no spaces", application: notes).xml)
            let bad = try await terminal.ctl("manifest", "check", terminal.file("bad.plist"))
            expect(bad, 2, "com.apple.developer.ubiquity-kvstore-identifier: \"no spaces\" has to be")
            try terminal.write("broken.plist", "<plist>\n<dict><key>a</dict></plist>")
            expect(try await terminal.ctl("manifest", "check", terminal.file("broken.plist")), 2, "line 2, column 13")
            expect(try await terminal.ctl("manifest", "check", "/nonexistent"), 2, "can't be opened")
        }
    }
}
