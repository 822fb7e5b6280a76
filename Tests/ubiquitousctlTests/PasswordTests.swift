// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import UbiquitousStoreTesting

/// The prompt for a password at a terminal.
@Suite struct PasswordTests {
    private static func withFolder(_ body: (Terminal, String) async throws -> Void) async throws {
        try await Terminal.with { terminal in
            let folder = try terminal.device.directory.makeDirectory("folder", mode: 0o700)
            try await body(terminal, "folder://\(folder)")
        }
    }

    @Test func `the question for a password stays as it is, however long a person thinks`() async throws {
        try await Self.withFolder { terminal, url in
            let person = try terminal.atTerminal("account", "sign-in", url, "--login", "me", "--no-encrypt")
            try await person.shows("Password of me for \(url): ")
            // Another process, which waits for the service, shows when two seconds have passed.
            terminal.device.signal(SIGSTOP)
            let other = try terminal.atTerminal("list")
            try await other.shows("… 2 s")
            terminal.device.signal(SIGCONT)
            #expect(person.screen.hasSuffix("Password of me for \(url): "))
        }
    }

    @Test func `a password isn't shown after the program was stopped and continued`() async throws {
        try await Self.withFolder { terminal, url in
            let shell = try terminal.shell()
            try await shell.shows("$ ")
            shell.type("ubiquitousctl account sign-in \(url) --login me --no-encrypt\n")
            try await shell.shows("Password of me")
            try await eventually("the terminal is silent") { !shell.isEchoing }
            shell.type("\u{1A}")
            try await shell.shows("Stopped")
            try await eventually("the shell shows what is typed") { shell.isEchoing }
            shell.type("fg\n")
            try await eventually("the terminal is silent again") { !shell.isEchoing }
            shell.type("s3cret\n")
            try await eventually("the shell shows what is typed") { shell.isEchoing }
            shell.type("echo do''ne $?\n")
            try await shell.shows("done")
            #expect(!shell.screen.contains("s3cret"))
        }
    }
}
