// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// Paused accounts, stores that stay on their device, and stores that are removed everywhere.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct RestingTests {
    @Test func `a paused account neither gives nor takes until it goes on, over a restart too`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            let account = laptop.client.account
            try await account.subscribe()
            try await account.setPaused(true)
            try await account.setPaused(true)
            // A poll that was under way may be reported first.
            try await eventually("it is told once") { account.received.map(\.state).suffix(1) == ["paused"] }
            #expect(account.received.count { $0.state == "paused" } == 1)
            #expect(try await account.lastError() == "")
            try await laptop.set("laptop", .integer(1))
            try await phone.set("phone", .integer(1))
            try await phone.client.account.syncNow()
            #expect(await errorName { try await account.syncNow() } == "BackendUnavailable")
            #expect(try await laptop.synchronize() == false)
            try await devices.laptop.restart()
            #expect(try await account.state() == "paused")
            #expect(await errorName { try await account.syncNow() } == "BackendUnavailable")
            #expect(try await laptop.everything() == ["laptop": .integer(1)])
            #expect(try await account.property("PendingChanges") == .integer(1))
            #expect(try await account.property("LastErrorName") == "")
            try await account.setPaused(false)
            #expect(try await devices.converge() == ["laptop": .integer(1), "phone": .integer(1)])
            #expect(try await account.state() == "idle")
        }
    }

    @Test func `a disk that takes long delays who has something kept on it, and nobody else`() async throws {
        let directory = try TemporaryDirectory()
        let folder = try directory.makeDirectory("folder", mode: 0o700)
        let (gate, state) = (directory.path + "/gate", try directory.makeDirectory("state", mode: 0o700))
        var options = Device.Options()
        (options.manifests, options.stateDirectory) = ([ManifestText(notes)], state)
        options.environment = try Device.diskEnvironment(
            journal: directory.path + "/journal", roots: [state], ["DISK_GATE": gate])
        let device = try await Device.start(on: .start(), options)
        let client = try BusClient(device.bus)
        let (account, store) = (client.account, try client.store(notes))
        try await account.join("folder://" + folder)
        // What the first cycles write on the loop is written then.
        try await account.syncNow()
        let own = try await account.text("DeviceIdentifier")
        func register() async throws {
            try await client.manager("RegisterManifest") {
                try $0.append(bytes: Array(ManifestText("org.example.Own").xml.utf8))
                try $0.appendDictionary {}
            }
        }

        _ = FileManager.default.createFile(atPath: gate, contents: nil)
        let pause = Task { try await account.setPaused(true) }
        let renaming = Task { try await account.rename(device: own, to: "renamed") }
        let registration = Task { try await register() }
        for number in 1...20 {
            try await store.set("key", .integer(Int64(number)))
            #expect(try await store.value("key") == .integer(Int64(number)))
        }
        #expect(try await account.state() != "paused", "nothing is on the disk yet")
        try FileManager.default.removeItem(atPath: gate)
        try await pause.value
        try await renaming.value
        try await registration.value
        #expect(try await [account.state(), account.text("DeviceName")] == ["paused", "renamed"])

        func manifest() throws -> UInt64? {
            let files = FileManager.default
            let path = try #require(files.subpaths(atPath: state)?.first { $0.contains("org.example.Own") })
            return try files.attributesOfItem(atPath: "\(state)/\(path)")[.systemFileNumber] as? UInt64
        }
        let written = try manifest()
        try await register()
        #expect(try manifest() == written, "the same is not written again")
        try await device.restart()
        #expect(try await [account.state(), account.text("DeviceName")] == ["paused", "renamed"])

        // Nothing that is still being written brings back an account that was signed out of.
        let last = (0..<20).map { number in Task { await errorName { try await account.setPaused(number % 2 == 1) } } }
        try await account.signOut()
        for answer in last { #expect(await ["", "NotSignedIn"].contains(answer.value)) }
        #expect(try await account.state() == "signed-out")
        #expect(FileManager.default.subpaths(atPath: state)?.contains { $0.contains("account.plist") } == false)
        check(device)
        device.kill()
        device.bus.end()
        withExtendedLifetime(directory) {}
    }

    /// Starts a device on whose disk a sync takes 20 ms.
    private func startOnSlowDisk(_ directory: TemporaryDirectory) async throws -> Device {
        let state = try directory.makeDirectory("state", mode: 0o700)
        var options = Device.Options()
        (options.manifests, options.stateDirectory) = ([ManifestText(notes)], state)
        options.environment = try Device.diskEnvironment(
            journal: directory.path + "/journal", roots: [state], ["DISK_DELAY": "20"])
        return try await Device.start(on: .start(), options)
    }

    @Test func `signing in and out again and again leaves a slow disk's time to others`() async throws {
        let directory = try TemporaryDirectory()
        let folder = try directory.makeDirectory("folder", mode: 0o700)
        let device = try await startOnSlowDisk(directory)
        let account = try BusClient(device.bus).account
        let start = ContinuousClock.now
        for _ in 1...4 {
            try await account.join("folder://" + folder)
            try await account.signOut()
        }
        // Each of the eight syncs once at least, and all but the last are followed by a wait of ten times as long.
        #expect(ContinuousClock.now - start >= .milliseconds(7 * 11 * 20))

        // The same while the account moves, which takes as long as it is paused.
        try await account.join("folder://" + folder)
        let move = Task { await errorName { try await account.encrypt() } }
        try await account.setPaused(true)
        let again = ContinuousClock.now
        for _ in 1...4 { _ = await errorName { try await account.signIn("folder://" + folder) } }
        #expect(ContinuousClock.now - again >= .milliseconds(3 * 11 * 20))
        try await account.setPaused(false)
        _ = await move.value
        check(device)
        device.kill()
        device.bus.end()
        withExtendedLifetime(directory) {}
    }

    @Test func `signing out never removes the key of an account that was entered meanwhile`() async throws {
        let directory = try TemporaryDirectory()
        let plain = try directory.makeDirectory("plain", mode: 0o700)
        let device = try await startOnSlowDisk(directory)
        let account = try BusClient(device.bus).account
        let own = try await account.text("DeviceIdentifier")
        for round in 1...3 {
            let encrypted = "folder://" + (try directory.makeDirectory("encrypted \(round)", mode: 0o700))
            try await account.signIn("folder://" + plain)
            // Each writes the account's file, and signing out waits for its turn.
            let renames = (0..<10).map { number in
                Task { await errorName { try await account.rename(device: own, to: "\(round) \(number)") } }
            }
            let signOut = Task { await errorName { try await account.signOut(["keep-last-key": .boolean(true)]) } }
            let signIn = Task { await errorName { try await account.signIn(encrypted, ["encrypt": .boolean(true)]) } }
            for rename in renames { _ = await rename.value }
            let (left, entered) = (await signOut.value, await signIn.value)
            // Whichever came first, a key that was made is there.
            if entered == "" {
                #expect(try await account.text("Backend") == encrypted, "\(left)")
                #expect(try await !account.recoveryPhrase(flags: 1).isEmpty)
            } else {
                try await account.signIn(encrypted, ["encrypt": .boolean(true)])
                #expect(try await !account.recoveryPhrase(flags: 1).isEmpty)
            }
            device.keepSecret(try await account.recoveryPhrase(flags: 1))
        }
        check(device)
        device.kill()
        device.bus.end()
        withExtendedLifetime(directory) {}
    }

    @Test func `a store that is not synchronized stays as it is here, and merges when it is again`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            let account = laptop.client.account
            try await laptop.apply(["both": .integer(1), "deleted": .integer(1)])
            _ = try await devices.converge()
            try await laptop.subscribe()
            try await account.setSynchronized(notes, false)
            try await laptop.apply(["laptop": .integer(1), "both": .integer(2)])
            try await phone.apply(["phone": .integer(1)], removing: ["deleted"])
            try await phone.client.account.syncNow()
            try await account.syncNow()
            #expect(
                try await laptop.everything()
                    == ["both": .integer(2), "deleted": .integer(1), "laptop": .integer(1)]
            )
            #expect(laptop.received.isEmpty)
            #expect(try await account.property("PendingChanges") == .integer(0))
            #expect(try await laptop.synchronize() == false)
            #expect(await errorName { _ = try await laptop.synchronize(0x1) } == "Conflict")
            #expect(try await account.isDownloaded())
            try await devices.laptop.restart()
            try await account.syncNow()
            try await phone.client.account.syncNow()
            #expect(try await phone.everything() == ["both": .integer(1), "phone": .integer(1)])
            #expect(try await laptop.everything().count == 3)
            try await laptop.subscribe()

            try await account.setSynchronized(notes, true)
            #expect(try await account.isDownloaded())
            let expected: [Text: Value] = ["both": .integer(2), "laptop": .integer(1), "phone": .integer(1)]
            #expect(try await devices.converge() == expected)
            let merge = try await laptop.signal("the merge") { _ in true }
            #expect(merge.reason == 0 && merge.keys == ["deleted", "phone"])
            #expect(laptop.received.count == 1)
        }
    }

    @Test func `a store that was never synchronized stays out of every account, and gives way when it joins one`()
        async throws
    {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            let account = laptop.client.account
            try await account.setSynchronized(notes, false)
            try await laptop.apply(["both": "laptop", "laptop": .integer(1)])
            try await phone.apply(["both": "phone", "phone": .integer(1)])
            try await phone.client.account.join(devices.url)
            try await phone.client.account.syncNow()
            try await account.join(devices.url)
            let other = try devices.makeFolder("other")
            try await account.join("folder://\(other)")
            try await account.join(devices.url)
            #expect(try await laptop.everything() == ["both": "laptop", "laptop": .integer(1)])
            #expect(try await phone.everything() == ["both": "phone", "phone": .integer(1)])
            try await laptop.set("later", .integer(1))
            try await account.setSynchronized(notes, true)
            let values = try await devices.converge()
            #expect(
                values == ["both": "phone", "laptop": .integer(1), "phone": .integer(1), "later": .integer(1)])
        }
    }

    @Test func `a store that stays here shows what was written last, from one account to another and back`()
        async throws
    {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            let account = laptop.client.account
            try await phone.apply(["both": "phone", "gone": "phone"])
            try await phone.client.account.join(devices.url)
            try await phone.client.account.syncNow()
            try await account.setSynchronized(notes, false)
            try await laptop.apply(["both": "laptop", "gone": "laptop", "laptop": .integer(1)])
            let other = try devices.makeFolder("other")
            try await account.join(devices.url)
            try await account.join("folder://\(other)")
            try await laptop.apply(["both": "later", "new": .integer(1)], removing: ["gone"])
            try await account.join(devices.url)
            let kept: [Text: Value] = ["both": "later", "laptop": .integer(1), "new": .integer(1)]
            #expect(try await laptop.everything() == kept)
            try await devices.laptop.restart()
            #expect(try await laptop.everything() == kept)

            // The account's values win, even where this device has deleted them; the others are uploaded.
            try await account.setSynchronized(notes, true)
            #expect(
                try await devices.converge()
                    == ["both": "phone", "gone": "phone", "laptop": .integer(1), "new": .integer(1)])
        }
    }

    @Test
    func `a store that stays here is let in to an account that this device had it of, and overwrites nothing there`()
        async throws
    {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            let account = laptop.client.account
            try await devices.join()
            try await laptop.apply(["both": "first", "deleted": "first", "first": .integer(1)])
            _ = try await devices.converge()
            let other = try devices.makeFolder("other")
            try await account.join("folder://\(other)")
            try await laptop.apply(["both": "second", "second": .integer(1), "taken": "second"])
            try await account.syncNow()
            try await account.setSynchronized(notes, false)
            try await laptop.apply(["both": "here", "here": .integer(1), "second": .integer(2)])
            try await phone.apply(["both": "phone", "taken": "phone"], removing: ["deleted"])
            try await phone.client.account.syncNow()

            // The store has the account's values from before, and its own for keys that the account lacks.
            try await account.join(devices.url)
            try await account.syncNow()
            #expect(
                try await laptop.everything() == [
                    "both": "first", "deleted": "first", "first": .integer(1), "here": .integer(1),
                    "second": .integer(2), "taken": "second",
                ])
            #expect(try await phone.everything() == ["both": "phone", "taken": "phone", "first": .integer(1)])
            try await account.setSynchronized(notes, true)
            #expect(
                try await devices.converge() == [
                    "both": "phone", "taken": "phone", "first": .integer(1), "here": .integer(1),
                    "second": .integer(2),
                ])

            // What was written in the other account still belongs to it, and is uploaded.
            try await account.join("folder://\(other)")
            try await phone.client.account.join("folder://\(other)")
            #expect(
                try await devices.converge() == [
                    "both": "here", "second": .integer(2), "taken": "second", "here": .integer(1),
                ])
        }
    }

    @Test func `a store that is removed everywhere goes on every device, and what it did not know of stays`()
        async throws
    {
        try await withTwoDevices { devices in
            try await devices.join()
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            try await laptop.apply(["a": .integer(1), "b": .integer(1)])
            _ = try await devices.converge()
            try await phone.subscribe()
            try await laptop.client.manager("RemoveStore") {
                try $0.append(notes)
                try $0.append(0x1 as UInt64)
            }
            #expect(try await devices.converge() == [:])
            #expect(try await phone.signal("the removal") { $0.reason == 0 }.keys == ["a", "b"])
            #expect(try await laptop.history("a").isEmpty)
            try await phone.set("a", .integer(2))
            #expect(try await devices.converge() == ["a": .integer(2)])

            try await laptop.client.account.setPaused(true)
            try await phone.set("unknown", .integer(1))
            try await laptop.client.manager("RemoveStore") {
                try $0.append(notes)
                try $0.append(0x1 as UInt64)
            }
            try await laptop.client.account.setPaused(false)
            #expect(try await devices.converge() == ["unknown": .integer(1)])
            try await laptop.client.account.setSynchronized(notes, false)
            let name = await errorName {
                try await laptop.client.manager("RemoveStore") {
                    try $0.append(notes)
                    try $0.append(0x1 as UInt64)
                }
            }
            #expect(name == "Conflict")
        }
    }
}
