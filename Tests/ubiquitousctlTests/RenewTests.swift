// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import ServerTesting
import Testing
import UbiquitousStoreTesting

/// Credentials that are checked, given again and replaced, with a server that has TLS and asks for a password.
@Suite(.timeLimit(.minutes(30))) struct RenewTests {
    private static let kind = [WebDAVServer.Kind.apache, .nginx].first { $0.program != nil }
    private static let isMissing: Comment = "no WebDAV server is installed; script/bootstrap --all installs them"

    /// Runs a test with a terminal, a server with a private authority, and the arguments that sign in there.
    private static func withServer(_ body: (Terminal, WebDAVServer, [String]) async throws -> Void) async throws {
        let server = try WebDAVServer(#require(kind), access: .basic, isSecure: true)
        try await Terminal.with { terminal in
            try Data(server.authority ?? []).write(to: URL(filePath: terminal.file("ca.pem")))
            try terminal.write("password", WebDAVServer.password)
            let words = [
                server.url + "/sync", "--login", WebDAVServer.user, "--password-file", terminal.file("password"),
                "--ca-file", terminal.file("ca.pem"),
            ]
            try await body(terminal, server, words)
        }
    }

    @Test(.enabled(if: kind != nil, isMissing))
    func `a check of signing in tries the password, and changes nothing`() async throws {
        try await Self.withServer { terminal, server, words in
            let check = ["account", "sign-in", "--check"] + words
            #expect(try await terminal.ctl2(check).output == "would sign in to \(words[0])")
            try terminal.write("password", "wrong")
            expect(try await terminal.ctl2(check), 3, "Nothing was changed")
            #expect(try await terminal.ctl("status").output.contains("signed-out"))
            // Where this device is signed in, its own credentials are tried.
            try terminal.write("password", WebDAVServer.password)
            expect(try await terminal.ctl2(["account", "sign-in"] + words), 0)
            let own = ["account", "sign-in", "--check", words[0]]
            #expect(try await terminal.ctl2(own).output == "nothing would change")
            try server.change(password: "another")
            expect(try await terminal.ctl2(own), 3, "doesn't accept this user and password")
        }
    }

    @Test(.enabled(if: kind != nil, isMissing))
    func `a person who gives no login is asked for it where the server wants one`() async throws {
        try await Self.withServer { terminal, server, words in
            let signIn = [
                "account", "sign-in", server.url + "/sync", "--no-encrypt", "--ca-file", terminal.file("ca.pem"),
            ]
            expect(try await terminal.ctl2(signIn), 3, "requires a user and a password", "--login NAME")
            let person = try terminal.atTerminal(arguments: signIn)
            try await person.shows("Your user name on the server")
            person.type("\(WebDAVServer.user)\n")
            try await person.shows("Password of \(WebDAVServer.user)")
            try await eventually("the terminal is silent") { !person.isEchoing }
            person.type("\(WebDAVServer.password)\n")
            #expect(try await person.program.finish() == .code(0), "\(person.screen)")
            #expect(try await terminal.ctl("status").output.contains(server.url))
        }
    }

    @Test(.enabled(if: kind != nil, isMissing))
    func `the same credentials again are no change`() async throws {
        try await Self.withServer { terminal, _, words in
            let signIn = ["account", "sign-in", "--json"] + words
            for (line, isChanged) in [
                (signIn, true), (signIn, false), (signIn + ["--device-name", "kitchen"], true),
                (signIn + ["--device-name", "kitchen"], false),
            ] {
                let result = try await terminal.ctl2(line)
                #expect(result.output == #"{"changed":\#(isChanged)}"#, "\(result)")
            }
            let check = try await terminal.ctl2(["account", "sign-in", "--check"] + words)
            #expect(check.output == "nothing would change")
        }
    }

    @Test(.enabled(if: kind != nil, isMissing))
    func `a new password is said in one step, and the login and the authority stay`() async throws {
        try await Self.withServer { terminal, server, words in
            expect(try await terminal.ctl2(["account", "renew"]), 3, "account sign-in URL")
            expect(try await terminal.ctl2(["account", "sign-in"] + words), 0)
            expect(try await terminal.ctl("account", "pause"), 0)
            try server.change(password: "another")
            let renew = ["account", "renew", "--json", "--password-file", terminal.file("password")]
            expect(try await terminal.ctl2(renew), 3)
            try terminal.write("password", "another")
            #expect(try await terminal.ctl2(renew).output == #"{"changed":true}"#)
            #expect(try await terminal.ctl2(renew).output == #"{"changed":false}"#)
            #expect(try await terminal.ctl("status").output.hasPrefix("State         paused"), "a pause stays, too")
            expect(try await terminal.ctl("account", "resume"), 0)
            expect(try await terminal.ctl("account", "sync"), 0)
        }
    }

    /// A server that was set up anew has another password, and nothing in it.
    @Test(.enabled(if: kind != nil, isMissing), arguments: [false, true])
    func `a new password is taken where the account is gone, so that it can be restored`(isPaused: Bool) async throws {
        try await Self.withServer { terminal, server, words in
            try server.makeFolder("notes")
            let line = ["account", "sign-in", server.url + "/notes"] + words.dropFirst()
            expect(try await terminal.ctl2(line), 0)
            expect(try await terminal.ctl("set", "theme", "dark"), 0)
            expect(try await terminal.ctl("account", "sync"), 0)
            let folder = server.root + "/notes"
            if isPaused {
                try FileManager.default.removeContents(ofDirectory: folder)
                expect(try await terminal.ctl("account", "sync"), 3, "account resolve")
            } else {
                try FileManager.default.removeItem(atPath: folder)
            }
            try server.change(password: "another")
            try terminal.write("password", "another")
            let renewed = try await terminal.ctl2(["account", "renew", "--password-file", terminal.file("password")])
            #expect(renewed.code == (isPaused ? 3 : 4) && renewed.error.contains("account resolve"), "\(renewed)")
            expect(try await terminal.ctl("account", "resolve", "local"), 0)
            expect(try await terminal.ctl("account", "sync"), 0)
        }
    }

    /// What docs/encryption.md advises after a device was lost: another password, and another key.
    @Test(.enabled(if: kind != nil, isMissing))
    func `a device takes the new password before it has the new key`() async throws {
        try await Self.withServer { terminal, server, words in
            let phrase = terminal.file("words")
            expect(try await terminal.ctl2(["account", "sign-in", "--encrypt"] + words), 0)
            try terminal.write("words", try await terminal.ctl("account", "phrase").output)
            let phone = try await Second.device(
                on: words[0], named: "phone", words[1], words[2], words[3], words[4], words[5], words[6],
                "--phrase-file", phrase)
            defer { phone.end() }
            for (password, isTyped) in [("another", false), ("a third", true)] {
                // The key first, or the password.
                if isTyped { _ = try await phone.done(["account", "replace-key"]) }
                if isTyped { expect(try await terminal.ctl("account", "sync"), 3, "account unlock") }
                try server.change(password: password)
                try terminal.write("password", password)
                _ = try await phone.done(["account", "renew", "--password-file", terminal.file("password")])
                if !isTyped { _ = try await phone.done(["account", "replace-key"]) }
                let next = try await phone.done(["account", "phrase"])
                try terminal.write("words", next)
                expect(try await terminal.ctl("account", "sync"), 3)
                if isTyped {
                    let person = try terminal.atTerminal("account", "renew")
                    try await person.shows("New password for ")
                    try await eventually("the terminal is silent") { !person.isEchoing }
                    person.type("\(password)\n")
                    try await person.shows("Its recovery phrase (12 words)")
                    try await eventually("the terminal is silent") { !person.isEchoing }
                    person.type("\(next)\n")
                    #expect(try await person.program.finish() == .code(0), "\(person.screen)")
                } else {
                    let renew = ["account", "renew", "--password-file", terminal.file("password")]
                    expect(try await terminal.ctl2(renew), 3, "The server accepts the credentials", "account unlock")
                    expect(try await terminal.ctl("account", "unlock", "--phrase-file", phrase), 0)
                }
                expect(try await terminal.ctl("account", "sync"), 0)
            }
        }
    }

    @Test(.enabled(if: kind != nil, isMissing))
    func `a person is asked whether to encrypt an account whose folder is to be made`() async throws {
        try await Self.withServer { terminal, server, words in
            let signIn = ["account", "sign-in", server.url + "/new"] + words.dropFirst()
            expect(try await terminal.ctl2(signIn + ["--no-create"]), 3, "There is no folder")
            let person = try terminal.atTerminal(arguments: signIn)
            try await person.shows("Encrypt it, so that only your devices can read it? [Y/n] ")
            person.type("n\n")
            #expect(try await person.program.finish() == .code(0), "\(person.screen)")
            #expect(try await terminal.ctl("status").output.contains("Encrypted     no"))
            let wrong = try terminal.atTerminal(
                arguments: ["account", "switch", server.url + "/not/there"] + words.dropFirst())
            try await wrong.shows("[Y/n] ")
            wrong.type("n\n")
            #expect(try await wrong.program.finish() == .code(4) && wrong.screen.contains("The path is wrong"))
        }
    }

    @Test(.enabled(if: kind != nil, isMissing))
    func `a check of resolving says that the account's folder is made again`() async throws {
        try await Self.withServer { terminal, server, words in
            expect(try await terminal.ctl2(["account", "sign-in"] + words), 0)
            expect(try await terminal.ctl("account", "sync"), 0)
            try FileManager.default.removeItem(atPath: server.root + "/sync")
            let check = try await terminal.ctl("account", "resolve", "local", "--check")
            #expect(check.output == "would make the account's folder again", "\(check)")
            #expect(!check.error.contains("nothing to resolve"), "\(check)")
            // Results are in English, and the address of an account that is gone isn't right.
            for words in [["doctor"], ["doctor", "--json"], ["status"]] {
                let result = try await terminal.ctl(arguments: words, variables: ["LC_ALL=de_DE.UTF-8"])
                #expect(result.output.contains("There is no folder") && !result.output.contains("Ordner"), "\(result)")
            }
            let doctor = try await terminal.ctl("doctor", server.url + "/sync")
            #expect(doctor.code == 3 && doctor.output.contains("WRONG  sign-in: There is no folder"), "\(doctor)")
            expect(try await terminal.ctl("account", "resolve", "remote", "--check"), 4, "There is no folder")
            expect(try await terminal.ctl("account", "resolve", "local"), 0)
        }
    }

    @Test(.enabled(if: kind != nil, isMissing))
    func `the doctor trusts the account's authority for the account's server`() async throws {
        try await Self.withServer { terminal, server, words in
            expect(try await terminal.ctl2(["account", "sign-in"] + words), 0)
            let doctor = ["doctor", "--login", WebDAVServer.user, "--password-file", terminal.file("password")]
            let well = try await terminal.ctl2(doctor + [server.url + "/other"])
            #expect(well.code == 0, "\(well)")
            expect(try await terminal.ctl("account", "sign-out"), 0)
            let strange = try await terminal.ctl2(doctor + [server.url + "/other"])
            #expect(strange.code == 3 && strange.output.contains("with --ca-file"), "\(strange)")
        }
    }
}
