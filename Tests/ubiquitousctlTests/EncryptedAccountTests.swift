// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import UbiquitousStoreTesting

/// An encrypted account from the command line.
@Suite struct EncryptedAccountTests {
    @Test func `a person is asked whether to encrypt, shown the words, and asked for them where there is an account`()
        async throws
    {
        try await Terminal.with { terminal in
            let url = "folder://" + (try terminal.device.directory.makeDirectory("folder", mode: 0o700))
            let person = try terminal.atTerminal("account", "sign-in", url)
            try await person.shows("Encrypt it, so that only your devices can read it? [Y/n] ")
            person.type("\n")
            try await person.shows("12. ")
            try await person.shows("Press Enter once they are written down: ")
            person.type("\n")
            #expect(try await person.program.finish() == .code(0))
            let phrase = try await terminal.ctl("account", "phrase").output
            #expect(phrase.split(separator: " ").count == 12)
            #expect(phrase.split(separator: " ").allSatisfy { person.screen.contains(". \($0) ") })
            #expect(try await terminal.ctl("status").output.contains("Encrypted     yes"))
            #expect(try await terminal.ctl("status", "--json").output.contains(#""encrypted":true"#))
            #expect(try await terminal.ctl("account", "unlock", "--json").output == #"{"changed":false}"#)
            terminal.device.keepSecret(phrase)
            expect(try await terminal.ctl("account", "sign-out"), 0)

            expect(try await terminal.ctl("account", "sign-in", url), 3, "--phrase-file")
            let other = try terminal.atTerminal("account", "sign-in", url)
            try await other.shows("Its recovery phrase (12 words)")
            try await eventually("the terminal is silent") { !other.isEchoing }
            other.type(phrase + "\n")
            #expect(try await other.program.finish() == .code(0))
            #expect(!other.screen.contains(phrase))
            expect(try await terminal.ctl("account", "sign-out"), 0)

            try terminal.write("wrong", "abandon ability\n")
            expect(
                try await terminal.ctl("account", "sign-in", url, "--phrase-file", terminal.file("wrong")), 3,
                "has 12 words")
            try terminal.write("words", phrase + "\n")
            expect(try await terminal.ctl("account", "sign-in", url, "--phrase-file", terminal.file("words")), 0)
            #expect(try await terminal.ctl("status").output.contains("Encrypted     yes"))
        }
    }

    @Test func `a script gets an account as it says, and one in plain where it says nothing`() async throws {
        try await Terminal.with { terminal in
            let folders = try ["plain", "secret"].map {
                "folder://" + (try terminal.device.directory.makeDirectory($0, mode: 0o700))
            }
            expect(try await terminal.ctl("account", "sign-in", folders[0]), 0)
            #expect(try await terminal.ctl("status").output.contains("Encrypted     no"))
            expect(try await terminal.ctl("account", "phrase"), 3, "not encrypted")
            expect(try await terminal.ctl("account", "replace-key"), 3, "not encrypted")
            #expect(try await terminal.ctl("account", "encrypt", "--check").output == "would encrypt \(folders[0])")
            #expect(try await terminal.ctl("account", "encrypt", "--json").output == #"{"changed":true}"#)
            #expect(try await terminal.ctl("account", "encrypt", "--check").output == "nothing would change")
            let phrase = try await terminal.ctl("account", "phrase").output
            expect(try await terminal.ctl("account", "replace-key"), 0)
            let next = try await terminal.ctl("account", "phrase").output
            #expect(next.split(separator: " ").count == 12 && next != phrase)
            for words in [phrase, next] { terminal.device.keepSecret(words) }
            expect(try await terminal.ctl("account", "switch", folders[1], "--encrypt", "--bring-values"), 0)
            #expect(try await terminal.ctl("account", "phrase").output.split(separator: " ").count == 12)
            expect(
                try await terminal.ctl("account", "sign-in", folders[1], "--encrypt", "--phrase-file", "x"), 2,
                "--phrase-file is for an account that is there")
        }
    }
}
