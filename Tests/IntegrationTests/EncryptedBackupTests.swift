// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import Testing
import UbiquitousStoreTesting

/// Devices restored from a backup from before their account moved to a key.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct EncryptedBackupTests {
    /// What the backup contains.
    enum Backup: CaseIterable { case everything, database, keyFile }

    /// Returns the paths of a device's files that a backup contains.
    private func files(_ device: Device, in backup: Backup) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: device.stateDirectory).filter { path in
            let name = path.split(separator: "/").last.map(String.init) ?? ""
            let isDatabase = name.hasPrefix("stores.sqlite")
            let isKey = name == "account-key.plist"
            return switch backup {
            case .everything: isDatabase || isKey || name == "account.plist"
            case .database: isDatabase
            case .keyFile: isKey
            }
        }
    }

    /// Returns the backup's files, read while the service is stopped.
    private func backUp(_ device: Device, _ backup: Backup) async throws -> [String: Data] {
        try await device.stop()
        let found = try files(device, in: backup).reduce(into: [:]) {
            $0[$1] = FileManager.default.contents(atPath: device.stateDirectory + "/" + $1)
        }
        try await device.start()
        return found
    }

    private func restore(_ device: Device, _ backup: Backup, _ found: [String: Data]) async throws {
        try await device.stop()
        let root = device.stateDirectory + "/"
        for name in try files(device, in: backup) { try FileManager.default.removeItem(atPath: root + name) }
        for (name, bytes) in found {
            try bytes.write(to: URL(filePath: root + name))
            chmod(root + name, 0o600)
        }
        try await device.start()
    }

    /// Returns the paths and contents in a folder.
    private func contents(of folder: String) throws -> [String: Data?] {
        try FileManager.default.subpathsOfDirectory(atPath: folder).reduce(into: [:]) {
            $0[$1] = FileManager.default.contents(atPath: folder + "/" + $1)
        }
    }

    /// Runs a test with a phone restored from a backup from before its account moved: from the unencrypted form, or
    /// from a former key.
    private func withRestored(
        _ backup: Backup, fromKey: Bool,
        _ body: @BusActor (TwoDevices, _ former: String, _ present: String) async throws -> Void
    ) async throws {
        try await withTwoDevices { devices in
            let laptop = try devices.account(devices.laptop)
            @BusActor func account() throws -> AccountClient { try devices.account(devices.phone) }
            var former = ""
            if fromKey {
                try await laptop.join(devices.url, ["encrypt": .boolean(true)])
                former = try await laptop.recoveryPhrase(flags: 1)
                try await account().join(devices.url, ["recovery-phrase": .string(Text(former))])
            } else {
                try await devices.join()
            }
            try await devices.store(devices.laptop).set("colour", "red")
            try await devices.store(devices.phone).set("size", .integer(12))
            _ = try await devices.converge()
            let found = try await backUp(devices.phone, backup)
            try #require(found.isEmpty == (backup == .keyFile && !fromKey))

            if fromKey { try await laptop.replaceKey() } else { try await laptop.encrypt() }
            let present = try await laptop.recoveryPhrase(flags: 1)
            for device in [devices.laptop, devices.phone] {
                for phrase in [former, present] where !phrase.isEmpty { device.keepSecret(phrase) }
            }
            #expect(await errorName { try await account().syncNow() } == "KeyNeeded")
            try await account().unlock(present)
            try await devices.store(devices.phone).set("since", "the backup")
            try await devices.store(devices.phone).set("size", .integer(13))
            _ = try await devices.converge()
            try await restore(devices.phone, backup, found)
            try await body(devices, former, present)
        }
    }

    @Test(arguments: [Backup.everything, .keyFile], [false, true])
    func `a device with a former key, or none, sends nothing before it is told the words, and loses nothing then`(
        backup: Backup, fromKey: Bool
    ) async throws {
        try await withRestored(backup, fromKey: fromKey) { devices, former, present in
            let phone = try devices.account(devices.phone)
            let before = try contents(of: devices.folder)
            try await devices.store(devices.phone).set("later", "kept")
            for _ in 0..<2 { #expect(await errorName { try await phone.syncNow() } == "KeyNeeded") }
            #expect(try await phone.lastError() == "KeyNeeded")
            #expect(try contents(of: devices.folder) == before)
            if fromKey { #expect(await errorName { try await phone.unlock(former) } == "KeyWrong") }
            #expect(try contents(of: devices.folder) == before)
            try await phone.unlock(present)
            let values = try await devices.converge()
            let all: [Text: Value] = ["colour": "red", "size": .integer(13), "since": "the backup", "later": "kept"]
            #expect(values == all)
            #expect(try await phone.recoveryPhrase() == present)
        }
    }

    @Test(arguments: [false, true])
    func `a database of before the move is gone on with under the key that is here, and loses nothing`(
        fromKey: Bool
    ) async throws {
        try await withRestored(.database, fromKey: fromKey) { devices, _, present in
            let phone = try devices.account(devices.phone)
            try await devices.store(devices.phone).set("later", "kept")
            let values = try await devices.converge()
            let all: [Text: Value] = ["colour": "red", "size": .integer(13), "since": "the backup", "later": "kept"]
            #expect(values == all)
            #expect(try await phone.lastError() == "")
            #expect(try await phone.recoveryPhrase() == present)
        }
    }
}
