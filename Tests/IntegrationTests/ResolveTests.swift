// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// The user's decisions about a remote that was reset, and what every device has afterwards.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct ResolveTests {
    /// Gives two devices one account with a common value, and empties its folder. Each device then has a pending write.
    private func emptied(_ devices: TwoDevices) async throws {
        try await devices.join()
        try await devices.store(devices.laptop).apply(["both": .integer(1), "gone": .integer(1)])
        _ = try await devices.converge()
        try await devices.store(devices.laptop).remove("gone")
        _ = try await devices.converge()
        try FileManager.default.removeContents(ofDirectory: devices.folder)
        for device in [devices.laptop, devices.phone] {
            let account = try devices.account(device)
            #expect(await errorName { try await account.syncNow() } == "RemoteReset")
            #expect(try await account.state() == "paused")
            #expect(try await account.property("NextAttemptUSec") == .integer(0))
        }
        try await devices.store(devices.laptop).set("laptop", .integer(1))
        try await devices.store(devices.phone).set("phone", .integer(1))
    }

    private let everything: [Text: Value] = ["both": .integer(1), "laptop": .integer(1), "phone": .integer(1)]

    @Test func `emptied and resolved in favour of one device, everything is there again and nothing is lost`()
        async throws
    {
        try await withTwoDevices { devices in
            try await emptied(devices)
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            let identifier = try await laptop.text("AccountIdentifier")
            try await laptop.resolve("local")
            try await laptop.syncNow()
            #expect(try await laptop.state() == "idle")
            #expect(try await laptop.lastError() == "")
            #expect(try await laptop.property("PendingChanges") == .integer(0))
            #expect(try await laptop.text("AccountIdentifier") == identifier)
            // The phone finds its account again, and keeps its pending write.
            #expect(try await phone.state() == "paused")
            try await phone.resolve("remote")
            #expect(try await devices.converge() == everything)
            #expect(try await phone.text("AccountIdentifier") == identifier)
            #expect(await errorName { try await laptop.resolve("local") } == "Conflict")
        }
    }

    @Test func `emptied and resolved in favour of both devices, both find one account`() async throws {
        try await withTwoDevices { devices in
            try await emptied(devices)
            try await devices.account(devices.laptop).resolve("local")
            try await devices.account(devices.phone).resolve("local")
            #expect(try await devices.converge() == everything)
        }
    }

    @Test(arguments: [false, true])
    func `signing in again at the same address doesn't decide which side is right`(holdsAnother: Bool) async throws {
        try await withTwoDevices { devices in
            try await emptied(devices)
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            if holdsAnother {
                try await phone.signOut()
                try await phone.join(devices.url)
            }
            let before = try await devices.store(devices.laptop).everything()
            // What was uploaded counts as well, because it is gone.
            let pending = try await laptop.property("PendingChanges")
            #expect(pending != .integer(0))
            let requests: [KeyValuePairs<String, Value>] = [
                ["renew": .boolean(true)], ["device-name": .string("desk")], ["create": .boolean(false)],
            ]
            for options in requests {
                #expect(await errorName { try await laptop.signIn(devices.url, options) } == "RemoteReset")
                #expect(try await devices.store(devices.laptop).everything() == before)
                #expect(try await laptop.property("PendingChanges") == pending)
            }
            let step = try await laptop.check(devices.url, ["sign-in": .boolean(true)]).last
            #expect(step?["error"] == .string("org.example.UbiquitousStore.Error.RemoteReset"), "\(step as Any)")
            try await laptop.resolve("local")
            try await laptop.syncNow()
            if holdsAnother { try await phone.syncNow() } else { try await phone.resolve("remote") }
            let values = try await devices.converge()
            #expect(values["laptop"] == .integer(1) && values["both"] == .integer(1), "\(values)")
        }
    }

    @Test(arguments: ["", "junk", "another account's", "under another name"])
    func `a damaged file that says which account is there is written anew`(_ damage: String) async throws {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            var bytes = Data(damage.utf8)
            if damage == "another account's" {
                let other = try TemporaryDirectory()
                try await laptop.join("folder://" + other.path)
                let name = try await laptop.text("AccountIdentifier")
                bytes = try Data(contentsOf: URL(filePath: other.path + "/a/" + name))
            }
            try await devices.join()
            try await devices.store(devices.laptop).set("both", .integer(1))
            _ = try await devices.converge()
            let marker = URL(filePath: devices.folder + "/a/" + (try await laptop.text("AccountIdentifier")))
            if damage == "under another name" {
                try FileManager.default.removeItem(at: marker)
                let other = String(repeating: "0123456789abcdef", count: 2)
                try Data().write(to: URL(filePath: devices.folder + "/a/" + other))
            } else {
                try bytes.write(to: marker)
            }
            // A service that starts reads everything.
            for device in [devices.laptop, devices.phone] {
                try await device.stop()
                try await device.start()
                let account = try devices.account(device)
                #expect(await errorName { try await account.syncNow() } == "Corrupt")
                #expect(try await account.text("LastErrorMessage").contains("account resolve local"))
            }
            #expect(await errorName { try await phone.resolve("remote") } == "Conflict")
            try await laptop.resolve("local")
            try await devices.store(devices.laptop).set("laptop", .integer(1))
            try await phone.syncNow()
            #expect(try await devices.converge() == ["both": .integer(1), "laptop": .integer(1)])
            for account in [laptop, phone] { #expect(try await account.lastError() == "") }
        }
    }

    @Test(arguments: [false, true])
    func `a damaged file that only a new device has noticed is written anew at once`(_ isEncrypted: Bool) async throws {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            try await laptop.join(devices.url, ["encrypt": .boolean(isEncrypted)])
            try await devices.store(devices.laptop).set("both", .integer(1))
            try await laptop.syncNow()
            let options: KeyValuePairs<String, Value> =
                isEncrypted ? ["recovery-phrase": .string(Text(try await laptop.recoveryPhrase()))] : [:]
            let folder = URL(filePath: devices.folder + "/a/")
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(names.count == 1)
            for name in names { try Data("junk".utf8).write(to: folder.appending(path: name)) }
            await #expect(throws: BusError.self) { try await phone.join(devices.url, options) }
            try await laptop.syncNow()
            #expect(try await laptop.lastError() == "", "the laptop has verified the file")
            try await laptop.resolve("local")
            try await phone.join(devices.url, options)
            #expect(try await devices.converge() == ["both": .integer(1)])
            #expect(await errorName { try await laptop.resolve("local") } == "Conflict")
        }
    }

    @Test(arguments: [false, true], [false, true])
    func `a device goes on without what was lost of the account, and joins it if it is found again`(
        isDamaged: Bool, isEncryptedThen: Bool
    ) async throws {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            let segments = devices.folder + "/s/"
            try await laptop.join(devices.url)
            let large = Value.data([UInt8](repeating: 1, count: 100_000))
            try await devices.store(devices.laptop).apply(["large": large, "theme": .string("dark")])
            try await laptop.syncNow()
            try await devices.laptop.stop()
            var lost: [String: Data] = [:]
            for name in try FileManager.default.contentsOfDirectory(atPath: segments) {
                lost[name] = try Data(contentsOf: URL(filePath: segments + name))
                try FileManager.default.removeItem(atPath: segments + name)
                if isDamaged { try Data("damaged".utf8).write(to: URL(filePath: segments + name)) }
            }
            #expect(!lost.isEmpty)
            _ = try await phone.signIn(devices.url)
            await #expect(throws: BusError.self) { try await phone.syncNow() }
            #expect(try await phone.state() == "initial-sync")
            try await devices.store(devices.phone).set("theme", .string("light"))
            try await phone.resolve("local")
            #expect(try await phone.state() == "idle")
            #expect(try await devices.store(devices.phone).everything() == ["theme": .string("light")])
            try await devices.store(devices.phone).set("phone", .integer(1))
            await #expect(throws: BusError.self) { try await phone.syncNow() }
            try await eventually("it is uploaded") { try await phone.property("PendingChanges") == .integer(0) }
            if isEncryptedThen { return try await checkEncrypting(phone) }
            // Others find what this device has.
            for (name, bytes) in lost { try bytes.write(to: URL(filePath: segments + name)) }
            try await devices.laptop.start()
            let values = try await devices.converge()
            #expect(values["large"] == large && values["phone"] == .integer(1))
            #expect(try await phone.lastError() == "")
        }
    }

    @Test(arguments: ["SyncNow", "Resolve"])
    func `what was damaged behind a device is uploaded again where somebody asks for it`(member: String) async throws {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            let segments = devices.folder + "/s/"
            try await laptop.join(devices.url)
            let large = Value.data([UInt8](repeating: 1, count: 100_000))
            try await devices.store(devices.laptop).set("large", large)
            try await laptop.syncNow(verifying: true)
            #expect(await errorName { try await laptop.resolve("local") } == "Conflict")
            for name in try FileManager.default.contentsOfDirectory(atPath: segments) {
                try Data().write(to: URL(filePath: segments + name))
            }
            // The service doesn't read again what it has written.
            try await laptop.syncNow()
            _ = try await phone.signIn(devices.url)
            await #expect(throws: BusError.self) { try await phone.syncNow() }
            switch member {
            case "SyncNow": try await laptop.syncNow(verifying: true)
            default: try await laptop.resolve("local")
            }
            try await phone.syncNow()
            #expect(try await devices.store(devices.phone).everything() == ["large": large])
        }
    }

    /// Checks that an account of which something was lost can be encrypted if its user says so.
    private func checkEncrypting(_ account: AccountClient) async throws {
        #expect(await errorName { try await account.encrypt() } == "Conflict")
        try await account.encrypt(["pass-over-unread": .boolean(true)])
        try await account.syncNow()
        #expect(try await account.lastError() == "")
    }

    @Test func `what a device that only ever read says is right goes up as well`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            try await devices.store(devices.laptop).set("key", .integer(1))
            _ = try await devices.converge()
            // As after a reboot: nothing has been published under the new origin.
            try await devices.phone.stop()
            try FileManager.default.removeContents(ofDirectory: devices.phone.runtimeDirectory)
            try await devices.phone.start()
            try await devices.laptop.stop()
            try FileManager.default.removeContents(ofDirectory: devices.folder)
            let phone = try devices.account(devices.phone)
            #expect(await errorName { try await phone.syncNow() } == "RemoteReset")
            try await phone.resolve("local")
            try await phone.syncNow()
            let third = try await Device.start(on: .start(), phoneOptions)
            let store = try BusClient(third.bus).store(notes)
            try await store.client.account.join(devices.url)
            #expect(try await store.everything() == ["key": .integer(1)])
            third.kill()
            third.bus.end()
        }
    }

    private var phoneOptions: Device.Options {
        var options = Device.Options()
        options.manifests = [ManifestText(notes)]
        return options
    }

    @Test func `emptied and resolved in favour of the remote, this device begins anew and the other one decides`()
        async throws
    {
        try await withTwoDevices { devices in
            try await emptied(devices)
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            let identifier = try await laptop.client.account.text("AccountIdentifier")
            try await laptop.subscribe()
            try await laptop.client.account.resolve("remote")
            #expect(try await laptop.signal("another account") { $0.reason == 3 }.keys == ["both", "laptop"])
            #expect(try await laptop.everything().isEmpty)
            #expect(try await laptop.client.account.text("AccountIdentifier") != identifier)
            #expect(laptop.received.count == 1)
            try await laptop.client.account.syncNow()
            #expect(try await phone.client.account.state() == "paused")
            // The phone's account is restored beside the new one, and the two are merged.
            try await phone.client.account.resolve("local")
            #expect(try await devices.converge() == everything)
            let accounts = [laptop, phone].map(\.client.account)
            #expect(try await accounts[0].text("AccountIdentifier") == accounts[1].text("AccountIdentifier"))
        }
    }

    @Test func `another account in the remote is joined or gone over to, as the person says`() async throws {
        for side in ["local", "remote"] {
            try await withTwoDevices { devices in
                let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
                let other = try devices.makeFolder("other")
                try await laptop.client.account.join(devices.url)
                try await phone.client.account.join("folder://\(other)")
                try await laptop.apply(["mine": .integer(1), "both": .integer(1)])
                try await laptop.client.account.syncNow()
                try await phone.apply(["theirs": .integer(2), "both": .integer(2)])
                try await phone.client.account.syncNow()
                let theirs = try await phone.client.account.text("AccountIdentifier")
                // The folder is replaced by the other one.
                try await devices.laptop.stop()
                try FileManager.default.removeContents(ofDirectory: devices.folder)
                for name in try FileManager.default.contentsOfDirectory(atPath: other) {
                    try FileManager.default.copyItem(
                        atPath: other + "/" + name, toPath: devices.folder + "/" + name)
                }
                try await devices.laptop.start()
                #expect(await errorName { try await laptop.client.account.syncNow() } == "RemoteReset")
                try await laptop.set("pending", .integer(1))
                try await laptop.subscribe()
                try await laptop.client.account.resolve(side)
                try await laptop.client.account.syncNow()
                if side == "remote" {
                    #expect(try await laptop.everything() == ["theirs": .integer(2), "both": .integer(2)])
                    #expect(try await laptop.client.account.text("AccountIdentifier") == theirs)
                    let signal = try await laptop.signal("another account") { $0.reason == 3 }
                    #expect(signal.keys == ["both", "mine", "pending", "theirs"])
                    #expect(try await laptop.history("mine").first?["why"] == .string("account"))
                } else {
                    // For keys that both accounts have, the later write wins.
                    #expect(
                        try await laptop.everything() == [
                            "mine": .integer(1), "theirs": .integer(2), "both": .integer(2), "pending": .integer(1),
                        ]
                    )
                    #expect(!laptop.received.contains { $0.reason == 3 })
                }
            }
        }
    }

    @Test func `a remote that is away can't be resolved, and one that is back goes on with either word`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let laptop = try devices.store(devices.laptop)
            let account = laptop.client.account
            try await laptop.set("key", .integer(1))
            _ = try await devices.converge()
            #expect(await errorName { try await account.resolve("remote") } == "Conflict")
            rename(devices.folder, devices.folder + ".away")
            _ = try devices.makeFolder("folder")
            #expect(await errorName { try await account.syncNow() } == "RemoteReset")
            rmdir(devices.folder)
            #expect(await errorName { try await account.resolve("local") } == "BackendUnavailable")
            #expect(try await account.lastError() == "RemoteReset")
            try await laptop.set("key", .integer(2))
            rename(devices.folder + ".away", devices.folder)
            try await account.resolve("remote")
            #expect(try await devices.converge() == ["key": .integer(2)])

            rename(devices.folder, devices.folder + ".away")
            _ = try devices.makeFolder("folder")
            #expect(await errorName { try await account.syncNow() } == "RemoteReset")
            rmdir(devices.folder)
            rename(devices.folder + ".away", devices.folder)
            try await account.syncNow()
            #expect(try await account.state() == "idle")
            #expect(try await account.lastError() == "")
        }
    }
}
