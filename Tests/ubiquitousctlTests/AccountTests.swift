// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import ServerTesting
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
            for url in [url, url + "/", url.replacing("///", with: "////").replacing("folder:", with: "FOLDER:")] {
                #expect(try await terminal.ctl("account", "sign-in", url, "--json").output == #"{"changed":false}"#)
            }
            expect(try await terminal.ctl("account", "sign-in", url + "2"), 3, "account switch")
            expect(try await terminal.ctl("synchronize", "--wait"), 0)
            #expect(try await terminal.ctl("account", "sign-out", "--check").output == "would sign out of \(url)")
            expect(try await terminal.ctl("account", "sign-out"), 0)
            #expect(try await terminal.ctl("account", "sign-out", "--check").output == "nothing would change")
            expect(try await terminal.ctl("account", "rename", "--check", "kitchen"), 3, "isn't signed in")
        }
    }

    @Test func `an account whose file is damaged is of an unknown kind until the user signs in again`() async throws {
        try await Self.withFolder { terminal, url in
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            expect(try await terminal.ctl("set", "theme", "dark"), 0)
            expect(try await terminal.ctl("synchronize", "--wait"), 0)
            terminal.device.kill()
            let file = "\(terminal.device.stateDirectory)/u\(geteuid())/account.plist"
            #expect(truncate(file, 0) == 0)
            try await terminal.device.start()
            #expect(try await terminal.ctl("status").output.contains("Encrypted     unknown"))
            #expect(try await !terminal.ctl("status", "--json").output.contains("\"encrypted\""))
            expect(try await terminal.ctl("account", "phrase"), 3, "Sign in again at the same address")
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            #expect(try await terminal.ctl("status", "--json").output.contains(#""encrypted":false"#))
            #expect(try await terminal.ctl("get", "theme").output == "dark")
            expect(try await terminal.ctl("account", "sync"), 0)
        }
    }

    @Test func `a check of resolving says what resolving would do`() async throws {
        try await Self.withFolder { terminal, url in
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            expect(try await terminal.ctl("synchronize", "--wait"), 0)
            #expect(try await terminal.ctl("account", "resolve", "local", "--check").output == "nothing would change")
            let folder = URL(filePath: String(url.dropFirst("folder://".count)))
            let markers = try FileManager.default.contentsOfDirectory(
                at: folder.appending(path: "a"), includingPropertiesForKeys: nil)
            for marker in markers { try Data("junk".utf8).write(to: marker) }
            let check = try await terminal.ctl("account", "resolve", "local", "--check")
            #expect(check.output == "would write the account's marker again", "\(check)")
            #expect(!check.error.contains("nothing to resolve"), "\(check)")
            expect(try await terminal.ctl("account", "resolve", "local"), 0)
            #expect(try await terminal.ctl("account", "resolve", "local", "--check").output == "nothing would change")
        }
    }

    @Test func `a check of signing in is refused where signing in is`() async throws {
        try await Self.withFolder { terminal, url in
            let sealed = "folder://" + (try terminal.device.directory.makeDirectory("sealed", mode: 0o700))
            /// Checks that both are refused with the same words.
            func bothRefused(_ arguments: [String], _ words: String) async throws {
                for more in [["--check"], []] {
                    let result = try await terminal.ctl2(["account", "sign-in"] + arguments + more)
                    #expect(result.code == 3 && result.error.contains(words), "\(arguments + more) \(result)")
                }
            }
            try await bothRefused([url, "--no-create"], "no account")
            try await bothRefused([url, "--device-name", ""], "A device's name has")
            try await terminal.store().set("theme", .string("dark"))
            for address in [[sealed, "--encrypt"], [url]] {
                expect(try await terminal.ctl2(["account", "sign-in"] + address), 0)
                expect(try await terminal.ctl("synchronize", "--wait"), 0)
                expect(try await terminal.ctl("account", "sign-out", "--forget-key"), 0)
            }
            try await bothRefused([url, "--encrypt"], "is not encrypted")
            try await bothRefused([url, "--bring-values"], "Values can be brought only into a new account")
            try await bothRefused([sealed], "The account is encrypted")
            let fresh = "folder://" + (try terminal.device.directory.makeDirectory("fresh", mode: 0o700))
            let state = "\(terminal.device.stateDirectory)/u\(geteuid())"
            let files = try FileManager.default.contentsOfDirectory(atPath: state)
            for more in [["--encrypt"], []] {
                let line = ["account", "sign-in", fresh, "--check"] + more
                #expect(try await terminal.ctl2(line).output == "would sign in to \(fresh)")
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: String(fresh.dropFirst(9))) == [])
            #expect(try FileManager.default.contentsOfDirectory(atPath: state).sorted() == files.sorted())
        }
    }

    @Test func `an address at which no account can be is an error of usage, tried or not`() async throws {
        try await Terminal.with { terminal in
            for address in ["webdavs:localhost", "webdavs://a/b%zz", "etcds://", "dropbox://x"] {
                for more in [[], ["--check"]] {
                    expect(try await terminal.ctl2(["account", "sign-in", address] + more), 2, "ubiquitousctl: ")
                }
            }
            try terminal.write("none.pem", "root:x:0:0\n")
            let words = ["account", "sign-in", "webdavs://localhost/x", "--ca-file", terminal.file("none.pem")]
            expect(try await terminal.ctl2(words), 2, "has no certificate in PEM", "openssl x509")
        }
    }

    @Test func `the values of the account from before go along into a new one if the user wants it`() async throws {
        try await Self.withFolder { terminal, url in
            let other = "folder://" + (try terminal.device.directory.makeDirectory("other", mode: 0o700))
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            let again = ["account", "switch", url, "--bring-values", "--device-name", "desk"]
            expect(try await terminal.ctl(arguments: again), 0, "--bring-values has brought nothing")
            try await terminal.store().set("theme", .string("dark"))
            #expect(!(try await terminal.ctl("account", "sign-in", other, "--check").error.contains("hidden")))
            expect(try await terminal.ctl("synchronize", "--wait"), 0)
            expect(try await terminal.ctl("account", "sign-out"), 0)
            let check = try await terminal.ctl("account", "sign-in", other, "--check")
            #expect(check.code == 0 && check.error.contains("they are hidden; --bring-values"))
            let last = "folder://" + (try terminal.device.directory.makeDirectory("last", mode: 0o700))
            for (address, answer, values) in [(other, "n", ""), (last, "", "theme = dark")] {
                let person = try terminal.atTerminal("account", "sign-in", address)
                try await person.shows("Encrypt it, so that only your devices can read it? [Y/n] ")
                person.type("n\n")
                try await person.shows("Copy them into the new one? [Y/n] ")
                person.type("\(answer)\n")
                #expect(try await person.program.finish() == .code(0))
                #expect(try await terminal.ctl("list").output == values)
                expect(try await terminal.ctl("account", "sign-out"), 0)
                expect(try await terminal.ctl("account", "sign-in", url), 0)
                expect(try await terminal.ctl("account", "sign-out"), 0)
            }
        }
    }

    @Test func `values of a store that is excluded from sync are not removed unasked`() async throws {
        try await Self.withFolder { terminal, url in
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            expect(try await terminal.ctl("account", "sync"), 0)
            expect(try await terminal.ctl("stores", "sync", notes, "off"), 0)
            expect(try await terminal.ctl("set", "theme", "dark"), 0)
            #expect(try await terminal.ctl("status").output.contains("1 change in stores that are excluded"))
            #expect(try await terminal.ctl("stores", "sync").output == notes)
            let signOut = ["account", "sign-out", "--clear-values"]
            for line in [signOut, signOut + ["--check"], ["stores", "remove", notes]] {
                let result = try await terminal.ctl2(line)
                #expect(
                    result.code == 3 && result.error.contains("excluded from sync"), "\(line) \(result)")
                #expect(!result.error.contains("1 changes"), "\(result)")
            }
            #expect(try await terminal.ctl("get", "theme").output == "dark")
            // In an account that this device has left, "stores sync" would upload nothing.
            try FileManager.default.createDirectory(
                atPath: String(url.dropFirst("folder://".count)) + "2", withIntermediateDirectories: false)
            expect(try await terminal.ctl("account", "switch", url + "2"), 0)
            expect(try await terminal.ctl("stores", "sync", notes, "on"), 0)
            expect(try await terminal.ctl2(["account", "sync"]), 0)
            expect(try await terminal.ctl2(["stores", "remove", notes]), 3, "An account that this device has left")
            expect(try await terminal.ctl("account", "switch", url), 0)
            expect(try await terminal.ctl("stores", "sync", notes, "off"), 0)
            expect(try await terminal.ctl2(signOut + ["--discard-changes"]), 0)
            #expect(try await terminal.ctl("list").output == "")
        }
    }

    @Test func `a check of signing in ends as signing in does, whatever a server answers`() async throws {
        try await Terminal.with { terminal in
            for (status, code) in [(200, 4), (404, 4), (401, 3), (403, 3), (405, 3), (500, 4)] {
                let server = try ScriptedServer { _ in ServerAnswer(status, [:], "<html>Sorry</html>") }
                for more in [["--check"], []] {
                    let line = ["account", "sign-in", "webdav://127.0.0.1:\(server.port)/a/b"] + more
                    let result = try await terminal.ctl2(line)
                    #expect(result.code == code, "\(status) \(more) \(result)")
                }
            }
        }
    }

    @Test func `values whose folder is missing are not removed unasked`() async throws {
        try await Self.withFolder { terminal, url in
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            expect(try await terminal.ctl("set", "theme", "dark"), 0)
            expect(try await terminal.ctl("account", "sync"), 0)
            let folder = String(url.dropFirst("folder://".count))
            try FileManager.default.moveItem(atPath: folder, toPath: folder + ".away")
            let signOut = ["account", "sign-out", "--clear-values"]
            for isFile in [false, true] {
                if isFile { try Data().write(to: URL(filePath: folder)) }
                #expect(try await terminal.ctl("account", "sync").code != 0)
                for line in [signOut, signOut + ["--check"], ["stores", "remove", notes]] {
                    expect(try await terminal.ctl2(line), 3, "may lack values of this device", "--discard-changes")
                }
                #expect(try await terminal.ctl("get", "theme").output == "dark")
                unlink(folder)
            }
            expect(try await terminal.ctl("account", "pause"), 0)
            expect(try await terminal.ctl2(signOut), 3, "may lack values of this device")
            expect(try await terminal.ctl("account", "resume"), 0)
            try FileManager.default.moveItem(atPath: folder + ".away", toPath: folder)
            expect(try await terminal.ctl2(signOut), 0)
            #expect(try await terminal.ctl("list").output == "")
        }
    }

    @Test func `changes that only this device has are not removed unasked`() async throws {
        try await Self.withFolder { terminal, url in
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            // Changes that can be uploaded are.
            expect(try await terminal.ctl("set", "theme", "dark"), 0)
            expect(try await terminal.ctl("account", "sign-out", "--clear-values"), 0)
            #expect(try await terminal.ctl("list").output == "")
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            expect(try await terminal.ctl("account", "sync"), 0)
            #expect(try await terminal.ctl("get", "theme").output == "dark")
            expect(try await terminal.ctl("account", "pause"), 0)
            expect(try await terminal.ctl("set", "theme", "light"), 0)
            expect(try await terminal.ctl("account", "sign-out", "--discard-changes"), 2, "--clear-values")
            expect(
                try await terminal.ctl("account", "sign-out", "--clear-values"), 3,
                "does not have a change of this device", "--discard-changes")
            let person = try terminal.atTerminal("account", "sign-out", "--clear-values")
            try await person.shows("Remove them anyway? [y/N] ")
            person.type("\n")
            #expect(try await person.program.finish() == .code(3))
            #expect(try await terminal.ctl("get", "theme").output == "light")
            expect(try await terminal.ctl("account", "sign-out", "--clear-values", "--discard-changes"), 0)
            #expect(try await terminal.ctl("list").output == "")
        }
    }

    @Test func `before a password goes over a network without encryption there is a warning`() async throws {
        try await Terminal.with { terminal in
            let signIn = ["account", "sign-in", "--no-create"]
            let open = try await terminal.ctl2(signIn + ["webdav://0.0.0.0:1/x"])
            #expect(open.code != 0 && open.error.contains("not encrypted") && open.error.contains("webdavs://"))
            let cluster = try await terminal.ctl2(signIn + ["etcd://127.0.0.1:1,0.0.0.0:1/x"])
            #expect(cluster.error.contains("etcds://"))
            let own = try await terminal.ctl2(signIn + ["webdav://127.0.0.1:1/x"])
            #expect(own.code != 0 && !own.error.contains("not encrypted"))
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
            expect(try await terminal.ctl("account", "forget", "kitchen", "--check"), 3, "can't forget itself")
            expect(try await terminal.ctl("account", "rename", " "), 2, "not spaces alone")
            expect(try await terminal.ctl("account", "renew"), 3, "has no password")
            expect(try await terminal.ctl("account", "rename", "two\nlines"), 2, "only characters that can be shown")
        }
    }

    @Test func `a device that has joined since the last poll is found all the same`() async throws {
        let folder = MemoryFolder()
        // This server gives no hints.
        let server = try ScriptedServer { folder.answer(to: $0) }
        let url = "webdav://127.0.0.1:\(server.port)/dav"
        try await Terminal.with { terminal in
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            let phone = try await Second.device(on: url, named: "phone")
            #expect(try await !terminal.ctl("account", "devices").output.contains("phone"))
            #expect(try await terminal.ctl("account", "forget", "phone", "--check").output == "would forget \"phone\"")
            expect(try await terminal.ctl("account", "pause"), 0)
            expect(try await terminal.ctl("account", "forget", "tablet"), 4, "account resume")
            phone.end()
        }
    }

    @Test func `what a store that stays on this device can't do names the command that changes that`() async throws {
        try await Self.withFolder { terminal, url in
            expect(try await terminal.ctl("set", "theme", "dark"), 0)
            expect(try await terminal.ctl("account", "sign-in", "ftp://example.org/x"), 2, "There is no backend")
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            expect(try await terminal.ctl("stores", "sync", notes, "off"), 0)
            expect(try await terminal.ctl("get", "--fresh", "theme"), 3, "stores sync \(notes) on")
            expect(try await terminal.ctl("stores", "sync", notes, "on"), 0)
            #expect(try await terminal.ctl("get", "--fresh", "theme").output == "dark")
        }
    }

    @Test func `sync is paused and resumed`() async throws {
        try await Self.withFolder { terminal, url in
            expect(try await terminal.ctl("account", "pause"), 3, "account sign-in URL")
            expect(try await terminal.ctl("account", "sign-out"), 0)
            expect(try await terminal.ctl("account", "sign-out", "--clear-values"), 3, "signed out already")
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            #expect(try await terminal.ctl("account", "pause", "--json").output == #"{"changed":true}"#)
            #expect(try await terminal.ctl("status").output.hasPrefix("State         paused"))
            #expect(try await terminal.ctl("account", "pause", "--json").output == #"{"changed":false}"#)
            expect(try await terminal.ctl("set", "theme", "dark"), 0)
            expect(try await terminal.ctl("account", "sign-out", "--clear-values", "--check"), 3, "--discard-changes")
            #expect(try await terminal.ctl("account", "sign-out", "--check").output == "would sign out of \(url)")
            #expect(try await terminal.ctl("account", "resume", "--json").output == #"{"changed":true}"#)
            let resolved = try await terminal.ctl("account", "resolve", "local", "--json")
            #expect(resolved.code == 0 && resolved.output == #"{"changed":false}"#, "\(resolved)")
            #expect(resolved.error.contains("There is nothing to resolve"), "\(resolved)")
            // The service has verified the marker, and does not read it again to sync.
            let folder = String(url.dropFirst("folder://".count))
            let marker = try #require(try FileManager.default.contentsOfDirectory(atPath: folder + "/a").first)
            try Data("junk".utf8).write(to: URL(filePath: "\(folder)/a/\(marker)"))
            let mended = try await terminal.ctl("account", "resolve", "local", "--json")
            #expect(mended.code == 0 && mended.output == #"{"changed":true}"# && mended.remarks == "", "\(mended)")
            // The service may be writing there.
            rename(folder, folder + "-away")
            expect(try await terminal.ctl("account", "resolve", "local"), 4, "doesn't exist")
            expect(try await terminal.ctl("set", "theme", "light"), 0)
            try await eventually("the folder is missed") {
                try await terminal.ctl("status").output.hasPrefix("State         offline")
            }
            expect(try await terminal.ctl("account", "sign-out", "--clear-values", "--check"), 3, "--discard-changes")
            expect(try await terminal.ctl("stores", "remove", notes, "--check"), 3, "--discard-changes")
        }
    }

    @Test func `what needs a key is refused where the account is not encrypted`() async throws {
        try await Self.withFolder { terminal, url in
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            expect(try await terminal.ctl("account", "replace-key"), 3, "is not encrypted")
            expect(try await terminal.ctl("account", "replace-key", "--check"), 3, "is not encrypted")
            expect(try await terminal.ctl("account", "unlock"), 3, "is not encrypted")
        }
    }

    @Test func `a store is kept on the device, and forgotten`() async throws {
        try await Self.withFolder { terminal, url in
            try await terminal.store().set("theme", .string("dark"))
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            expect(try await terminal.ctl("stores", "sync", notes, "off"), 0)
            let waiting = try await terminal.ctl("synchronize", "--wait")
            #expect(waiting.code == 3 && waiting.error.contains("excluded from sync"), "\(waiting)")
            #expect(!waiting.error.contains("at the same time"), "nobody else writes")
            expect(try await terminal.ctl("stores", "sync", notes, "on"), 0)
            #expect(try await terminal.ctl("stores").output == notes)
            let remove = ["stores", "remove", notes]
            #expect(try await terminal.ctl2(remove + ["--check"]).output == "would remove \(notes) from this device")
            // Removing would lose what only this device has.
            expect(try await terminal.ctl("account", "pause"), 0)
            expect(try await terminal.ctl("set", "theme", "light"), 0)
            for more in [[], ["--check"]] { expect(try await terminal.ctl2(remove + more), 3, "--discard-changes") }
            #expect(try await terminal.ctl("get", "theme").output == "light")
            let discard = try await terminal.ctl2(remove + ["--discard-changes", "--check"])
            #expect(discard.output == "would remove \(notes) from this device")
            expect(try await terminal.ctl("account", "resume"), 0)
            #expect(try await terminal.ctl2(remove + ["--json"]).output == #"{"changed":true}"#)
            #expect(try await terminal.ctl("stores").output == "")
            let again = try await terminal.ctl2(remove + ["--json"])
            #expect(again.output == #"{"changed":false}"# && again.error.contains("holds anything here"), "\(again)")
        }
    }

    @Test func `a store is not forgotten while another account lacks its changes`() async throws {
        try await Self.withFolder { terminal, url in
            let work = "folder://" + (try terminal.device.directory.makeDirectory("work", mode: 0o700))
            let remove = ["stores", "remove", notes]
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            expect(try await terminal.ctl("account", "pause"), 0)
            expect(try await terminal.ctl("set", "theme", "home"), 0)
            expect(try await terminal.ctl("account", "switch", work), 0, "signing in has ended the pause")
            expect(try await terminal.ctl("set", "theme", "work"), 0)
            for words in [[], ["--check"], ["--json", "--check"]] {
                expect(
                    try await terminal.ctl2(remove + words), 3, "An account that this device has left",
                    "--discard-changes")
            }
            expect(try await terminal.ctl("account", "switch", url), 0)
            #expect(try await terminal.ctl("get", "theme").output == "home")
            // Signing out is leaving, too.
            expect(try await terminal.ctl("account", "pause"), 0)
            expect(try await terminal.ctl("set", "theme", "paused"), 0)
            expect(try await terminal.ctl("account", "sign-out"), 0)
            expect(try await terminal.ctl2(remove), 3, "An account that this device has left")
            expect(try await terminal.ctl("account", "resume"), 3, "isn't signed in")
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            #expect(try await terminal.ctl("get", "theme").output == "paused")
            expect(try await terminal.ctl("set", "theme", "home"), 0)
            expect(try await terminal.ctl("account", "sync"), 0)
            // All accounts have everything now.
            expect(try await terminal.ctl2(remove), 0)
            #expect(try await terminal.ctl("get", "theme").output == "home")
            expect(try await terminal.ctl("account", "switch", work), 0)
            expect(try await terminal.ctl("account", "pause"), 0)
            expect(try await terminal.ctl("set", "theme", "gone"), 0)
            expect(try await terminal.ctl("account", "switch", url), 0)
            expect(try await terminal.ctl2(remove + ["--discard-changes"]), 0)
            expect(try await terminal.ctl("account", "switch", work), 0)
            #expect(try await terminal.ctl("get", "theme").output == "work")
        }
    }

    @Test func `what is set after a store was forgotten is newer than what the account has`() async throws {
        try await Self.withFolder { terminal, url in
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            for number in 0..<5 {
                expect(try await terminal.ctl("set", "theme", "old"), 0)
                expect(try await terminal.ctl2(["stores", "remove", notes]), 0)
                if number % 2 == 0 { #expect(try await terminal.ctl("get", "theme").output == "old") }
                expect(try await terminal.ctl("set", "theme", "new"), 0)
                expect(try await terminal.ctl("account", "sync"), 0)
                #expect(try await terminal.ctl("get", "theme").output == "new")
            }
        }
    }

    @Test func `another account is switched to, and back`() async throws {
        try await Self.withFolder { terminal, url in
            let work = "folder://" + (try terminal.device.directory.makeDirectory("work", mode: 0o700))
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            expect(try await terminal.ctl("set", "theme", "home"), 0)
            expect(try await terminal.ctl("synchronize", "--wait"), 0)
            #expect(try await terminal.ctl("account", "switch", work, "--check").output == "would sign in to \(work)")
            expect(try await terminal.ctl("account", "switch", work, "--no-create"), 3, "leave out --no-create")
            #expect(try await terminal.ctl("status", "--json").output.contains(url))
            #expect(try await terminal.ctl("account", "switch", work, "--json").output == #"{"changed":true}"#)
            #expect(try await terminal.ctl("account", "switch", work, "--json").output == #"{"changed":false}"#)
            expect(try await terminal.ctl("synchronize", "--wait"), 0)
            #expect(try await terminal.ctl("get", "theme").code == 1)
            expect(try await terminal.ctl("account", "switch", url), 0)
            expect(try await terminal.ctl("synchronize", "--wait"), 0)
            #expect(try await terminal.ctl("get", "theme").output == "home")
        }
    }

    @Test(arguments: ["local", "remote"])
    func `after the remote was emptied a person says which side is right`(side: String) async throws {
        try await Self.withFolder { terminal, url in
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            expect(try await terminal.ctl("set", "theme", "dark"), 0)
            expect(try await terminal.ctl("synchronize", "--wait"), 0)
            let folder = String(url.dropFirst("folder://".count))
            try FileManager.default.removeContents(ofDirectory: folder)
            expect(try await terminal.ctl("account", "sync"), 3, "ubiquitousctl account resolve local")
            #expect(try await terminal.ctl("status").output.contains("Uploaded      not since the account was gone"))
            expect(try await terminal.ctl("account", "resume"), 3, "ubiquitousctl account resolve local")
            // Signing in there is no change, and does not help either.
            expect(try await terminal.ctl("account", "sign-in", url), 3, "ubiquitousctl account resolve local")
            for check in [["--check"], []] {
                let leaving = try await terminal.ctl(arguments: ["account", "sign-out", "--clear-values"] + check)
                expect(leaving, 3, "may lack values of this device", "account resolve")
                let removing = try await terminal.ctl(arguments: ["stores", "remove", notes] + check)
                expect(removing, 3, "may lack values of this device")
            }
            #expect(
                try await terminal.ctl("account", "resolve", side, "--check").output
                    == "would take the \(side) values for right")
            #expect(try await terminal.ctl("account", "resolve", side, "--json").output == #"{"changed":true}"#)
            expect(try await terminal.ctl("synchronize", "--wait"), 0)
            #expect(try await terminal.ctl("account", "resolve", side, "--json").output == #"{"changed":false}"#)
            #expect(try await terminal.ctl("get", "theme").output == (side == "local" ? "dark" : ""))
        }
    }

    @Test func `where there is no account, nothing is to be resolved`() async throws {
        try await Self.withFolder { terminal, url in
            let result = try await terminal.ctl("account", "sign-in", url, "--no-create")
            expect(result, 3, "leave out --no-create")
            #expect(!result.error.contains("resolve"), "\(result.error)")
        }
    }

    @Test func `values are not removed while the remote's copy of them is damaged`() async throws {
        try await Self.withFolder { terminal, url in
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            expect(try await terminal.ctl("set", "theme", "dark"), 0)
            expect(try await terminal.ctl("synchronize", "--wait"), 0)
            let folder = URL(filePath: String(url.dropFirst("folder://".count)))
            let files = try #require(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
            for case let file as URL in files where !file.hasDirectoryPath {
                var bytes = try Data(contentsOf: file)
                if bytes.isEmpty { continue }
                bytes[bytes.count / 2] ^= 1
                try bytes.write(to: file)
            }
            // What a service has read, it doesn't read again soon.
            terminal.device.kill()
            try await terminal.device.start()
            expect(try await terminal.ctl("account", "sync"), 3, "damaged")
            for check in [["--check"], []] {
                let leaving = try await terminal.ctl(arguments: ["account", "sign-out", "--clear-values"] + check)
                expect(leaving, 3, "may lack values of this device", "account resolve")
                let removing = try await terminal.ctl(arguments: ["stores", "remove", notes] + check)
                expect(removing, 3, "may lack values of this device", "account resolve")
            }
            expect(try await terminal.ctl("account", "resolve", "local"), 0)
            expect(try await terminal.ctl("account", "sign-out", "--clear-values"), 0)
            expect(try await terminal.ctl("account", "sign-in", url), 0)
            #expect(try await terminal.ctl("get", "theme").output == "dark")
        }
    }

    @Test func `values that stay with the account before are not lost sight of`() async throws {
        try await Self.withFolder { terminal, url in
            let other = "folder://" + (try terminal.device.directory.makeDirectory("other", mode: 0o700))
            let words = "Values from before belong to another account"
            try await terminal.store().set("theme", .string("dark"))
            #expect(!(try await terminal.ctl("account", "sign-in", url)).error.contains(words))
            expect(try await terminal.ctl("account", "sign-out"), 0)
            #expect(!(try await terminal.ctl("account", "sign-in", url)).error.contains(words))
            #expect(try await terminal.ctl("get", "theme").output == "dark")
            #expect(try await terminal.ctl("account", "switch", other).error.contains(words))
            #expect(try await terminal.ctl("get", "theme").code == 1)
            #expect(!(try await terminal.ctl("account", "switch", url)).error.contains(words))
            #expect(try await terminal.ctl("get", "theme").output == "dark")
            // The other account has one of the keys.
            expect(try await terminal.ctl("set", "size", "12"), 0)
            #expect(try await terminal.ctl("account", "switch", other).error.contains(words))
            try await terminal.store().set("size", .integer(14))
            expect(try await terminal.ctl("account", "sync"), 0)
            #expect(!(try await terminal.ctl("account", "switch", url)).error.contains(words))
            #expect(try await terminal.ctl("account", "switch", other).error.contains(words))
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
            try Data([0x73, 0xFF, 0x0A]).write(to: URL(filePath: terminal.file("latin")))
            let latin = try await terminal.ctl("account", "sign-in", url, "--password-file", terminal.file("latin"))
            expect(latin, 2, "is not UTF-8 text")
            try terminal.write("large", String(repeating: "x", count: 100_000))
            let large = try await terminal.ctl("account", "sign-in", url, "--password-file", terminal.file("large"))
            expect(large, 2, "There are 100000 bytes in the file")
            let person = try terminal.atTerminal("account", "sign-in", url, "--login", "me", "--no-encrypt")
            try await person.shows("Password of me for \(url): ")
            #expect(!person.isEchoing)
            person.type("s3cret\n")
            #expect(try await person.program.finish() != .code(2))
            #expect(!person.screen.contains("s3cret") && person.isEchoing)
        }
    }

    @Test func `who interrupts the question for a password has the terminal as it was`() async throws {
        try await Self.withFolder { terminal, url in
            let person = try terminal.atTerminal("account", "sign-in", url, "--login", "me")
            try await person.shows("Password")
            person.type("half a pass\u{3}")
            #expect(try await person.program.finish() == .signal(SIGINT))
            #expect(person.isEchoing && !person.screen.contains("half"))
            #expect(try await terminal.ctl("status").output.contains("signed-out"))
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
            _ = try await run(["ln", "-s", terminal.file("good.plist"), terminal.file("link.plist")])
            let link = try await terminal.ctl("manifest", "check", terminal.file("link.plist"))
            #expect(link.code == 0 && link.error.contains("it is a symbolic link"))
            let home = terminal.file("home")
            _ = try await run(["mkdir", "-p", home + "/ubiquitous-store/manifests.d"])
            let installed = home + "/ubiquitous-store/manifests.d/link.plist"
            _ = try await run(["ln", "-s", terminal.file("good.plist"), installed])
            let refused = try await terminal.ctl("manifest", "check", installed, variables: ["XDG_DATA_HOME=\(home)"])
            expect(refused, 2, "it is a symbolic link")
            _ = try await run(["rm", installed])
            try terminal.write(
                "home/ubiquitous-store/manifests.d/other.plist", ManifestText(notes, application: "x").xml)
            let rival = try await terminal.ctl(
                "manifest", "check", terminal.file("good.plist"), variables: ["XDG_DATA_HOME=\(home)"])
            expect(rival, 2, "other.plist declares the same identifier")
            try terminal.write(
                "roams.plist",
                """
                <plist version="1.0"><dict><key>application-identifier</key><string>org.example.Other</string>
                <key>org.example.UbiquitousStore.ubiquitous-defaults</key><array><string>a</string></array></dict></plist>
                """)
            expect(try await terminal.ctl("manifest", "check", terminal.file("roams.plist")), 2, "declares none")
            try terminal.write("bad.plist", ManifestText("no spaces", application: notes).xml)
            let bad = try await terminal.ctl("manifest", "check", terminal.file("bad.plist"))
            expect(bad, 2, "com.apple.developer.ubiquity-kvstore-identifier: \"no spaces\" has to be")
            try terminal.write("broken.plist", "<plist>\n<dict><key>a</dict></plist>")
            expect(try await terminal.ctl("manifest", "check", terminal.file("broken.plist")), 2, "line 2, column 13")
            let xml = ManifestText(notes, localKeys: ["window*"]).xml
            for (right, wrong, words) in [
                ("local-keys", "localkeys", "Did you mean \"org.example.UbiquitousStore.local-keys\"?"),
                ("kvstore-identifier", "kvstore-identifer", "Did you mean"), ("window*", "win*dow", "no key goes with"),
                ("window*", "", "no key goes with"),
            ] {
                try terminal.write("slip.plist", xml.replacing(right, with: wrong))
                expect(try await terminal.ctl("manifest", "check", terminal.file("slip.plist")), 2, words)
            }
            // Other entitlements of Apple's are no mistakes.
            let entitlement = "<key>com.apple.security.app-sandbox</key><true/>"
            try terminal.write("good.plist", xml.replacing("<dict>", with: "<dict>" + entitlement))
            #expect(try await terminal.ctl("manifest", "check", terminal.file("good.plist")).code == 0)
            expect(try await terminal.ctl("manifest", "check", "/nonexistent"), 2, "can't be opened")
        }
    }

    @Test func `a manifest whose keys and groups can't have the meaning that it gives them is refused`() async throws {
        try await Terminal.with(started: false) { terminal in
            func check(_ local: [String], _ roaming: [String], groups: [String] = []) async throws -> ProgramResult {
                var manifest = ManifestText(notes, localKeys: local)
                (manifest.ubiquitousDefaults, manifest.groups) = (roaming, groups)
                try terminal.write("app.plist", manifest.xml)
                return try await terminal.ctl("manifest", "check", terminal.file("app.plist"))
            }
            let longest = String(repeating: "é", count: 128)
            for (local, roaming) in [
                (["window-size"], ["window*"]), (["window*"], ["win*"]), (["a"], ["b"]), ([longest], [longest + "*"]),
            ] {
                #expect(try await check(local, roaming, groups: ["org.example.Shared"]).code == 0)
            }
            for (local, roaming) in [
                (["window*"], ["window-size"]), (["win*"], ["a", "window*"]), (["*"], ["a"]), (["a", "b"], ["b"]),
            ] {
                let result = try await check(local, roaming)
                expect(result, 2, "is said to roam, and to stay on the device", local.last ?? "")
            }
            expect(try await check([longest + "x"], []), 2, "no key goes with", "128 UTF-16 code units at most")
            expect(try await check([], [longest + "x*"]), 2, "no key goes with", "128 UTF-16 code units at most")
            expect(try await check([], [], groups: ["a/b"]), 2, "\"a/b\" is not a domain: the name has a slash")
        }
    }
}
