// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import SDBus
import Testing
import UbiquitousStoreTesting

/// A device signs out with pending writes, the account moves to other keys, and the device signs in again.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct LeftAccountTests {
    /// What happens to the account meanwhile.
    enum Meanwhile: CaseIterable {
        case nothing, encrypted, encryptedAndRemoved, replaced, encryptedAndReplaced
    }

    @Test(arguments: Meanwhile.allCases, [false, true])
    func `what a device wrote before it signed out goes up when it signs in again, whatever the account's key is then`(
        meanwhile: Meanwhile, isElsewhere: Bool
    ) async throws {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            var words: String?
            if meanwhile == .replaced {
                try await laptop.join(devices.url, ["encrypt": .boolean(true)])
                words = try await tell(devices)
                try await phone.join(devices.url, Self.options(words))
            } else {
                try await devices.join()
            }
            try await devices.store(devices.laptop).set("common", "of both")
            try await devices.store(devices.laptop).set("removed", "long ago")
            _ = try await devices.converge()

            try await phone.setPaused(true)
            try await devices.store(devices.phone).set("pending", "of the phone")
            try await phone.signOut(keepingValues: true)
            try await devices.store(devices.phone).set("signed out", "of the phone")
            try await devices.store(devices.laptop).remove("removed")
            try await laptop.syncNow()
            switch meanwhile {
            case .nothing: break
            case .encrypted: words = try await encrypt(devices)
            case .encryptedAndRemoved:
                words = try await encrypt(devices)
                try removePlainFiles(devices.folder)
            case .replaced: words = try await replaceKey(devices)
            case .encryptedAndReplaced:
                _ = try await encrypt(devices)
                try removePlainFiles(devices.folder)
                words = try await replaceKey(devices)
            }
            if isElsewhere {
                try await phone.join("folder://" + (try devices.makeFolder("elsewhere")))
                try await devices.store(devices.phone).set("elsewhere", "stays there")
                try await phone.syncNow()
            }
            try await phone.join(devices.url, Self.options(words))
            let values = try await devices.converge()
            #expect(
                values == ["common": "of both", "pending": "of the phone", "signed out": "of the phone"],
                "\(values)")
        }
    }

    private static func options(_ words: String?) -> KeyValuePairs<String, Value> {
        if let words { ["recovery-phrase": .string(Text(words))] } else { [:] }
    }

    /// Returns the phrase of the laptop's account, which must not get into any log.
    private func tell(_ devices: TwoDevices) async throws -> String {
        let words = try await devices.account(devices.laptop).recoveryPhrase(flags: 1)
        for device in [devices.laptop, devices.phone] { device.keepSecret(words) }
        return words
    }

    private func encrypt(_ devices: TwoDevices) async throws -> String {
        try await devices.account(devices.laptop).encrypt()
        return try await tell(devices)
    }

    private func replaceKey(_ devices: TwoDevices) async throws -> String {
        try await devices.account(devices.laptop).replaceKey()
        return try await tell(devices)
    }

    /// Removes the unencrypted files, as the laptop does ten minutes later.
    private func removePlainFiles(_ folder: String) throws {
        for name in try #require(FileManager.default.enumerator(atPath: folder)).compactMap({ $0 as? String }) {
            let path = folder + "/" + name
            guard let bytes = FileManager.default.contents(atPath: path), bytes.dropFirst(5).first == 0 else {
                continue
            }
            try FileManager.default.removeItem(atPath: path)
        }
    }
}
