// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// An account's properties, compared with what happened.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct AccountStateTests {
    /// Returns the account's properties, each shortened to one word.
    private func properties(_ account: AccountClient) async throws -> [String: String] {
        let all = try await account.client.properties(account.path, BusNames.accountInterface)
        return all.mapValues { value in
            switch value {
            case .string(let text): text.string.replacing("org.example.UbiquitousStore.Error.", with: "")
            case .integer(let number): number == 0 ? "0" : "some"
            case .boolean(let flag): "\(flag)"
            default: "?"
            }
        }
    }

    private func expect(_ account: AccountClient, _ expected: [String: String], _ line: Int = #line) async throws {
        let all = try await properties(account)
        for (name, value) in expected {
            #expect(all[name] == value, "\(name) at \(line): \(all)")
        }
    }

    @Test func `every property says what happened, from state to state`() async throws {
        let directory = try TemporaryDirectory()
        // Pending changes are uploaded only on a call, so that the test can look at them first.
        try Data("[Sync]\nCoalescing=1h\n".utf8).write(to: URL(filePath: directory.path + "/settings"))
        try await withTwoDevices {
            $0.arguments = ["--configuration", directory.path + "/settings"]
        } _: { devices in
            let store = try devices.store(devices.laptop)
            let account = store.client.account
            try await account.join(devices.url)
            try await account.syncNow()
            try await store.set("key", .integer(1))
            try await expect(account, ["State": "idle", "PendingChanges": "some", "LastErrorName": ""])
            try await account.syncNow()
            let identifier = try await account.text("AccountIdentifier")
            let well = [
                "State": "idle", "Backend": devices.url, "AccountIdentifier": identifier, "InitialSyncDone": "true",
                "PendingChanges": "0", "LastPullUSec": "some", "LastPushUSec": "some", "LastErrorName": "",
                "LastErrorMessage": "", "NextAttemptUSec": "0",
            ]
            try await expect(account, well)
            try await devices.laptop.restart()
            try await expect(account, ["LastPullUSec": "some", "LastPushUSec": "some", "InitialSyncDone": "true"])

            rename(devices.folder, devices.folder + ".away")
            _ = await failure { try await account.syncNow() }
            try await expect(
                account,
                [
                    "State": "offline", "LastErrorName": "BackendUnavailable", "NextAttemptUSec": "some",
                    "Backend": devices.url,
                ])
            try await account.setPaused(true)
            try await expect(account, ["State": "paused", "LastErrorName": "", "NextAttemptUSec": "0"])
            rename(devices.folder + ".away", devices.folder)
            try await account.setPaused(false)
            try await account.syncNow()
            try await expect(account, well)

            try await account.signOut()
            try await expect(
                account,
                [
                    "State": "signed-out", "Backend": "", "AccountIdentifier": "", "InitialSyncDone": "false",
                    "LastPullUSec": "0", "LastPushUSec": "0", "LastErrorName": "", "NextAttemptUSec": "0",
                ])
            try await account.join(devices.url)
            try await account.syncNow()
            try await expect(account, well)
        }
    }

    @Test func `while not all of an account has arrived the properties say so, and what is missing`() async throws {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            try await laptop.join(devices.url)
            try await devices.store(devices.laptop).set("large", .data([UInt8](repeating: 1, count: 100_000)))
            try await laptop.syncNow()
            // As if a sync tool had not delivered the segments yet.
            rename(devices.folder + "/s", devices.folder + ".segments")
            let identifier = try await phone.signIn(devices.url)
            _ = await failure { try await phone.syncNow() }
            try await devices.store(devices.phone).set("early", .integer(1))
            try await expect(
                phone,
                [
                    "State": "initial-sync", "Backend": devices.url, "AccountIdentifier": identifier,
                    "InitialSyncDone": "false", "PendingChanges": "some", "LastPushUSec": "0",
                    "LastErrorName": "BackendUnavailable",
                ])
            rename(devices.folder + "/s", devices.folder + ".empty")
            rename(devices.folder + ".segments", devices.folder + "/s")
            try await phone.syncNow()
            try await expect(
                phone,
                [
                    "State": "idle", "InitialSyncDone": "true", "PendingChanges": "0", "LastPullUSec": "some",
                    "LastPushUSec": "some", "LastErrorName": "", "LastErrorMessage": "", "NextAttemptUSec": "0",
                ])
        }
    }

    @Test func `an account that can't be read is an error that is told, until it is signed in again`() async throws {
        try await withTwoDevices { devices in
            let account = try devices.account(devices.laptop)
            let identifier = try await account.join(devices.url)
            devices.laptop.kill()
            let file = "\(devices.laptop.stateDirectory)/u\(geteuid())/account.plist"
            try Data("no property list".utf8).write(to: URL(filePath: file))
            try await devices.laptop.start()
            try await expect(
                account,
                [
                    "State": "error", "Backend": "", "AccountIdentifier": identifier, "InitialSyncDone": "true",
                    "LastErrorName": "Corrupt", "NextAttemptUSec": "0",
                ])
            let message = try await account.text("LastErrorMessage")
            #expect(message.hasPrefix("The account can't be read, because its file \(file) is damaged. Sign in again"))
            #expect(try await account.join(devices.url) == identifier)
            try await account.syncNow()
            try await expect(
                account,
                [
                    "State": "idle", "Backend": devices.url, "AccountIdentifier": identifier, "LastErrorName": "",
                    "LastErrorMessage": "",
                ])
        }
    }

    @Test func `renewing the credentials of a paused account begins no cycle`() async throws {
        try await withTwoDevices { devices in
            let account = try devices.account(devices.laptop)
            try await account.join(devices.url)
            try await account.setPaused(true)
            try await account.subscribe()
            _ = try await account.signIn(devices.url, ["renew": .boolean(true), "device-name": .string("kitchen")])
            #expect(try await account.state() == "paused")
            #expect(!account.received.contains { $0.state != "paused" }, "\(account.received)")
            try await devices.laptop.restart()
            #expect(try await account.state() == "paused")
        }
    }

    @Test func `AccountChanged comes when something changed, and not twice`() async throws {
        try await withTwoDevices { devices in
            let account = try devices.account(devices.laptop)
            try await account.subscribe()
            try await account.join(devices.url)
            try await account.syncNow()
            for _ in 0..<3 { try await account.syncNow() }
            rename(devices.folder, devices.folder + ".away")
            for _ in 0..<3 { _ = await failure { try await account.syncNow() } }
            rename(devices.folder + ".away", devices.folder)
            try await account.syncNow()
            let other = try devices.makeFolder("other")
            try await account.join("folder://\(other)")
            try await account.signOut()
            try await eventually("all of it was told") { account.received.last?.state == "signed-out" }
            for (signal, next) in zip(account.received, account.received.dropFirst()) { #expect(signal != next) }
            let states = account.received.map(\.state)
            #expect(states.filter { $0 == "offline" }.count == 1, "\(states)")
            #expect(states.first == "initial-sync")
            #expect(account.received.last?.info["account-identifier"] == .string(""))
        }
    }

    @Test func `credentials are in a file that only the service reads, and nowhere else`() async throws {
        try await withTwoDevices { devices in
            let account = try devices.account(devices.laptop)
            let options: KeyValuePairs<String, Value> = [
                "user": "ada", "password": .string(Text(secret)), "token": .string(Text(secret + "-token")),
            ]
            try await account.join(devices.url, options)
            try await account.syncNow()
            let bad = await failure { try await account.signIn("folder:///nowhere", options) }
            #expect(bad?.message.contains(secret) == false)
            let unknown = await failure { try await account.signIn("gopher://host", options) }
            #expect(unknown?.message.contains(secret) == false)
            #expect(try await !properties(account).values.contains { $0.contains(secret) })
            try await devices.laptop.restart()
            try await account.syncNow()
            let root = devices.laptop.stateDirectory
            var holders: [String] = []
            for path in try FileManager.default.subpathsOfDirectory(atPath: root) {
                guard let data = FileManager.default.contents(atPath: "\(root)/\(path)") else { continue }
                if data.range(of: Data(secret.utf8)) != nil { holders.append(path) }
            }
            #expect(holders == ["u\(geteuid())/account.plist"])
            var status = stat()
            #expect(stat("\(root)/u\(geteuid())/account.plist", &status) == 0 && status.st_mode & 0o777 == 0o600)
            for path in try FileManager.default.subpathsOfDirectory(atPath: devices.folder) {
                let data = FileManager.default.contents(atPath: "\(devices.folder)/\(path)") ?? Data()
                #expect(data.range(of: Data(secret.utf8)) == nil)
            }
            try await account.signOut()
            #expect(access("\(root)/u\(geteuid())/account.plist", F_OK) != 0)
        }
    }
    @Test func `what a crash leaves of an account's file is gone after a start, and after signing out`() async throws {
        try await withTwoDevices { devices in
            let file = "\(devices.laptop.stateDirectory)/u\(geteuid())/account.plist"
            let remains = file + ".new"
            let account = try devices.account(devices.laptop)
            try await account.join(devices.url, ["user": "ada", "password": .string(Text(secret))])
            devices.laptop.kill()
            try FileManager.default.copyItem(atPath: file, toPath: remains)
            try await devices.laptop.start()
            #expect(access(remains, F_OK) != 0)
            try FileManager.default.copyItem(atPath: file, toPath: remains)
            try await account.signOut()
            #expect(access(remains, F_OK) != 0 && access(file, F_OK) != 0)
            // At a first sign-in, a crash leaves only the temporary file.
            devices.laptop.kill()
            try Data(secret.utf8).write(to: URL(filePath: remains))
            try await devices.laptop.start()
            #expect(access(remains, F_OK) != 0)
        }
    }
}
