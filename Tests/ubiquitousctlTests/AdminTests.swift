// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import Testing
import UbiquitousStoreTesting

@testable import ControlCommands

/// Backups of all users' data, and data that was set aside, with the built program.
@Suite struct AdminTests {
    private static let user = LocalUser.name(of: geteuid())
    private static let needsName: Comment = "the user of the tests needs a name, by which data is found"

    private static func others(_ terminal: Terminal) -> [String] {
        let state = terminal.device.stateDirectory
        return ((try? FileManager.default.contentsOfDirectory(atPath: state)) ?? [])
            .filter { $0.hasPrefix("backup.") || $0.hasPrefix("restore.") }
    }

    @Test(.enabled(if: user != nil, needsName), arguments: ["data.tar", "data.tar.gz"])
    func `a backup made while apps write brings users' data to another machine`(name: String) async throws {
        try await Terminal.with { terminal in
            let store = try await terminal.store()
            try await store.set("before", .string("here"))
            let writer = Task {
                var number: Int64 = 0
                while !Task.isCancelled {
                    number += 1
                    try await store.set("number", .integer(number))
                }
            }
            let archive = terminal.file(name)
            let result = try await terminal.ctl("admin", "backup", archive)
            writer.cancel()
            _ = try? await writer.value
            expect(result, 0)
            #expect(Self.others(terminal).isEmpty)
            var status = stat()
            #expect(stat(archive, &status) == 0 && status.st_mode & 0o777 == 0o600)

            try await Terminal.with { other in
                let restored = try await other.ctl("admin", "restore", archive)
                #expect(restored.code == 0 && restored.output.contains("has the data of"), "\(restored)")
                #expect(try await other.store().value("before") == .string("here"))
                #expect(Self.others(other).isEmpty)
                try await other.store().set("after", .integer(1))
            }
        }
    }

    @Test(.enabled(if: geteuid() == 0, "only root is told"))
    func `data that was set aside for its user's name is told by doctor and metrics`() async throws {
        try await Terminal.with { terminal in
            try await terminal.store().set("theme", .string("dark"))
            terminal.device.kill()
            try "ada".write(toFile: terminal.device.stateDirectory + "/u0/user", atomically: false, encoding: .utf8)
            try await terminal.device.start()
            #expect(try await terminal.ctl("get", "theme").code == 1)
            let doctor = try await terminal.ctl("doctor")
            #expect(doctor.code == 3 && doctor.output.contains("admin adopt u0.ada."), "\(doctor)")
            let metrics = try await terminal.ctl("metrics").output
            #expect(metrics.contains("ubiquitous_store_data_set_aside{user=\"ada\"} 1"), "\(metrics)")
        }
    }

    @Test(.enabled(if: user != nil, needsName))
    func `data is restored for a user of another name, or set aside, listed and adopted`() async throws {
        let user = try #require(Self.user)
        try await Terminal.with { terminal in
            try await terminal.store().set("theme", .string("dark"))
            let archive = terminal.file("data.tar")
            expect(try await terminal.ctl("admin", "backup", archive), 0)
            let state = terminal.device.stateDirectory

            let check = try await terminal.ctl("admin", "restore", "--check", archive)
            #expect(check.code == 3 && check.output.hasPrefix("would set u\(geteuid()).\(user)."), "\(check)")
            #expect(check.output.hasSuffix("aside: \(user) has values or an account already"), "\(check)")
            let replacing = try await terminal.ctl("admin", "restore", "--check", "--replace", archive)
            #expect(
                replacing.output == "would give \(user) the data of \(user), and set the present data aside",
                "\(replacing)")
            let checked = try await terminal.ctl("admin", "restore", "-n", "--as", "\(user)=nobody", archive)
            #expect(checked.output == "would give nobody the data of \(user)", "\(checked)")
            #expect(try await terminal.ctl("admin", "list").output.split(separator: "\n").count == 1)
            #expect(Self.others(terminal).isEmpty)

            // The user has values, so those of the archive are set aside.
            let refused = try await terminal.ctl("admin", "restore", archive)
            #expect(
                refused.code == 3 && refused.error.contains("admin adopt --replace u\(geteuid()).\(user)."),
                "\(refused)")
            let listed = try await terminal.ctl("admin", "list").output.split(separator: "\n")
            #expect(listed.count == 2 && listed[1].contains("set aside"), "\(listed)")
            let aside = try #require(listed[1].split(separator: " ").first.map(String.init))
            try await terminal.store().set("theme", .string("light"))
            expect(try await terminal.ctl("admin", "adopt", aside, user), 3, "With --replace")
            let planned = try await terminal.ctl("admin", "adopt", "--replace", "--check", aside, user)
            #expect(
                planned.output == "would make \(aside) the data of \(user), and set the present data aside",
                "\(planned)")
            expect(try await terminal.ctl("admin", "adopt", "--check", aside, user), 3, "With --replace")
            let adopted = try await terminal.ctl("admin", "adopt", "--replace", aside, user)
            let rows = try await terminal.ctl("admin", "list").output.split(separator: "\n")
            let former = try #require(rows.last?.split(separator: " ").first)
            #expect(adopted.code == 0 && adopted.error.contains(former), "\(adopted)")
            #expect(try await terminal.store().value("theme") == .string("dark"))

            // Restores under another name, as on another machine.
            let renamed = try await terminal.ctl("admin", "restore", "--as", "\(user)=nobody", archive)
            #expect(renamed.code == 0 && renamed.output == "nobody has the data of \(user)", "\(renamed)")
            let nobody = try #require(LocalUser.uid(named: "nobody"))
            #expect(access("\(state)/u\(nobody)/stores.sqlite", F_OK) == 0)
            expect(try await terminal.ctl("admin", "delete", "u\(nobody)"), 3, "--force")
            expect(try await terminal.ctl("admin", "delete", "nobody"), 3, "u\(nobody) is the data of a user")
            for name in ["no-such-user", "..", "u", "/etc", "u3999999999", "u\(nobody).nobody.1"] {
                expect(try await terminal.ctl("admin", "delete", "--force", name), 2, "There is no data")
            }
            expect(try await terminal.ctl("admin", "delete", "--force", "nobody"), 0)
            #expect(access("\(state)/u\(nobody)", F_OK) != 0)
            for name in ["nobody", "u\(nobody)"] {
                let again = try await terminal.ctl("admin", "delete", "--force", "--json", name)
                #expect(again.output == #"{"changed":false}"#, "\(again)")
            }

            for option in [["--as", "zz=nobody"], ["--only", "zz"]] {
                let line = ["admin", "restore"] + option + [archive]
                expect(try await terminal.ctl2(line), 2, "There is no data of \"zz\" in")
            }
            #expect(access("\(state)/u\(nobody)", F_OK) != 0)
        }
    }

    @Test(.enabled(if: user != nil, needsName))
    func `the last data of a user of this machine is removed with force only`() async throws {
        let user = try #require(Self.user)
        try await Terminal.with { terminal in
            try await terminal.store().set("theme", .string("dark"))
            terminal.device.kill()
            let (state, aside) = (terminal.device.stateDirectory, "u\(geteuid()).\(user).1700000000")
            try FileManager.default.moveItem(atPath: "\(state)/u\(geteuid())", toPath: "\(state)/\(aside)")
            try await terminal.device.start()
            let line = ["admin", "delete", aside]
            for option in [[], ["--check"]] {
                expect(try await terminal.ctl2(line + option), 3, "is the only data of \"\(user)\"", "--force")
            }
            let forced = try await terminal.ctl2(line + ["--force", "--check"])
            #expect(forced.output.hasPrefix("would remove \(aside)"), "\(forced)")
            try await terminal.store().set("theme", .string("light"))
            expect(try await terminal.ctl2(line), 0)
            #expect(access("\(state)/\(aside)", F_OK) != 0)
        }
    }

    /// After "usermod -u", what the user had under the former uid stays where it is.
    @Test(.enabled(if: user != nil, needsName), arguments: [true, false])
    func `data of a uid that its user had before replaces nothing in a restore`(isRecorded: Bool) async throws {
        let user = try #require(Self.user)
        try await Terminal.with { terminal in
            try await terminal.store().set("theme", .string("dark"))
            terminal.device.kill()
            let state = terminal.device.stateDirectory
            for former in ["u65533", "u9"] {
                try FileManager.default.copyItem(atPath: "\(state)/u\(geteuid())", toPath: "\(state)/\(former)")
            }
            try await terminal.device.start()
            try await terminal.store().set("theme", .string("light"))
            let place = try await Self.unpackedBackup(of: terminal)
            #expect(terminal.text("archive/namesakes") == "\(geteuid()) \(user)\n")
            if !isRecorded { unlink("\(place)/namesakes") }
            let archive = terminal.file("second.tar")
            try Self.tar("-C", place, "-cf", archive, ".")
            for options in [[], ["--replace"]] {
                try await Terminal.with { other in
                    let check = try await other.ctl2(["admin", "restore", "--check"] + options + [archive])
                    let result = try await other.ctl2(["admin", "restore"] + options + [archive])
                    let listed = try await other.ctl("admin", "list").output
                    #expect(listed.contains("u65533.\(user).") && listed.contains("u9.\(user)."), "\(listed)")
                    #expect(!listed.contains("u9 "), "\(listed)")
                    if isRecorded {
                        let reason = "aside: \(user) had the uid \(geteuid()) when the archive was made"
                        let gift = "the data of \(user) (u\(geteuid()))"
                        #expect(check.code == 0 && check.output.contains(reason), "\(check)")
                        #expect(check.output.contains("would give \(user) \(gift)"), "\(check)")
                        #expect(result.code == 0 && result.output.contains(reason), "\(result)")
                        #expect(result.output.contains("\(user) has \(gift)"), "\(result)")
                        #expect(try await other.store().value("theme") == .string("light"))
                    } else {
                        #expect(check.code == 3 && check.output.contains("which was the user's"), "\(check)")
                        #expect(result.code == 3 && result.error.contains("which was the user's"), "\(result)")
                        #expect(result.error.contains("admin adopt u65533.\(user)."), "\(result)")
                        #expect(try await other.store().everything().isEmpty)
                    }
                }
            }
        }
    }

    /// The service has the data open, because the account in it syncs.
    @Test(.enabled(if: user != nil, needsName))
    func `data of a uid that no user has is named, refused by its user's name alone, and adopted`() async throws {
        let (user, uid) = (try #require(Self.user), geteuid())
        try await Terminal.with { terminal in
            try await terminal.store().set("theme", .string("dark"))
            let folder = try terminal.device.directory.makeDirectory("folder", mode: 0o700)
            expect(try await terminal.ctl("account", "sign-in", "folder://\(folder)"), 0)
            terminal.device.kill()
            let state = terminal.device.stateDirectory
            try FileManager.default.moveItem(atPath: "\(state)/u\(uid)", toPath: "\(state)/u65533")
            try await terminal.device.start()
            func examine() async throws {
                guard uid == 0 else { return }
                let doctor = try await terminal.ctl("doctor")
                #expect(doctor.code == 3 && doctor.output.contains("admin adopt u65533 \(uid)"), "\(doctor)")
            }
            try await examine()
            try await terminal.store().set("theme", .string("light"))

            let listed = try await terminal.ctl("admin", "list").output
            #expect(listed.contains("no user has this uid; \(user) has \(uid)"), "\(listed)")
            #expect(try await terminal.ctl("admin", "list", "--json").output.contains(#""usable":false"#))
            try await examine()
            expect(try await terminal.ctl("admin", "delete", "--force", user), 2, "several uids", "u65533", "u\(uid)")
            expect(try await terminal.ctl("admin", "adopt", "u\(uid)", user), 2, "was not set aside")
            expect(try await terminal.ctl("admin", "adopt", "u65533", user), 3, "With --replace")
            #expect(try await terminal.ctl("admin", "list").output.contains("no user has this uid"))
            let check = try await terminal.ctl("admin", "adopt", "--check", "--replace", "u65533", user)
            #expect(check.output.hasPrefix("would make u65533 the data of \(user)"), "\(check)")
            let adopted = try await terminal.ctl("admin", "adopt", "--replace", "u65533", user)
            #expect(adopted.code == 0, "\(adopted)")
            #expect(try await terminal.store().value("theme") == .string("dark"))
            #expect(try await !terminal.ctl("admin", "list").output.contains("u65533"))
            expect(try await terminal.ctl("account", "sync"), 0)
        }
    }

    @Test(.enabled(if: user != nil, needsName))
    func `restoring again and again keeps the newest copies, and data that was set aside otherwise`() async throws {
        let user = try #require(Self.user)
        try await Terminal.with { terminal in
            try await terminal.store().set("theme", .string("dark"))
            let archive = terminal.file("data.tar")
            expect(try await terminal.ctl("admin", "backup", archive), 0)
            // Data of a former user with this number and name.
            let other = "u\(geteuid()).\(user).1000000000"
            _ = try terminal.device.directory.makeDirectory("state/\(other)", mode: 0o700)
            // A copy was made while the clock was an hour ahead.
            let ahead = "u\(geteuid()).\(user).\(time(nil) + 3600)"
            _ = try terminal.device.directory.makeDirectory("state/\(ahead)", mode: 0o700)
            try terminal.write("state/\(ahead)/copy", "")
            try terminal.write("state/\(ahead)/user", user)
            var newest: [String] = []
            for number in 0..<10 {
                let replaces = !number.isMultiple(of: 3)
                let result = try await terminal.ctl2(
                    ["admin", "restore"] + (replaces ? ["--replace"] : []) + [archive])
                #expect(result.code == (replaces ? 0 : 3), "\(result)")
                #expect(result.error.contains("was removed: the newest 4") == (number > 2), "\(number): \(result)")
                let listed = try await terminal.ctl("admin", "list", "--json").output
                newest.append(listed)
                #expect(listed.components(separatedBy: #""copy":true"#).count == min(number + 2, 4) + 1, "\(listed)")
                #expect(listed.contains("\"\(other)\""))
                #expect(listed.contains("\"\(ahead)\"") == (number < 3))
            }
            #expect(Set(newest).count == newest.count)
            #expect(try await terminal.store().value("theme") == .string("dark"))
            let german = try await terminal.ctl(
                "admin", "restore", "--replace", archive, variables: ["LC_ALL=de_DE.UTF-8"])
            #expect(german.error.contains("wurde entfernt: Von dem"), "\(german)")
        }
    }

    @Test(.enabled(if: user != nil, needsName))
    func `a restore begins while another one that began in the same second is under way`() async throws {
        try await Terminal.with { terminal in
            try await terminal.store().set("theme", .string("dark"))
            let archive = terminal.file("data.tar")
            expect(try await terminal.ctl("admin", "backup", archive), 0)
            let now = time(nil)
            for second in now...now + 60 {
                _ = try terminal.device.directory.makeDirectory("state/restore.\(second)000000", mode: 0o700)
            }
            let result = try await terminal.ctl("admin", "restore", "--replace", archive)
            #expect(result.code == 0, "\(result)")
            #expect(Self.others(terminal).count == 61)
        }
    }

    @Test(.enabled(if: geteuid() == 0, "only root may name other users"))
    func `data that can't be opened hides nobody else's from root`() async throws {
        try await Terminal.with { terminal in
            try await terminal.store().set("theme", .string("dark"))
            _ = try terminal.device.directory.makeDirectory("state/u65533", mode: 0o700)
            _ = try terminal.device.directory.makeDirectory("state/u65533/stores.sqlite", mode: 0o700)
            for command in [["status"], ["status", "--json"]] {
                let users = try await terminal.ctl2(command + ["--everybody"])
                #expect(users.code == 3 && users.error.contains("The data of 65533 can't be opened"), "\(users)")
                #expect(users.output.contains("root"), "\(users)")
            }
            let stores = try await terminal.ctl("stores", "--everybody")
            #expect(stores.code == 0 && stores.output.contains(notes), "\(stores)")
            let metrics = try await terminal.ctl("metrics")
            #expect(metrics.code == 0 && metrics.output.contains(#"unreadable_users{user="65533"} 1"#), "\(metrics)")
            #expect(metrics.output.contains(#"accounts{state="signed-out"} 1"#), "\(metrics)")
            let archive = terminal.file("data.tar")
            let backup = try await terminal.ctl("admin", "backup", archive)
            expect(backup, 3, "This was not copied: u65533: ")
            #expect(!backup.error.contains("org.freedesktop"), "\(backup)")
            try await Terminal.with { (other: Terminal) async throws in
                #expect(try await other.ctl("admin", "restore", archive).code == 0)
                #expect(try await other.store().value("theme") == .string("dark"))
            }
        }
    }

    @Test(.enabled(if: geteuid() == 0, "only root has other users' data"))
    func `data that the service can't use keeps nobody else's from being restored`() async throws {
        try await Terminal.with { terminal in
            try await terminal.store().set("theme", .string("dark"))
            terminal.device.kill()
            let (state, files) = (terminal.device.stateDirectory, FileManager.default)
            try files.copyItem(atPath: state + "/u0", toPath: state + "/u1")
            try "daemon".write(toFile: state + "/u1/user", atomically: false, encoding: .utf8)
            try files.removeItem(atPath: state + "/u0/stores.sqlite")
            try files.createDirectory(atPath: state + "/u0/stores.sqlite", withIntermediateDirectories: false)
            let archive = terminal.file("data.tar")
            let tar = try Process.run(
                URL(filePath: "/usr/bin/env"), arguments: ["tar", "-C", state, "-cf", archive, "u0", "u1"])
            tar.waitUntilExit()
            #expect(tar.terminationStatus == 0)
            try await Terminal.with { (other: Terminal) async throws in
                let result = try await other.ctl("admin", "restore", archive)
                #expect(result.code == 3 && result.output.contains("daemon has the data of daemon"), "\(result)")
                #expect(result.error.contains("root doesn't get the data of root; u0.root."), "\(result)")
                #expect(try await other.ctl("get", "theme", "-s", notes, "--user", "daemon").output == "dark")
            }
        }
    }

    @Test(.enabled(if: geteuid() == 0, "it needs root, to have a disk that is full"))
    func `an archive that the disk has no room for is not called broken, and leaves nothing`() async throws {
        try await Terminal.with { terminal in
            try await terminal.store().set("theme", .data(Array(repeating: 1, count: 900_000)))
            let archive = terminal.file("data.tar")
            expect(try await terminal.ctl("admin", "backup", archive), 0)
            try await Terminal.with(started: false) { (other: Terminal) async throws in
                _ = try other.device.directory.mountSmallDisk("state", bytes: 512 << 10)
                try await other.device.start()
                expect(try await other.ctl("admin", "restore", archive), 3, "There is no room in", "was changed")
                #expect(Self.others(other).isEmpty)
            }
        }
    }

    @Test(.enabled(if: geteuid() == 0, "it needs root, to have a small disk"))
    func `an archive that would leave others hardly any room is not unpacked`() async throws {
        try await Terminal.with(started: false) { (terminal: Terminal) async throws in
            let place = terminal.file("archive/u7")
            try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
            try Data(count: 30 << 20).write(to: URL(filePath: place + "/large"))
            let archive = terminal.file("data.tar.gz")
            try Self.tar("-C", terminal.file("archive"), "-czf", archive, ".")
            _ = try terminal.device.directory.mountSmallDisk("state", bytes: 80 << 20)
            try await terminal.device.start()
            expect(try await terminal.ctl("admin", "restore", archive), 3, "There is no room in", "was changed")
            #expect(Self.others(terminal).isEmpty)
        }
    }

    @Test(arguments: ["stores.sqlite", "account.plist", "manifests.d"])
    func `an archive with links, through which one user would read another's data, is refused`(name: String)
        async throws
    {
        try await Terminal.with { terminal in
            try await terminal.store().set("theme", .string("dark"))
            let place = terminal.file("archive/u7")
            try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
            try FileManager.default.createSymbolicLink(
                atPath: "\(place)/\(name)", withDestinationPath: "../u\(getuid())/\(name)")
            let archive = terminal.file("data.tar")
            try Self.tar("-C", terminal.file("archive"), "-cf", archive, ".")
            expect(try await terminal.ctl("admin", "restore", "--replace", archive), 2, name, "is a link or not a file")
            #expect(Self.others(terminal).isEmpty)
        }
    }

    /// Backs everything up, and unpacks the archive.
    /// - Returns: the directory with its files.
    private static func unpackedBackup(of terminal: Terminal) async throws -> String {
        let archive = terminal.file("first.tar")
        expect(try await terminal.ctl("admin", "backup", archive), 0)
        let place = terminal.file("archive")
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        try tar("-C", place, "-xf", archive)
        return place
    }

    /// A rollback journal can name any file, for SQLite to delete. There is none beside a database of a backup.
    @Test(.enabled(if: user != nil, needsName), arguments: ["u7", "u7.nobody.1700000000"])
    func `an archive with a rollback journal deletes nothing, and its database is used`(name: String) async throws {
        try await Terminal.with { terminal in
            try await terminal.store().set("theme", .string("dark"))
            let (place, second) = (try await Self.unpackedBackup(of: terminal), terminal.file("second.tar"))
            let (victim, data) = (terminal.file("victim"), "\(place)/\(name)")
            try terminal.write("victim", "mine")
            try FileManager.default.moveItem(atPath: "\(place)/u\(getuid())", toPath: data)
            let database = "\(data)/stores.sqlite"
            try Self.journal(of: database, naming: victim).write(to: URL(filePath: database + "-journal"))
            // A salvage that was interrupted leaves its database under this name.
            if name == "u7" { try FileManager.default.moveItem(atPath: database, toPath: database + ".new") }
            try Self.tar("-C", place, "-cf", second, ".")

            try await Terminal.with { other in
                #expect(try await other.ctl("admin", "restore", second).code == 0)
                if name == "u7" { #expect(try await other.store().value("theme") == .string("dark")) }
                expect(try await other.ctl("admin", "backup", other.file("backup.tar")), 0)
                #expect(terminal.text("victim") == "mine")
            }
        }
    }

    @Test(.enabled(if: user != nil, needsName))
    func `an archive whose database would take too much memory is refused`() async throws {
        try await Terminal.with { terminal in
            try await terminal.store().set("theme", .string("dark"))
            let (place, second) = (try await Self.unpackedBackup(of: terminal), terminal.file("second.tar"))
            let database = "\(place)/u\(getuid())/stores.sqlite"
            let script = """
                import sqlite3, sys
                db = sqlite3.connect(sys.argv[1])
                db.execute("INSERT OR REPLACE INTO property VALUES ('account', zeroblob(40000000))")
                db.commit()
                """
            #expect(try await run(["python3", "-c", script, database]).code == 0)
            try Self.tar("-C", place, "-cf", second, ".")

            let refused = try await terminal.ctl("admin", "restore", "--replace", second)
            #expect(refused.code != 0 && refused.error.contains("more in the table property"), "\(refused)")
            #expect(try await terminal.store().value("theme") == .string("dark"))
        }
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give a directory away"))
    func `root works in no directory that isn't the service's user's`() async throws {
        try await Terminal.with { terminal in
            try await terminal.store().set("theme", .string("dark"))
            chown(terminal.device.stateDirectory, 65533, 65533)
            defer { chown(terminal.device.stateDirectory, 0, 0) }
            let archive = terminal.file("data.tar")
            expect(try await terminal.ctl("admin", "backup", archive), 3, "not a directory of the service's user")
            #expect(access(archive, F_OK) != 0)
        }
    }

    /// The newest four copies of a user are kept, by the times in their names.
    @Test(.enabled(if: geteuid() == 0, "only root may name other users"))
    func `what an archive calls a copy of a time to come removes no copy of this machine`() async throws {
        try await Terminal.with { terminal in
            try await terminal.store().set("theme", .string("dark"))
            let archive = terminal.file("data.tar")
            for number in 0..<5 {
                let data = terminal.file("archive/u65533.x.\(1_099_511_627_771 + number)")
                try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
                for name in ["user", "copy"] {
                    try Data("x".utf8).write(to: URL(filePath: "\(data)/\(name)"))
                }
            }
            try Self.tar("-C", terminal.file("archive"), "-cf", archive, ".")
            let own = try terminal.device.directory.makeDirectory("state/u65533.x.1700000000", mode: 0o700)
            for name in ["user", "copy"] { try Data("x".utf8).write(to: URL(filePath: "\(own)/\(name)")) }
            #expect(try await terminal.ctl("admin", "restore", archive).code == 0)
            #expect(access(own, F_OK) == 0)
            let list = try await terminal.ctl("admin", "list")
            #expect(!list.output.contains("u65533.x.1099511627"), "\(list)")
        }
    }

    private static func tar(_ words: String...) throws {
        let tar = try Process.run(URL(filePath: "/usr/bin/tar"), arguments: words)
        tar.waitUntilExit()
        #expect(tar.terminationStatus == 0)
    }

    /// Returns a journal without pages (https://www.sqlite.org/fileformat2.html, 3) that names another journal.
    private static func journal(of database: String, naming other: String) throws -> Data {
        let file = try Data(contentsOf: URL(filePath: database))
        let size = Int(file[16]) << 8 | Int(file[17])
        func words(_ words: Int...) -> [UInt8] {
            words.flatMap { word in (0..<4).reversed().map { UInt8(truncatingIfNeeded: word >> (8 * $0)) } }
        }
        let magic: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
        let head = magic + words(0, 1, file.count / size, 512, size)
        let name = Array(other.utf8)
        let end = words((1 << 30) / size + 1) + name + words(name.count, name.reduce(0) { $0 + Int($1) }) + magic
        return Data(head + Array(repeating: 0, count: 512 - head.count) + end)
    }

    @Test(.enabled(if: geteuid() == 0, "it needs root, for another user's data"))
    func `a file that is nothing but a hole takes no room in a backup, nor a database of that kind`() async throws {
        try await Terminal.with { terminal in
            try await terminal.store().set("theme", .string("dark"))
            let data = "state/u65533.nobody.1700000000"
            _ = try terminal.device.directory.makeDirectory(data, mode: 0o700)
            let path = terminal.device.stateDirectory + "/u65533.nobody.1700000000/"
            for name in ["hole", "stores.sqlite"] {
                try Data("SQLite format 3\0".utf8).write(to: URL(filePath: path + name))
                truncate(path + name, 1 << 40)
            }
            let archive = terminal.file("data.tar")
            expect(try await terminal.ctl("admin", "backup", archive), 0)
            var status = stat()
            #expect(stat(archive, &status) == 0 && status.st_size < 8 << 20)
            let adoption = ["admin", "adopt", "u65533.nobody.1700000000", "nobody"]
            expect(try await terminal.ctl2(adoption), 3, "more than DatabaseBytes= allows")
        }
    }

    @Test func `a backup or an archive that can't be is refused, and leaves nothing`() async throws {
        try await Terminal.with { terminal in
            try await terminal.store().set("theme", .string("dark"))
            try terminal.write("there", "mine")
            expect(try await terminal.ctl("admin", "backup", terminal.file("there")), 2, "can't be made")
            #expect(terminal.text("there") == "mine")
            expect(try await terminal.ctl("admin", "backup", "-"), 2, "can't be written to standard output")
            let there = terminal.file("there")
            expect(try await terminal.ctl("admin", "restore", there), 2, "can't be unpacked: tar: ", "admin backup")
            #expect(try await terminal.ctl("admin", "restore", there).error.split(separator: "\n").count == 2)
            expect(try await terminal.ctl("admin", "restore", terminal.file("none")), 2, "can't be read")
            expect(try await terminal.ctl("admin", "backup", ""), 2, "\"\" can't be made")
            expect(try await terminal.ctl("admin", "restore", ""), 2, "\"\" can't be read")
            expect(try await terminal.ctl("admin", "restore", "--as", "x", terminal.file("there")), 2, "OLD=NEW")
            expect(try await terminal.ctl("admin", "adopt", "u1.x.2", "nobody"), 2, "There is no data \"u1.x.2\"")
            expect(try await terminal.ctl("admin", "adopt", "u1.x.2", "no-such-user"), 2, "There is no user")
            #expect(Self.others(terminal).isEmpty)
            #expect(try await terminal.store().value("theme") == .string("dark"))
        }
    }
}
