// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// What users see of sync through a folder.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct SyncTests {
    @Test func `a value that is set on one device arrives on the other`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            try await phone.subscribe()
            try await laptop.set("theme", .string(Text(secret)))
            let signal = try await phone.signal("the server's change") { $0.reason == 0 }
            #expect(signal.keys == ["theme"])
            #expect(try await phone.value("theme") == .string(Text(secret)))
            #expect(signal.generation <= (try await phone.generation()))
            let device = try await devices.account(devices.laptop).property("DeviceIdentifier")
            #expect(signal.info["origin-device"].map { $0 == device } ?? true)
            try await laptop.remove("theme")
            _ = try await phone.signal("the removal") { $0.reason == 0 && $0.generation > signal.generation }
            #expect(await errorName { _ = try await phone.value("theme") } == "NoSuchKey")
        }
    }

    /// Whether this machine's addresses can be changed. Only root can, and not in every sandbox.
    nonisolated private static let makesRoutes = (try? changeAddress("add")) == 0 && (try? changeAddress("del")) == 0

    /// Adds another address to the loopback device, or removes it, with its routes.
    nonisolated private static func changeAddress(_ change: String) throws -> Int32 {
        let program = Process()
        program.executableURL = URL(filePath: "/usr/bin/env")
        program.arguments = ["ip", "address", change, "127.9.9.9/32", "dev", "lo"]
        try program.run()
        program.waitUntilExit()
        return program.terminationStatus
    }

    @Test(.enabled(if: makesRoutes, "it needs root, and ip of iproute2"))
    func `a device that comes to a network tries again at once`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let account = try devices.account(devices.laptop)
            rename(devices.folder, devices.folder + ".away")
            for _ in 0..<9 { _ = await failure { try await account.syncNow() } }
            rename(devices.folder + ".away", devices.folder)
            let now = Date().timeIntervalSince1970 * 1_000_000
            var next = 0.0
            if case .integer(let time) = try await account.property("NextAttemptUSec") { next = Double(time) }
            #expect(next > now + 120_000_000, "it would try again soon by itself")
            #expect(try Self.changeAddress("add") == 0)
            defer { _ = try? Self.changeAddress("del") }
            try await eventually("it tries again") { try await account.state() == "idle" }
        }
    }

    @Test func `a file that is damaged in the folder is said until it is repaired, and the other stores sync`()
        async throws
    {
        let other = "org.example.Other"
        try await withTwoDevices({ $0.manifests = [ManifestText(notes), ManifestText(other)] }) { devices in
            try await devices.join()
            let (phone, segments) = (try devices.account(devices.phone), devices.folder + "/s/")
            try await phone.setPaused(true)
            let large = Value.data([UInt8](repeating: 1, count: 100_000))
            try await devices.store(devices.laptop).set("large", large)
            try await devices.store(devices.laptop, other).set("small", .integer(1))
            try await devices.account(devices.laptop).syncNow()
            var whole: [String: Data] = [:]
            for name in try FileManager.default.contentsOfDirectory(atPath: segments) {
                guard let bytes = FileManager.default.contents(atPath: segments + name), bytes.count > 100_000 else {
                    continue
                }
                whole[name] = bytes
                try Data("damaged".utf8).write(to: URL(filePath: segments + name))
            }
            #expect(whole.count == 1)

            try await phone.setPaused(false)
            for _ in 0..<2 {
                #expect(await errorName { try await phone.syncNow() } == "Corrupt")
                #expect(try await phone.state() == "idle")
                #expect(try await phone.lastError() == "Corrupt")
                let message = try await phone.text("LastErrorMessage")
                #expect(message == "The file s/\(whole.keys.first ?? "") is damaged.")
            }
            #expect(try await devices.store(devices.phone, other).value("small") == .integer(1))
            #expect(await errorName { _ = try await devices.store(devices.phone).value("large") } == "NoSuchKey")

            for (name, bytes) in whole { try bytes.write(to: URL(filePath: segments + name)) }
            try await phone.syncNow()
            #expect(try await phone.lastError() == "")
            #expect(try await phone.text("LastErrorMessage") == "")
            #expect(try await devices.store(devices.phone).value("large") == large)
        }
    }

    @Test func `every type arrives as it was`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let values: [(key: String, value: Value)] = [
                ("b", .boolean(true)), ("x", .integer(1)), ("d", .real(1)),
                ("nan", .real(Double(bitPattern: 0x7ff8_0000_0000_0123))),
                ("minus zero", .real(-0.0)), ("s", .string("")), ("ay", .data([])), ("date", .date(-0.0)),
                ("av", .array([])),
                ("a{sv}", .dictionary(["é": .integer(1), "e\u{301}": .array([.date(0.1)])])), ("é", .integer(1)),
                ("e\u{301}", .integer(2)),
            ]
            try await devices.store(devices.laptop).apply(values) { _ in }
            let everything = try await devices.converge()
            #expect(everything == Dictionary(uniqueKeysWithValues: values.map { (Text($0.key), $0.value) }))
        }
    }

    @Test func `the first to sign in creates the account, and the second joins it`() async throws {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            #expect(
                await errorName { try await laptop.signIn(devices.url, ["create": .boolean(false)]) } == "NoAccount"
            )
            #expect(try await laptop.state() == "signed-out")
            let identifier = try await laptop.join(devices.url, ["device-name": "My laptop"])
            #expect(!identifier.isEmpty)
            #expect(try await phone.join(devices.url, ["create": .boolean(false)]) == identifier)
            for account in [laptop, phone] {
                #expect(try await account.property("AccountIdentifier") == .string(Text(identifier)))
                #expect(try await account.property("Backend") == .string(Text(devices.url)))
                #expect(try await account.property("LastErrorName") == "")
            }
            #expect(try await laptop.property("DeviceName") == "My laptop")
            #expect(try await laptop.property("DeviceIdentifier") != phone.property("DeviceIdentifier"))
            // Signing in again finds the same account.
            #expect(try await laptop.signIn(devices.url) == identifier)
            try await devices.laptop.restart()
            #expect(try await laptop.property("AccountIdentifier") == .string(Text(identifier)))
            #expect(try await laptop.isDownloaded())
        }
    }

    @Test func `the first download is told once, even where nothing changed`() async throws {
        try await withTwoDevices { devices in
            let laptop = try devices.store(devices.laptop)
            try await laptop.subscribe()
            let account = laptop.client.account
            try await account.subscribe()
            try await account.join(devices.url)
            let signal = try await laptop.signal("the first download") { $0.reason == 1 }
            #expect(signal.keys.isEmpty)
            try await account.syncNow()
            try await account.syncNow()
            _ = try await laptop.everything()
            #expect(laptop.received.count { $0.reason == 1 } == 1)
            #expect(try await laptop.property("InitialSyncDone") == .boolean(true))
            try await eventually("the state is told") { account.received.last?.state == "idle" }
            #expect(account.received.contains { $0.info["initial-sync-done"] == .boolean(true) })
        }
    }

    @Test func `what was written before the first download gives way, and goes up where nothing contradicts`()
        async throws
    {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            try await laptop.apply(["both": "account", "deleted": "account", "laptop": "account", "same": "same"])
            try await laptop.remove("deleted")
            try await laptop.client.account.join(devices.url)
            try await laptop.set("gone", .integer(1))
            try await laptop.remove("gone")
            try await laptop.client.account.syncNow()
            try await phone.apply(["both": "phone", "gone": "phone", "phone": "phone", "same": "same"])
            try await phone.subscribe()
            try await phone.client.account.join(devices.url)
            let signal = try await phone.signal("the first download") { $0.reason == 1 }
            #expect(signal.keys == ["both", "gone", "laptop"])
            let expected: [Text: Value] = ["both": "account", "laptop": "account", "phone": "phone", "same": "same"]
            #expect(try await phone.everything() == expected)
            #expect(try await devices.converge() == expected)
        }
    }

    @Test func `what was written while the folder was away arrives when it is back`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            try await laptop.apply(["shared": .integer(1), "deleted": .integer(1)])
            _ = try await devices.converge()
            rename(devices.folder, devices.folder + ".away")
            #expect(await errorName { try await laptop.client.account.syncNow() } == "BackendUnavailable")
            #expect(try await laptop.client.account.lastError() == "BackendUnavailable")
            #expect(try await laptop.client.account.state() == "offline")
            #expect(await errorName { try await laptop.synchronize(0x1) } == "BackendUnavailable")
            try await laptop.apply(["laptop": .integer(1)], removing: ["deleted"])
            #expect(try await laptop.synchronize() == false)
            try await phone.apply(["phone": .integer(1), "shared": .integer(2)])
            #expect(try await laptop.property("PendingChanges") == .integer(2))
            rename(devices.folder + ".away", devices.folder)
            let expected: [Text: Value] = ["laptop": .integer(1), "phone": .integer(1), "shared": .integer(2)]
            #expect(try await devices.converge() == expected)
            #expect(try await laptop.client.account.lastError() == "")
            #expect(try await laptop.client.account.state() == "idle")
            #expect(try await laptop.synchronize(0x1) == true)
        }
    }

    @Test func `a folder that comes back is noticed without being asked for`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let laptop = try devices.store(devices.laptop)
            rename(devices.folder, devices.folder + ".away")
            try await laptop.set("key", .integer(1))
            try await eventually("it is offline") { try await laptop.client.account.state() == "offline" }
            rename(devices.folder + ".away", devices.folder)
            try await eventually("it is uploaded") { try await laptop.property("PendingChanges") == .integer(0) }
        }
    }

    @Test func `a write beats the value that it has seen, and of two that didn't know each other one wins everywhere`()
        async throws
    {
        try await withTwoDevices { devices in
            try await devices.join()
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            try await laptop.set("key", .integer(1))
            #expect(try await devices.converge() == ["key": .integer(1)])
            try await phone.set("key", .integer(2))
            #expect(try await devices.converge() == ["key": .integer(2)])
            for round in 0..<Int64(10) {
                try await laptop.set("contested", .integer(round))
                try await phone.set("contested", .integer(-round - 1))
                let value = try await devices.converge()["contested"]
                #expect(value == .integer(round) || value == .integer(-round - 1))
            }
        }
    }

    @Test func `keys that a manifest keeps here never leave`() async throws {
        try await withTwoDevices({ $0.manifests = [ManifestText(notes, localKeys: ["window"])] }) { devices in
            try await devices.join()
            try await devices.store(devices.laptop).apply(["window": .integer(1), "theme": .integer(1)])
            try await devices.store(devices.phone).set("window", .integer(2))
            try await devices.account(devices.laptop).syncNow()
            try await devices.account(devices.phone).syncNow()
            #expect(
                try await devices.store(devices.phone).everything() == ["window": .integer(2), "theme": .integer(1)]
            )
            #expect(try await devices.store(devices.laptop).value("window") == .integer(1))
        }
    }

    @Test func `all subscribers are told of values that a changed manifest shows or hides`() async throws {
        try await withTwoDevices({ $0.manifests = [ManifestText(notes, localKeys: ["window"])] }) { devices in
            try await devices.join()
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            try devices.phone.install(ManifestText(notes).xml, as: "app0.plist")
            try await phone.client.manager("Reload")
            try await phone.set("window", .integer(1))
            try await phone.client.account.syncNow()
            try await laptop.client.account.syncNow()
            try await laptop.subscribe()
            #expect(try await laptop.everything().isEmpty)
            try devices.laptop.install(ManifestText(notes).xml, as: "app0.plist")
            try await laptop.client.manager("Reload")
            let signal = try await laptop.signal("the value that is shown") { $0.reason == 0 }
            #expect(signal.keys == ["window"])
            #expect(try await laptop.everything() == ["window": .integer(1)])
        }
    }

    @Test func `devices that exceed a limit together keep everything, and may only shrink`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            rename(devices.folder, devices.folder + ".away")
            let large = Value.data([UInt8](repeating: 1, count: 700_000))
            try await laptop.set("a", large)
            try await phone.set("b", large)
            for store in [laptop, phone] { try await store.subscribe() }
            rename(devices.folder + ".away", devices.folder)
            #expect(try await devices.converge().count == 2)
            let signals = [
                try await laptop.signal("too much") { $0.reason == 2 },
                try await phone.signal("too much") { $0.reason == 2 },
            ]
            #expect(signals[0].keys == signals[1].keys && signals[0].keys.count == 1)
            #expect(signals[0].info["limit"] == .string("total-bytes"))
            #expect(await errorName { try await laptop.set("c", .integer(1)) } == "QuotaExceeded")
            try await laptop.remove("a")
            try await laptop.set("c", .integer(1))
            #expect(try await devices.converge().keys.sorted() == ["b", "c"])
        }
    }

    // MARK: Accounts

    @Test func `signed out, the values stay, and what was written meanwhile is merged`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            try await laptop.set("key", .integer(1))
            _ = try await devices.converge()
            try await laptop.client.account.signOut()
            #expect(try await laptop.client.account.state() == "signed-out")
            #expect(try await laptop.client.account.property("Backend") == "")
            #expect(try await laptop.property("InitialSyncDone") == .boolean(false))
            #expect(try await laptop.everything() == ["key": .integer(1)])
            try await laptop.set("meanwhile", .integer(1))
            try await phone.set("key", .integer(2))
            try await phone.client.account.syncNow()
            try await laptop.client.account.join(devices.url)
            #expect(try await devices.converge() == ["key": .integer(2), "meanwhile": .integer(1)])
        }
    }

    @Test func `signed out with the values cleared, nothing is left here and everything elsewhere`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let laptop = try devices.store(devices.laptop)
            let generation = try await laptop.set("key", .integer(1))
            _ = try await devices.converge()
            try await laptop.subscribe()
            try await laptop.client.account.signOut(keepingValues: false)
            #expect(try await laptop.signal("the account's change") { $0.reason == 3 }.keys == ["key"])
            #expect(try await laptop.everything().isEmpty)
            #expect(try await laptop.generation() > generation)
            try await laptop.client.account.join(devices.url)
            #expect(try await devices.converge() == ["key": .integer(1)])
        }
    }

    @Test func `from one account to another and back, each keeps its own, and what waited goes out`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let laptop = try devices.store(devices.laptop)
            try await laptop.apply(["a": "A", "both": "A"])
            _ = try await devices.converge()
            rename(devices.folder, devices.folder + ".away")
            try await laptop.set("waiting", "A")
            let other = "folder://" + (try devices.makeFolder("other"))
            try await laptop.subscribe()
            try await laptop.client.account.join(other)
            let signal = try await laptop.signal("the other account") { $0.reason == 3 }
            #expect(signal.keys == ["a", "both", "waiting"])
            #expect(!laptop.received.contains { $0.reason == 1 })
            #expect(try await laptop.everything().isEmpty)
            try await laptop.apply(["b": "B", "both": "B"])
            try await laptop.client.account.syncNow()
            rename(devices.folder + ".away", devices.folder)
            laptop.forgetSignals()
            try await laptop.client.account.join(devices.url)
            let back = try await laptop.signal("the first account again") { $0.reason == 3 }
            #expect(back.keys == ["a", "b", "both", "waiting"])
            #expect(try await devices.converge() == ["a": "A", "both": "A", "waiting": "A"])
            try await laptop.client.account.join(other)
            #expect(try await laptop.everything() == ["b": "B", "both": "B"])
        }
    }

    @Test func `values can be brought into a new account, and only into a new one`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let laptop = try devices.store(devices.laptop)
            try await laptop.set("key", "A")
            _ = try await devices.converge()
            let (folder, cut) = (try devices.makeFolder("other"), try devices.makeFolder("cut"))
            let other = "folder://" + folder
            try await laptop.client.account.join(other, ["bring-values": .boolean(true)])
            #expect(try await laptop.everything() == ["key": "A"])
            try await laptop.client.account.syncNow()
            let phone = try devices.account(devices.phone)
            // An interrupted sign-in leaves an account with nothing in it.
            try FileManager.default.copyItem(atPath: folder + "/a", toPath: cut + "/a")
            try await phone.join("folder://" + cut, ["bring-values": .boolean(true)])
            #expect(try await devices.store(devices.phone).everything() == ["key": "A"])
            #expect(await errorName { try await phone.signIn(other, ["bring-values": .boolean(true)]) } == "Conflict")
            try await phone.join(other)
            #expect(try await devices.converge() == ["key": "A"])
        }
    }

    @Test func `a crash while values are brought into an account leaves them in it`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            try await devices.store(devices.laptop).set("key", "A")
            _ = try await devices.converge()
            let other = "folder://" + (try devices.makeFolder("other"))
            let identifier = try await devices.account(devices.phone).join(other)
            // The file is written before the database enters the account.
            devices.laptop.kill()
            try devices.changeAccountFile(of: devices.laptop) {
                ($0["url"], $0["account"], $0["bringsValues"]) = (other, identifier, true)
            }
            try await devices.laptop.start()
            #expect(try await devices.store(devices.laptop).everything() == ["key": "A"])
            try await devices.account(devices.laptop).syncNow()
            try await devices.account(devices.phone).syncNow()
            #expect(try await devices.store(devices.phone).everything() == ["key": "A"])
            try await eventually("it is done") { try devices.accountFile(of: devices.laptop)["bringsValues"] == nil }
        }
    }

    @Test func `a crash while an account is renamed doesn't make it another one`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let store = try devices.store(devices.laptop)
            try await store.set("key", "A")
            _ = try await devices.converge()
            let (laptop, former) = (devices.laptop, String(repeating: "f", count: 32))
            let identifier = try devices.accountFile(of: laptop)["account"] as? String
            try await laptop.stop()
            // The database is written before the file.
            try devices.changeAccountFile(of: laptop) { $0["account"] = former }
            let renamed = try await run([
                "python3", "-c",
                """
                import sqlite3, sys
                db = sqlite3.connect(sys.argv[1])
                account, = db.execute("SELECT value FROM property WHERE name = 'account'").fetchone()
                db.execute("INSERT OR REPLACE INTO property VALUES (?, ?)", (f"former-names-{account}", sys.argv[2]))
                db.commit()
                """, laptop.stateDirectory + "/u\(geteuid())/stores.sqlite", former,
            ])
            try #require(renamed.exit == .code(0), "\(renamed)")
            try FileManager.default.moveItem(atPath: devices.folder, toPath: devices.folder + "-away")
            try await laptop.start()
            // While the remote is away, what is written follows what was there.
            try await store.set("key", "B")
            #expect(try await devices.account(laptop).isDownloaded())
            try FileManager.default.moveItem(atPath: devices.folder + "-away", toPath: devices.folder)
            #expect(try devices.accountFile(of: laptop)["account"] as? String == identifier)
            #expect(try await devices.converge() == ["key": "B"])
        }
    }

    @Test func `RemoveStore forgets here, and the store comes back from the account`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let laptop = try devices.store(devices.laptop)
            try await laptop.set("key", .integer(1))
            _ = try await devices.converge()
            try await laptop.client.manager("RemoveStore") {
                try $0.append(notes)
                try $0.append(0 as UInt64)
            }
            #expect(try await devices.converge() == ["key": .integer(1)])
        }
    }

    // MARK: Faults

    @Test func `folders that can't be an account's are refused by what is wrong with them`() async throws {
        try await withTwoDevices { devices in
            let account = try devices.account(devices.laptop)
            func name(_ url: String) async -> String { await errorName { try await account.signIn(url) } }
            let file = devices.directory.path + "/file"
            try "".write(toFile: file, atomically: false, encoding: .utf8)
            symlink(devices.folder, devices.directory.path + "/link")
            #expect(await name("folder://\(devices.directory.path)/absent") == "BackendUnavailable")
            #expect(await name("gopher://host/") == "BackendUnsupported")
            #expect(["BackendUnavailable", "InvalidArgs", "AccessDenied"].contains(await name("folder://\(file)")))
            for url in [
                "folder://host\(devices.folder)", "folder:relative", "folder://\(devices.folder)?x", "folder://",
            ] {
                let error = await name(url)
                #expect(["InvalidArgs", "BackendUnsupported"].contains(error), "\(url): \(error)")
            }
            #expect(try await account.state() == "signed-out")
            #expect(try FileManager.default.contentsOfDirectory(atPath: devices.folder).isEmpty)
        }
    }

    @Test func `a folder that was emptied pauses the sync, and nothing is deleted`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let laptop = try devices.store(devices.laptop)
            try await laptop.set("key", .integer(1))
            _ = try await devices.converge()
            let account = laptop.client.account
            try FileManager.default.removeContents(ofDirectory: devices.folder)
            #expect(await errorName { try await account.syncNow() } == "RemoteReset")
            #expect(try await account.state() == "paused")
            #expect(try await account.lastError() == "RemoteReset")
            try await laptop.set("other", .integer(1))
            #expect(try await laptop.everything() == ["key": .integer(1), "other": .integer(1)])
            #expect(await errorName { try await laptop.synchronize(0x1) } == "RemoteReset")
            try await devices.laptop.restart()
            #expect(try await laptop.everything().count == 2)
            #expect(await errorName { try await account.syncNow() } == "RemoteReset")
            #expect(
                try FileManager.default.subpathsOfDirectory(atPath: devices.folder).filter { $0.hasPrefix("a/") }
                    .isEmpty
            )
        }
    }

    @Test func `a folder of another account pauses the sync`() async throws {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            try await laptop.join(devices.url)
            let other = try devices.makeFolder("other")
            try await phone.join("folder://\(other)")
            rename(devices.folder, devices.folder + ".away")
            rename(other, devices.folder)
            #expect(await errorName { try await laptop.syncNow() } == "RemoteReset")
            #expect(try await laptop.state() == "paused")
            rename(devices.folder, other)
            rename(devices.folder + ".away", devices.folder)
        }
    }

    /// Returns the account's files for which `isWanted` is true, without directories.
    private func files(_ folder: String, _ isWanted: (String) -> Bool = { _ in true }) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: folder).filter { path in
            var isDirectory: ObjCBool = false
            _ = FileManager.default.fileExists(atPath: folder + "/" + path, isDirectory: &isDirectory)
            return !isDirectory.boolValue && isWanted(path)
        }.map { folder + "/" + $0 }
    }

    @Test func `garbage, strange names and conflict copies in the folder harm nothing`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            try await laptop.set("key", .integer(1))
            _ = try await devices.converge()
            for path in try files(devices.folder) {
                let data = FileManager.default.contents(atPath: path) ?? Data()
                try data.write(to: URL(filePath: path + ".sync-conflict-20260101-000000-ABCDEFG"))
                try Data(data.prefix(data.count / 2)).write(to: URL(filePath: path + ".tmp"))
                let parent = URL(filePath: path).deletingLastPathComponent()
                try Data(repeating: 0xa5, count: 5000).write(to: parent.appending(path: "garbage"))
                try Data().write(to: parent.appending(path: ".stfolder-\(UUID().uuidString)"))
                symlink("/etc/passwd", parent.path + "/link-\(UUID().uuidString)")
                mkfifo(parent.path + "/fifo-\(UUID().uuidString)", 0o600)
            }
            try await laptop.set("key", .integer(2))
            try await phone.set("other", .integer(2))
            #expect(try await devices.converge() == ["key": .integer(2), "other": .integer(2)])
        }
    }

    @Test func `a head that is torn is left alone until it is whole, and the device's own is written anew`()
        async throws
    {
        try await withTwoDevices { devices in
            try await devices.join()
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            try await laptop.set("key", .integer(1))
            try await phone.set("other", .integer(1))
            _ = try await devices.converge()
            for path in try files(devices.folder, { !$0.hasPrefix("a/") }) {
                let data = FileManager.default.contents(atPath: path) ?? Data()
                try Data(data.prefix(data.count * 2 / 3)).write(to: URL(filePath: path))
            }
            _ = await failure { try await phone.client.account.syncNow() }
            #expect(try await phone.everything() == ["key": .integer(1), "other": .integer(1)])
            try await laptop.set("key", .integer(2))
            try await phone.set("other", .integer(2))
            try await eventually("both are whole again") {
                for store in [laptop, phone] { _ = await failure { try await store.client.account.syncNow() } }
                let expected: [Text: Value] = ["key": .integer(2), "other": .integer(2)]
                let (left, right) = (try await laptop.everything(), try await phone.everything())
                return left == expected && right == expected
            }
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `a folder that turns read-only is an error, and it goes on when it isn't`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let laptop = try devices.store(devices.laptop)
            #expect(try await run(["mount", "--bind", devices.folder, devices.folder]).exit == .code(0))
            defer { umount2(devices.folder, Int32(MNT_DETACH)) }
            // The kernel refuses this while a process writes, and both devices have just started.
            try await eventually("it is read-only") {
                try await run(["mount", "-o", "remount,bind,ro", devices.folder]).exit == .code(0)
            }
            try await laptop.set("key", .integer(1))
            let name = await errorName { try await laptop.client.account.syncNow() }
            #expect(name == "AccessDenied")
            #expect(try await laptop.client.account.state() == "error")
            #expect(try await laptop.property("PendingChanges") == .integer(1))
            #expect(try await run(["mount", "-o", "remount,bind,rw", devices.folder]).exit == .code(0))
            #expect(try await devices.converge() == ["key": .integer(1)])
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `a drive that is unplugged is away, and not emptied, and goes on when it is back`() async throws {
        try await withTwoDevices { devices in
            let drive = try devices.directory.mountSmallDisk("drive", bytes: 4 << 20)
            #expect(try await run(["mount", "--bind", drive, devices.folder]).exit == .code(0))
            defer { umount2(devices.folder, Int32(MNT_DETACH)) }
            let laptop = try devices.store(devices.laptop)
            try await laptop.client.account.join(devices.url)
            try await laptop.client.account.syncNow()
            #expect(umount2(devices.folder, Int32(MNT_DETACH)) == 0)
            try await laptop.set("key", .integer(1))
            #expect(await errorName { try await laptop.client.account.syncNow() } == "BackendUnavailable")
            #expect(try await laptop.client.account.state() == "offline")
            #expect(try await run(["mount", "--bind", drive, devices.folder]).exit == .code(0))
            try await eventually("it goes on by itself") {
                try await laptop.property("PendingChanges") == .integer(0)
            }
            #expect(try await laptop.client.account.state() == "idle")
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `a folder on a full disk is BackendFull, and it goes on with space`() async throws {
        try await withTwoDevices { devices in
            let disk = try devices.directory.mountSmallDisk("disk", bytes: 256 << 10)
            let laptop = try devices.store(devices.laptop)
            try await laptop.client.account.join("folder://\(disk)")
            try await laptop.set(
                "large",
                .data((0..<700_000).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 13) })
            )
            #expect(await errorName { try await laptop.client.account.syncNow() } == "BackendFull")
            #expect(try await laptop.client.account.lastError() == "BackendFull")
            #expect(try await run(["mount", "-o", "remount,size=64m", disk]).exit == .code(0))
            try await laptop.client.account.syncNow()
            #expect(try await laptop.property("PendingChanges") == .integer(0))
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot), arguments: [0, 2, 5, 8, 12, 30] as [UInt])
    func `a device whose disk is full in the middle of a sync cycle loses nothing, says why, and goes on with space`(
        pages: UInt
    ) async throws {
        try await withTwoDevices(diskBytes: 8 << 20) { devices in
            let disk = try #require(devices.disk)
            try await devices.join()
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            try await phone.apply(["a": .integer(0), "b": .integer(0)])
            var before = try await devices.converge()
            try await phone.apply(["a": .data([UInt8](repeating: 1, count: 20_000)), "b": .integer(1)])
            try await phone.client.account.syncNow()
            try await laptop.set("laptop", .integer(1))
            try devices.fill(disk, leaving: pages)
            let name = await errorName { try await laptop.client.account.syncNow() }
            let values = try await laptop.everything()
            // There may be room for the received changes, but not for recording the upload.
            before["laptop"] = .integer(1)
            let after = try await phone.everything().merging(["laptop": .integer(1)]) { $1 }
            #expect(values == before || values == after)
            #expect(name == (pages == 30 ? "" : "IOError") || (1...12).contains(pages) && name.isEmpty)
            if !name.isEmpty {
                #expect(try await laptop.client.account.state() == "error")
                #expect(try await laptop.client.account.lastError() == "IOError")
                #expect(try await laptop.client.account.text("LastErrorMessage").contains("no space left"))
            }
            unlink(disk + "/filler")
            // The laptop recovers by itself, without a call of SyncNow.
            try await eventually("it goes on") {
                try await phone.client.account.syncNow()
                let (here, there) = (try await laptop.everything(), try await phone.everything())
                let state = try await laptop.client.account.state()
                return here == after && there == after && state == "idle"
            }
            #expect(try await laptop.client.account.lastError() == "")
            try await devices.laptop.restart()
            #expect(try await laptop.everything() == after)
            #expect(try await devices.converge() == after)
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot), arguments: [true, false])
    func `keys that a manifest makes local on a full disk stay on the device, or are refused`(
        isSetWhileFull: Bool
    ) async throws {
        try await withTwoDevices(diskBytes: 8 << 20) { devices in
            let disk = try #require(devices.disk)
            try await devices.join()
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            try await laptop.set("shared", .integer(1))
            _ = try await devices.converge()
            try devices.fill(disk, leaving: 0)
            try devices.laptop.install(ManifestText(notes, localKeys: ["secret*"]).xml, as: "app0.plist")
            try await laptop.client.manager("Reload")
            if isSetWhileFull {
                #expect(await errorName { try await laptop.set("secret1", .integer(1)) } == "IOError")
                #expect(try await laptop.everything() == ["shared": .integer(1)])
            }
            unlink(disk + "/filler")
            try await eventually("there is room again") {
                await errorName { try await laptop.set("secret1", .integer(2)) } == ""
            }
            try await laptop.set("shared", .integer(2))
            try await laptop.client.account.syncNow()
            try await phone.client.account.syncNow()
            #expect(try await phone.everything() == ["shared": .integer(2)])
            try await devices.laptop.restart()
            #expect(try await laptop.everything() == ["shared": .integer(2), "secret1": .integer(2)])
            try await laptop.client.account.syncNow()
            try await phone.client.account.syncNow()
            #expect(try await phone.everything() == ["shared": .integer(2)])
        }
    }

    @Test func `CheckBackend says step by step whether a folder will do, and leaves nothing`() async throws {
        try await withTwoDevices { devices in
            let account = try devices.account(devices.laptop)
            let good = try await account.check(devices.url)
            #expect(
                good.map { $0["step"] } == [
                    "address", "open", "write", "read", "overwrite", "list", "delete", "account",
                ])
            #expect(good.allSatisfy { $0["ok"] == .boolean(true) })
            #expect(good.last?["detail"] == "There is no account here yet.")
            #expect(try FileManager.default.contentsOfDirectory(atPath: devices.folder).isEmpty)
            let absent = "\(devices.directory.path)/absent"
            let bad = try await account.check("folder://\(absent)")
            #expect(bad.map { $0["step"] } == ["address", "open"])
            #expect(bad.map { $0["ok"] } == [.boolean(true), .boolean(false)])
            let detail = "\(absent) doesn't exist. If the folder was deleted, create it again."
            #expect(bad.last?["detail"] == .string(Text(detail)))
            #expect(await errorName { _ = try await account.check("gopher://host/") } == "BackendUnsupported")
            #expect(try await account.state() == "signed-out")
        }
    }

    @Test func `devices that are killed again and again converge`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            var expected: [Text: Value] = [:]
            for round in 0..<20 {
                let device = round % 2 == 0 ? devices.laptop : devices.phone
                let store = try devices.store(device)
                for number in 0..<5 {
                    let (key, value) = (
                        "\(device === devices.laptop) \(round % 7) \(number)", Value.integer(Int64(round))
                    )
                    try await store.set(key, value)
                    expected[Text(key)] = value
                }
                let syncing = Task { @BusActor in _ = await failure { try await store.client.account.syncNow() } }
                for _ in 0..<round { await Task.yield() }
                device.kill()
                await syncing.value
                try await device.start()
            }
            #expect(try await devices.converge() == expected)
        }
    }

    @Test func `a database that is damaged while nobody calls is found so by the sync, and comes back`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let phone = try devices.store(devices.phone)
            // More of the file than the service keeps in memory.
            for number in 0..<100 { try await phone.set("key \(number)", .data([UInt8](repeating: 1, count: 9000))) }
            let before = try await devices.converge()
            try await devices.laptop.stop()
            try await devices.laptop.start()
            let laptop = try devices.store(devices.laptop)
            try await laptop.client.account.syncNow()
            let path = "\(devices.laptop.stateDirectory)/u\(geteuid())/stores.sqlite"
            let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
            let descriptor = open(path, O_WRONLY)
            let garbage = [UInt8](repeating: 0xa5, count: size)
            #expect(pwrite(descriptor, garbage, size, 0) == size)
            close(descriptor)
            try await phone.set("new", .integer(1))
            try await phone.client.account.syncNow()
            try await eventually("it is set aside") { devices.laptop.log.contains("was set aside") }
            try await eventually("the values are back") {
                var values: [Text: Value] = [:]
                return await errorName { values = try await laptop.everything() } == "" && values.count == 101
            }
            #expect(try await devices.converge().filter { $0.key != "new" } == before)
        }
    }

    @Test func `a database that is damaged comes back from the account`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let laptop = try devices.store(devices.laptop)
            for number in 0..<100 { try await laptop.set("key \(number)", .integer(Int64(number))) }
            let before = try await devices.converge()
            try await devices.laptop.stop()
            truncate("\(devices.laptop.stateDirectory)/u\(geteuid())/stores.sqlite", 4096)
            try await devices.laptop.start()
            try await eventually("the values are back") {
                var values: [Text: Value] = [:]
                return await errorName { values = try await laptop.everything() } == "" && values == before
            }
            #expect(try await laptop.client.account.isDownloaded())
            try await laptop.set("new", .integer(1))
            #expect(try await devices.converge().count == 101)
        }
    }
}

/// Folders of a service in system mode.
@BusActor
@Suite(.timeLimit(.minutes(30)), .enabled(if: Users.areSeveral, Users.needsRoot))
struct FolderRootTests {
    @Test func `in system mode an account is in a root that the administrator named, a folder for each user`()
        async throws
    {
        let place = try TemporaryDirectory()
        let root = try place.makeDirectory("root", mode: 0o755, owner: Users.service)
        let elsewhere = try place.makeDirectory("elsewhere", mode: 0o777, owner: Users.service)
        symlink(root, place.path + "/link")
        try await withMachine {
            $0.mode = "system"
            $0.arguments = ["--folder-root", root, "--folder-root", place.path + "/link"]
        } _: { machine in
            let account = try machine.client(as: Users.nobody).account
            let roots = try await machine.client(as: Users.nobody).manager("Identify") { _ in
            } decode: { answer in
                try answer.readValues().first { $0.key == "folder-roots" }?.value
            }
            #expect(roots == .array([.string(Text(root)), .string(Text(place.path + "/link"))]))
            try await warns(machine, "/link leads through a symbolic link")
            func name(_ url: String) async -> String { await errorName { try await account.signIn(url) } }
            for path in [
                elsewhere, root + "/../elsewhere", place.path, "/", root + "/u\(Users.daemon)", place.path + "/link",
            ] {
                let error = await name("folder://\(path)")
                #expect(["AccessDenied", "InvalidArgs", "BackendUnsupported"].contains(error), "\(path): \(error)")
            }
            try await account.join("folder://\(root)")
            let store = try machine.store(as: Users.nobody)
            try await store.set("key", .string(Text(secret)))
            try await account.syncNow()
            #expect(try await store.property("PendingChanges") == .integer(0))
            let attributes = try FileManager.default.attributesOfItem(atPath: "\(root)/u\(Users.nobody)")
            #expect(attributes[.ownerAccountID] as? UInt32 == Users.service)
            #expect((attributes[.posixPermissions] as? Int).map { $0 & 0o007 } == 0)
            let other = try machine.client(as: Users.daemon).account
            try await other.join("folder://\(root)")
            #expect(try await other.property("AccountIdentifier") != account.property("AccountIdentifier"))
            let peek = try await run(["ls", "\(root)/u\(Users.nobody)"], as: Users.daemon)
            #expect(peek.exit != .code(0))
            #expect(try FileManager.default.contentsOfDirectory(atPath: elsewhere).isEmpty)
        }
        withExtendedLifetime(place) {}
    }

    /// Waits for a warning.
    private func warns(_ machine: Machine, _ words: String) async throws {
        let client = try machine.client(as: Users.nobody)
        try await eventually("the folder roots are looked at") {
            let warnings = try await client.property(BusNames.managerPath, BusNames.managerInterface, "Warnings")
            return "\(warnings)".contains(words)
        }
    }

    @Test(arguments: ["a missing one", "a file", "another user's"])
    func `a root in which the service can't write is warned of`(kind: String) async throws {
        let place = try TemporaryDirectory()
        chmod(place.path, 0o755)
        let root = place.path + "/root"
        switch kind {
        case "a file": try Data().write(to: URL(filePath: root))
        case "another user's": _ = try place.makeDirectory("root", mode: 0o755)
        default: break
        }
        try await withMachine {
            $0.mode = "system"
            $0.arguments = ["--folder-root", root]
        } _: { machine in
            try await warns(machine, "FolderRoot=\(root) ")
        }
        withExtendedLifetime(place) {}
    }

    @Test func `a user's folder that became a link is not followed`() async throws {
        let place = try TemporaryDirectory()
        let root = try place.makeDirectory("root", mode: 0o755, owner: Users.service)
        let target = try place.makeDirectory("target", mode: 0o700, owner: Users.service)
        symlink(target, "\(root)/u\(Users.nobody)")
        try await withMachine {
            $0.mode = "system"
            $0.arguments = ["--folder-root", root]
        } _: { machine in
            let account = try machine.client(as: Users.nobody).account
            #expect(await errorName { try await account.signIn("folder://\(root)") } == "AccessDenied")
            #expect(try FileManager.default.contentsOfDirectory(atPath: target).isEmpty)
        }
        withExtendedLifetime(place) {}
    }

    @Test func `in user mode another user's folder is refused`() async throws {
        let place = try TemporaryDirectory()
        let folder = try place.makeDirectory("folder", mode: 0o777, owner: Users.daemon)
        try await withMachine { machine in
            let account = try machine.client(as: Users.nobody).account
            #expect(await errorName { try await account.signIn("folder://\(folder)") } == "AccessDenied")
        }
        withExtendedLifetime(place) {}
    }
}
