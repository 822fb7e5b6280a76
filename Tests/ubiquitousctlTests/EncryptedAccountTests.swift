// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import UbiquitousStoreTesting

@testable import ControlCommands

/// An encrypted account from the command line.
@Suite struct EncryptedAccountTests {
    @Test func `whoever takes another encrypted account for right has decided, and enters its words next`()
        async throws
    {
        try await Terminal.with { terminal in
            let folder = try terminal.device.directory.makeDirectory("folder", mode: 0o700)
            let url = "folder://" + folder
            expect(try await terminal.ctl("account", "sign-in", url, "--encrypt"), 0)
            expect(try await terminal.ctl("synchronize", "--wait"), 0)
            try FileManager.default.removeContents(ofDirectory: folder)
            let phone = try await Second.device(on: url, named: "phone", "--encrypt")
            defer { phone.end() }
            expect(try await terminal.ctl("account", "sync"), 3, "account resolve")
            let resolved = try await terminal.ctl("account", "resolve", "remote", "--json")
            #expect(resolved.code == 0 && resolved.output == #"{"changed":true}"#, "\(resolved)")
            #expect(resolved.error.contains("ubiquitousctl account unlock"), "\(resolved)")
            let phrase = try await phone.done(["account", "phrase"])
            terminal.device.keepSecret(phrase)
            try terminal.write("words", phrase)
            expect(try await terminal.ctl("account", "unlock", "--phrase-file", terminal.file("words")), 0)
            expect(try await terminal.ctl("account", "sync"), 0)
        }
    }

    @Test func `an account whose file is damaged comes back by signing in, though nobody has seen its words`()
        async throws
    {
        try await Terminal.with { terminal in
            let folder = try terminal.device.directory.makeDirectory("folder", mode: 0o700)
            let other = "folder://" + (try terminal.device.directory.makeDirectory("other", mode: 0o700))
            let empty = "folder://" + (try terminal.device.directory.makeDirectory("empty", mode: 0o700))
            let phone = try await Second.device(on: other, named: "phone", "--encrypt")
            defer { phone.end() }
            try terminal.write("others", try await phone.done(["account", "phrase"]))
            let url = "folder://" + folder
            expect(try await terminal.ctl("account", "sign-in", url, "--encrypt"), 0)
            expect(try await terminal.ctl("set", "theme", "dark"), 0)
            expect(try await terminal.ctl("synchronize", "--wait"), 0)
            terminal.device.kill()
            let file = "\(terminal.device.stateDirectory)/u\(geteuid())/account.plist"
            try Data("junk".utf8).write(to: URL(filePath: file))
            try await terminal.device.start()

            let status = try await terminal.ctl("status").output
            #expect(status.contains("Encrypted     yes, but nobody has confirmed the recovery phrase"), "\(status)")
            #expect(try await terminal.ctl("account", "sign-in", url, "--check").output == "would sign in to \(url)")
            // Elsewhere, the only key would be lost.
            let words = ["--phrase-file", terminal.file("others")]
            for elsewhere in [[other] + words, [empty], [empty, "--encrypt"], [empty, "--no-encrypt"]] {
                for verb in ["sign-in", "switch"] {
                    let refused = try await terminal.ctl2(["account", verb] + elsewhere)
                    expect(refused, 3, "not the account that this device is signed in to")
                }
            }
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            let phrase = try await terminal.ctl("account", "phrase")
            #expect(phrase.output.split(separator: " ").count == 12, "\(phrase)")
            terminal.device.keepSecret(phrase.output)
            #expect(try await terminal.ctl("status", "--json").output.contains(#""encrypted":true"#))
            #expect(try await terminal.ctl("get", "theme").output == "dark")
            expect(try await terminal.ctl("account", "sync"), 0)
        }
    }

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
            other.type("abandon ability\n")
            try await other.shows("2 of 12 words")
            other.type("\n")
            try await other.shows("has 12 words")
            try await eventually("the terminal is silent") { !other.isEchoing }
            // One in sixteen orders of a phrase's words has the right checksum; these words never do.
            other.type(Array(repeating: "abandon", count: 12).joined(separator: " ") + "\n")
            try await other.shows("The recovery phrase is wrong")
            try await eventually("the terminal is silent") { !other.isEchoing }
            // As from the screen that shows them.
            let lines = person.screen.matches(of: /(?m)^ +\d+\. .*$/).map { String($0.output) }
            #expect(lines.count == 3)
            let before = other.screen
            other.type(lines.joined(separator: "\n"))
            other.type("\n")
            #expect(try await other.program.finish() == .code(0))
            // Words such as "add" are in the program's own sentences.
            let sentences = Catalogue.german.sentences.keys.joined(separator: " ") + before
            let own = Set(sentences.split { !$0.isLetter })
            let secret = phrase.split(separator: " ").filter { !own.contains($0) }
            #expect(!secret.contains { other.screen.contains(" \($0) ") }, "\(other.screen)")
            expect(try await terminal.ctl("account", "sign-out"), 0)

            try terminal.write("wrong", "abandon ability\n")
            expect(
                try await terminal.ctl("account", "sign-in", url, "--phrase-file", terminal.file("wrong")), 3,
                "has 12 words")
            try terminal.write("empty", "\n 1. \n")
            expect(
                try await terminal.ctl("account", "sign-in", url, "--phrase-file", terminal.file("empty")), 2,
                "There is no recovery phrase in the file")
            let doctor = try await terminal.ctl("doctor", url, "--phrase-file", terminal.file("wrong"))
            #expect(doctor.code == 3 && doctor.output.contains("WRONG  key: A recovery phrase has 12"), "\(doctor)")
            try terminal.write("words", "\u{FEFF}1. " + phrase.replacing(" ", with: ",\r\n2. ") + "\n")
            expect(try await terminal.ctl("account", "sign-in", url, "--phrase-file", terminal.file("words")), 0)
            #expect(try await terminal.ctl("status").output.contains("Encrypted     yes"))

            // Nothing is locked: the words are tried all the same, and signing in again changes nothing.
            let words = ["--phrase-file", terminal.file("words")]
            try terminal.write("others", String(repeating: "zoo ", count: 11) + "wrong\n")
            for arguments in [["account", "unlock"], ["account", "sign-in", url]] {
                let result = try await terminal.ctl(arguments: arguments + words + ["--json"])
                #expect(result.output == #"{"changed":false}"#, "\(arguments): \(result)")
            }
            expect(try await terminal.ctl("account", "unlock", "--phrase-file", terminal.file("none")), 2)
            expect(
                try await terminal.ctl("account", "unlock", "--phrase-file", terminal.file("others")), 3,
                "recovery phrase")
            let spoken = try await terminal.ctl("account", "unlock", "zoo", "wrong")
            #expect(spoken.code == 2 && !spoken.error.contains("zoo"), "\(spoken)")
            #expect(spoken.error.contains("no arguments"))
        }
    }

    @Test func `a script gets an account as it says, and an unencrypted one where it says nothing`() async throws {
        try await Terminal.with { terminal in
            let folders = try ["plain", "secret", "third"].map {
                "folder://" + (try terminal.device.directory.makeDirectory($0, mode: 0o700))
            }
            expect(try await terminal.ctl("account", "sign-in", folders[0]), 0)
            #expect(try await terminal.ctl("status").output.contains("Encrypted     no"))
            expect(
                try await terminal.ctl("account", "sign-in", folders[0], "--encrypt"), 3,
                "is not encrypted", "account encrypt")
            expect(try await terminal.ctl("account", "phrase"), 3, "not encrypted")
            expect(try await terminal.ctl("account", "replace-key"), 3, "not encrypted")
            #expect(try await terminal.ctl("account", "encrypt", "--check").output == "would encrypt \(folders[0])")
            let encrypted = try await terminal.ctl("account", "encrypt", "--json")
            #expect(encrypted.output == #"{"changed":true}"#)
            // A script is told how to get the words. A check makes none, so it mentions none.
            #expect(encrypted.error.contains("\"ubiquitousctl account phrase\" prints it"), "\(encrypted)")
            #expect(try await terminal.ctl("account", "replace-key", "--check").remarks == "")
            #expect(try await terminal.ctl("account", "encrypt", "--check").output == "nothing would change")
            let phrase = try await terminal.ctl("account", "phrase").output
            expect(try await terminal.ctl("account", "replace-key"), 0, "prints it")
            let next = try await terminal.ctl("account", "phrase").output
            #expect(next.split(separator: " ").count == 12 && next != phrase)
            for words in [phrase, next] { terminal.device.keepSecret(words) }
            let german = ["LC_ALL=de_DE.UTF-8"]
            expect(
                try await terminal.ctl(
                    "account", "switch", folders[1], "--encrypt", "--bring-values", variables: german), 0,
                "Das Konto hat neue Wiederherstellungswörter")
            #expect(try await terminal.ctl("account", "phrase").output.split(separator: " ").count == 12)
            // Who leaves an encrypted account says what a new one is to be. An account that is there is joined as it is.
            for words in [[], ["--check"], ["--json"]] {
                let switching = try await terminal.ctl(
                    arguments: ["account", "switch", folders[2], "--bring-values"] + words)
                expect(switching, 3, "is encrypted", "--encrypt or --no-encrypt")
            }
            expect(try await terminal.ctl("account", "switch", folders[0]), 3, "--phrase-file")
            expect(
                try await terminal.ctl("account", "sign-in", folders[1], "--encrypt", "--no-encrypt"), 2, "--no-encrypt"
            )
            expect(
                try await terminal.ctl("account", "sign-in", folders[1], "--encrypt", "--phrase-file", "x"), 2,
                "--phrase-file is for an existing account")
        }
    }

    @Test func `a person is asked before joining what anybody can read, and before the only key is lost`() async throws
    {
        try await Terminal.with { terminal in
            let urls = try ["plain", "secret"].map {
                "folder://" + (try terminal.device.directory.makeDirectory($0, mode: 0o700))
            }
            expect(try await terminal.ctl("account", "sign-in", urls[0]), 0)
            expect(try await terminal.ctl("account", "sign-out"), 0)
            for (answer, code) in [("\n", 3), ("y\n", 0)] as [(String, Int32)] {
                let person = try terminal.atTerminal("account", "sign-in", urls[0])
                try await person.shows("anyone with access to the remote can read it. Sign in anyway? [y/N] ")
                person.type(answer)
                #expect(try await person.program.finish() == .code(code))
                #expect(try await terminal.ctl("status").output.contains("signed-out") == (code != 0))
            }
            expect(try await terminal.ctl("account", "switch", urls[1], "--encrypt"), 0)
            expect(try await terminal.ctl("account", "sign-out"), 3, "Use --forget-key to sign out")
            for words in [[], ["--check"], ["--json"]] {
                let switching = try await terminal.ctl(
                    arguments: ["account", "switch", urls[0], "--no-encrypt"] + words)
                expect(switching, 3, "Nobody has confirmed", "--forget-key")
            }
            let person = try terminal.atTerminal("account", "switch", urls[0], "--no-encrypt")
            try await person.shows("Switch anyway? [y/N] ")
            person.type("\n")
            #expect(try await person.program.finish() == .code(3))
            #expect(try await terminal.ctl("status").output.contains(urls[1]))
            for (answer, code) in [("\n", 3), ("y\n", 0)] as [(String, Int32)] {
                let person = try terminal.atTerminal("account", "sign-out")
                try await person.shows("Sign out anyway? [y/N] ")
                person.type(answer)
                #expect(try await person.program.finish() == .code(code))
            }
            expect(try await terminal.ctl("account", "sign-in", urls[1]), 3, "--phrase-file")
            try terminal.write("words", String(repeating: "abandon ", count: 11) + "about")
            let nowhere = "folder://" + (try terminal.device.directory.makeDirectory("nothing", mode: 0o700))
            expect(
                try await terminal.ctl("account", "sign-in", nowhere, "--phrase-file", terminal.file("words")), 3,
                "There is no account here yet.", "--encrypt for a new one")
            // After the words were shown, nothing is asked.
            try FileManager.default.removeItem(atPath: urls[1].replacing("folder://", with: "") + "/a")
            expect(try await terminal.ctl("account", "sign-in", urls[1], "--encrypt"), 0)
            terminal.device.keepSecret(try await terminal.ctl("account", "phrase").output)
            expect(try await terminal.ctl("account", "sign-out"), 0)
        }
    }

    @Test(.enabled(if: geteuid() == 0, "it needs root, to have a disk that is full"))
    func `a move that has begun is in the status until it is complete`() async throws {
        try await Terminal.with { terminal in
            let folder = try terminal.device.directory.mountSmallDisk("folder", bytes: 512 << 10)
            expect(try await terminal.ctl("account", "sign-in", "folder://\(folder)"), 0)
            expect(try await terminal.ctl("set", "theme", "dark"), 0)
            expect(try await terminal.ctl("account", "sync"), 0)
            expect(try await terminal.line("cat /dev/zero >\(folder)/filler"), 1)
            expect(try await terminal.ctl("account", "encrypt"), 4, "has begun")
            #expect(try await terminal.ctl("status").output.contains("Moving        to a new key"))
            #expect(try await terminal.ctl("status", "--json").output.contains(#""move":"encrypt""#))
            try FileManager.default.removeItem(atPath: folder + "/filler")
            expect(try await terminal.ctl("account", "encrypt"), 0)
            #expect(!(try await terminal.ctl("status").output.contains("Moving")))
            #expect(try await terminal.ctl("status", "--json").output.contains(#""move":"""#))
        }
    }

    @Test func `words that nobody has confirmed are told of until somebody has`() async throws {
        try await Terminal.with { terminal in
            let url = "folder://" + (try terminal.device.directory.makeDirectory("folder", mode: 0o700))
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            expect(try await terminal.ctl("set", "theme", "dark"), 0)
            expect(try await terminal.ctl("account", "sync"), 0)
            #expect(try await terminal.ctl("status", "--json").output.contains(#""phrase-unconfirmed":false"#))
            expect(try await terminal.ctl("account", "encrypt"), 0)
            let words = "\"ubiquitousctl account phrase\" shows it"
            #expect(try await terminal.ctl("status").output.contains("yes, but nobody has confirmed"))
            #expect(try await terminal.ctl("status", "--json").output.contains(#""phrase-unconfirmed":true"#))
            for place in [[], [url]] {
                let doctor = try await terminal.ctl(arguments: ["doctor"] + place)
                #expect(doctor.code == 3 && doctor.output.contains("WRONG  leftovers"), "\(doctor)")
                #expect(doctor.output.contains(words), "\(doctor)")
            }
            expect(try await terminal.ctl("account", "sign-out", "--check"), 3, "Nobody has confirmed", "--forget-key")
            let forgetting = try await terminal.ctl("account", "sign-out", "--check", "--forget-key")
            #expect(forgetting.output == "would sign out of \(url)")
            // Words that could not be written were not seen.
            expect(try await terminal.line("ubiquitousctl account phrase >/dev/full"), 3, "can't be written to")
            #expect(try await terminal.ctl("status").output.contains("yes, but nobody has confirmed"))

            terminal.device.keepSecret(try await terminal.ctl("account", "phrase").output)
            #expect(try await terminal.ctl("status").output.contains("Encrypted     yes\n"))
            #expect(try await terminal.ctl("doctor", url).code == 0)
            // Now only what this device has still to remove is in the way.
            expect(try await terminal.ctl("account", "sign-out", "--check"), 3, "from before it had this key")
        }
    }

    @Test func `where the account is gone, the doctor finds nothing wrong with its key`() async throws {
        try await Terminal.with { terminal in
            let folder = try terminal.device.directory.makeDirectory("folder", mode: 0o700)
            let url = "folder://" + folder
            expect(try await terminal.ctl("account", "sign-in", url, "--encrypt"), 0)
            expect(try await terminal.ctl("synchronize", "--wait"), 0)
            try FileManager.default.removeContents(ofDirectory: folder)
            let doctor = try await terminal.ctl("doctor", url)
            #expect(doctor.code == 3 && doctor.output.contains("WRONG  sign-in: "), "\(doctor)")
            #expect(!doctor.output.contains("WRONG  key: "), "\(doctor)")
        }
    }

    @Test func `words that would do nothing are refused where another account is, and name the way out`() async throws {
        try await Terminal.with { terminal in
            let folder = try terminal.device.directory.makeDirectory("folder", mode: 0o700)
            let url = "folder://" + folder
            expect(try await terminal.ctl("account", "sign-in", url, "--encrypt"), 0)
            let phrase = try await terminal.ctl("account", "phrase").output
            terminal.device.keepSecret(phrase)
            try terminal.write("words", phrase)
            try FileManager.default.removeContents(ofDirectory: folder)
            let phone = try await Second.device(on: url, named: "phone", "--encrypt")
            defer { phone.end() }
            for command in [["account", "unlock"], ["account", "sign-in", url]] {
                expect(
                    try await terminal.ctl(arguments: command + ["--phrase-file", terminal.file("words")]), 3,
                    "account resolve local")
            }
            let doctor = try await terminal.ctl("doctor", url)
            #expect(doctor.code == 3 && doctor.output.contains("key: An account under another key"), "\(doctor)")
            #expect(doctor.output.contains("\"ubiquitousctl account resolve\" decides"), "\(doctor)")
        }
    }

    @Test func `after another device has replaced the key, its words are taken, and nothing else does nothing`()
        async throws
    {
        try await Terminal.with { terminal in
            let url = "folder://" + (try terminal.device.directory.makeDirectory("folder", mode: 0o700))
            let words = terminal.file("words")
            expect(try await terminal.ctl("account", "sign-in", url, "--encrypt"), 0)
            try terminal.write("words", try await terminal.ctl("account", "phrase").output)
            let phone = try await Second.device(on: url, named: "phone", "--phrase-file", words)
            defer { phone.end() }
            for command in [["account", "unlock"], ["account", "sign-in", url]] {
                _ = try await phone.done(["account", "replace-key"])
                // This device's key can't be kept, but a third one can take the place of both.
                for side in [["remote"], ["local"], ["local", "--check"]] {
                    let refused = try await terminal.ctl(arguments: ["account", "resolve"] + side)
                    expect(refused, 3, "has given it a new key", "account unlock", "account replace-key")
                    #expect(!refused.error.contains("resolve local"), "\(refused)")
                }
                expect(try await terminal.ctl("account", "sign-out", "--clear-values"), 3, "may lack", "account unlock")
                try terminal.write("words", try await phone.done(["account", "phrase"]))
                let unlocked = try await terminal.ctl(arguments: command + ["--phrase-file", words, "--json"])
                #expect(unlocked.code == 0 && unlocked.output == #"{"changed":true}"#, "\(unlocked)")
                expect(try await terminal.ctl("account", "sync"), 0)
            }
            // Other keys may be in the way before they stop a device.
            let rejected = try await terminal.ctl(
                "account", "unlock", "--phrase-file", words, "--reject-others", "--json")
            #expect(rejected.code == 0 && rejected.output == #"{"changed":true}"#, "\(rejected)")
            expect(try await terminal.ctl("account", "sync"), 0)
        }
    }

    @Test func `a device that joined after a key was replaced doesn't go back to the former key`() async throws {
        try await Terminal.with { terminal in
            let folder = try terminal.device.directory.makeDirectory("folder", mode: 0o700)
            let (url, words, former) = ("folder://" + folder, terminal.file("words"), terminal.file("former"))
            expect(try await terminal.ctl("account", "sign-in", url, "--encrypt"), 0)
            try terminal.write("former", try await terminal.ctl("account", "phrase").output)
            try FileManager.default.copyItem(atPath: folder, toPath: terminal.file("stolen"))
            expect(try await terminal.ctl("account", "replace-key"), 0)
            try terminal.write("words", try await terminal.ctl("account", "phrase").output)
            let phone = try await Second.device(on: url, named: "phone", "--phrase-file", words)
            defer { phone.end() }
            try FileManager.default.removeContents(ofDirectory: folder)
            for name in try FileManager.default.contentsOfDirectory(atPath: terminal.file("stolen")) {
                try FileManager.default.copyItem(
                    atPath: "\(terminal.file("stolen"))/\(name)", toPath: "\(folder)/\(name)")
            }
            expect(try await terminal.ctl("account", "sync"), 3, "under a former key", "resolve local\" does that.")
            #expect(try await terminal.ctl("status").output.contains("under a former key"))
            let refused = try await terminal.ctl("account", "resolve", "remote")
            expect(refused, 3, "under a former key", "\"ubiquitousctl account resolve local\" does that.")
            #expect(!refused.error.contains("Say which side"), "\(refused)")
            #expect(try await terminal.ctl("status").output.contains("under a former key"))
            for line in [
                ["sync"], ["resolve", "remote"], ["unlock", "--phrase-file", former],
                ["sign-in", url, "--phrase-file", former],
            ] { expect(try await phone.ctl(["account"] + line), 3) }
            _ = try await phone.done(["account", "resolve", "local"])
            _ = try await phone.done(["account", "sync"])
            #expect(try await terminal.ctl("account", "sync").code == 0)
        }
    }

    @Test func `an unencrypted account doesn't take the place of an encrypted one, and what works is said`()
        async throws
    {
        try await Terminal.with { terminal in
            let folder = try terminal.device.directory.makeDirectory("folder", mode: 0o700)
            let url = "folder://" + folder
            expect(try await terminal.ctl("account", "sign-in", url, "--encrypt"), 0)
            expect(try await terminal.ctl("set", "theme", "dark"), 0)
            expect(try await terminal.ctl("synchronize", "--wait"), 0)
            try FileManager.default.removeContents(ofDirectory: folder)
            let phone = try await Second.device(on: url, named: "phone", "--no-encrypt")
            defer { phone.end() }
            expect(
                try await terminal.ctl("account", "sync"), 3, "here now is not encrypted", "resolve local\" restores")
            for line in [["resolve", "remote"], ["sign-in", url, "--device-name", "desk"]] {
                let refused = try await terminal.ctl(arguments: ["account"] + line)
                expect(refused, 3, "here now is not encrypted", "resolve local\" restores", "account phrase")
                #expect(!refused.error.contains("Say which side"), "\(refused)")
                if line[0] == "resolve" {
                    #expect(try await terminal.ctl("status").output.contains("here now is not encrypted"))
                }
            }
            #expect(try await terminal.ctl("get", "theme").output == "dark")
            expect(try await terminal.ctl("account", "resolve", "local"), 0)
            expect(try await terminal.ctl("account", "sync"), 0)
            #expect(try await phone.ctl(["account", "sync"]).error.contains("account unlock"))
        }
    }

    /// The move removes the former form, and with it what only that had.
    @Test func `a store that was removed from the device alone is in the account after a move to a key`() async throws {
        try await Terminal.with { terminal in
            let url = "folder://" + (try terminal.device.directory.makeDirectory("folder", mode: 0o700))
            expect(try await terminal.ctl("account", "sign-in", url, "--no-encrypt"), 0)
            expect(try await terminal.ctl("set", "theme", "dark"), 0)
            for change in ["encrypt", "replace-key"] {
                expect(try await terminal.ctl("account", "sync"), 0)
                expect(try await terminal.ctl("stores", "remove", notes), 0)
                expect(try await terminal.ctl("account", change), 0)
                terminal.device.keepSecret(try await terminal.ctl("account", "phrase").output)
                expect(try await terminal.ctl("account", "sync"), 0)
                #expect(try await terminal.ctl("get", "theme").output == "dark")
            }
        }
    }

    @Test func `a key's file that is damaged while the service runs is repaired with the words`() async throws {
        try await Terminal.with { terminal in
            let url = "folder://" + (try terminal.device.directory.makeDirectory("folder", mode: 0o700))
            expect(try await terminal.ctl("account", "sign-in", url, "--encrypt"), 0)
            let phrase = try await terminal.ctl("account", "phrase").output
            terminal.device.keepSecret(phrase)
            try terminal.write("words", phrase)
            let key = try #require(terminal.device.keyFiles.first)
            try Data("no key".utf8).write(to: URL(filePath: key))
            #expect(try await terminal.ctl("account", "phrase").code != 0)
            let unlocked = try await terminal.ctl(
                "account", "unlock", "--phrase-file", terminal.file("words"), "--json")
            #expect(unlocked.code == 0 && unlocked.output == #"{"changed":true}"#, "\(unlocked)")
            #expect(try await terminal.ctl("account", "phrase").output == phrase)
        }
    }

    @Test func `the doctor tries words, and a device is forgotten with its key`() async throws {
        try await Terminal.with { terminal in
            let url = "folder://" + (try terminal.device.directory.makeDirectory("folder", mode: 0o700))
            expect(try await terminal.ctl("doctor", "--phrase-file", "x"), 2, "name its URL")
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            expect(try await terminal.ctl("account", "forget", "laptop", "--replace-key"), 3, "not encrypted")
            expect(try await terminal.ctl("account", "encrypt"), 0)
            let phrase = try await terminal.ctl("account", "phrase").output
            terminal.device.keepSecret(phrase)
            let own = try await terminal.ctl("doctor", url)
            #expect(own.exit == .code(0) && own.output.contains("key: It opens the account and what \"laptop\""))
            #expect(own.output.contains("An encrypted account is here, since 20"))
            expect(try await terminal.ctl("account", "forget", "nobody", "--replace-key"), 1)
            #expect(try await terminal.ctl("account", "phrase").output == phrase)
            // This device has still to remove what is there unencrypted.
            for arguments in [["sign-out", "--check"], ["sign-out"]] {
                expect(
                    try await terminal.ctl(arguments: ["account"] + arguments), 3, "from before it had this key",
                    "--forget-key")
            }
            #expect(try await terminal.ctl("account", "sign-out", "--check", "--forget-key").code == 0)
            expect(try await terminal.ctl("account", "sign-out", "--forget-key"), 0)
            for (words, code, text) in [
                (phrase, 0, "key: It opens the account"),
                ("abandon amount liar amount expire adjust cage candy arch gather drum buyer", 3, "is not the one of"),
            ] as [(String, Int32, String)] {
                try terminal.write("words", words + "\n")
                let result = try await terminal.ctl("doctor", url, "--phrase-file", terminal.file("words"))
                #expect(result.exit == .code(code) && result.output.contains(text), "\(result)")
            }
            try terminal.write("words", phrase + "\n")
            expect(
                try await terminal.ctl(
                    "account", "sign-in", url, "--phrase-file", terminal.file("words"), "--reject-others"), 0)
            #expect(terminal.device.leakedSecrets == [])
        }
    }
}
