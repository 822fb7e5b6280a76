// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// An account's devices as users see them.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct DeviceTests {
    private func names(_ account: AccountClient) async throws -> [String] {
        try await account.devices().map { device in
            guard case .string(let name) = device["name"] else { return "" }
            return device["this"] == .boolean(true) ? "\(name.string) (this)" : name.string
        }
    }

    private func lists(_ account: AccountClient, _ expected: [String]) async throws {
        try await eventually("the devices are \(expected)") {
            try await account.syncNow()
            return try await names(account) == expected
        }
    }

    @Test func `each device lists all of them, with the names they gave themselves and when they were seen`()
        async throws
    {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            try await laptop.join(devices.url, ["device-name": "My laptop"])
            try await phone.join(devices.url)
            try await lists(laptop, ["My laptop (this)", "phone"])
            try await lists(phone, ["My laptop", "phone (this)"])
            for device in try await phone.devices() {
                guard case .integer(let time) = device["last-seen-usec"] else {
                    Issue.record("no time: \(device)")
                    continue
                }
                #expect(abs(Double(time) / 1e6 - Date().timeIntervalSince1970) < 600)
            }
            // The device list is neither a listed store nor counted as pending.
            #expect(try await laptop.property("PendingChanges") == .integer(0))
            let stores = try await laptop.client.manager("ListStores") {
                try $0.append(0 as UInt64)
            } decode: {
                try $0.enterContainer("a", "(uso)") && $0.isAtEnd(whole: false)
            }
            #expect(stores)
            try await laptop.signOut()
            #expect(try await names(laptop) == ["My laptop (this)"])
        }
    }

    @Test func `a device that another one renames is called so everywhere, and keeps the name`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            try await lists(laptop, ["laptop (this)", "phone"])
            let identifier = try await phone.text("DeviceIdentifier")
            try await laptop.rename(device: identifier, to: "Ada's phone")
            #expect(try await names(laptop) == ["Ada's phone", "laptop (this)"])
            try await laptop.syncNow()
            try await lists(phone, ["Ada's phone (this)", "laptop"])
            #expect(try await phone.text("DeviceName") == "Ada's phone")
            devices.phone.kill()
            try forgetName(of: devices.phone)
            try await devices.phone.start()
            #expect(try await phone.text("DeviceName") == "Ada's phone")
            try await phone.rename(device: identifier, to: "Mine")
            #expect(try await phone.text("DeviceName") == "Mine")
            try await phone.syncNow()
            try await lists(laptop, ["Mine", "laptop (this)"])
            #expect(await errorName { try await laptop.rename(device: "nobody", to: "x") } == "InvalidArgs")
            let long = String(repeating: "a", count: 256)
            #expect(await errorName { try await laptop.rename(device: identifier, to: long) } == "InvalidArgs")
        }
    }

    /// Gives the account's file back the name that it had before the account told of another, as if the service had died
    /// before it was written.
    private func forgetName(of device: Device) throws {
        let file = URL(filePath: "\(device.stateDirectory)/u\(geteuid())/account.plist")
        var account = try #require(
            PropertyListSerialization.propertyList(from: try Data(contentsOf: file), format: nil) as? [String: Any])
        account["deviceName"] = "phone"
        // Writing in place keeps the owner.
        let handle = try FileHandle(forWritingTo: file)
        try handle.truncate(atOffset: 0)
        try handle.write(
            contentsOf: try PropertyListSerialization.data(fromPropertyList: account, format: .binary, options: 0))
        try handle.close()
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `a device's name for which there is no space is refused, and not taken`() async throws {
        try await withTwoDevices(diskBytes: 8 << 20) { devices in
            let disk = try #require(devices.disk)
            try await devices.join()
            let laptop = try devices.account(devices.laptop)
            try await lists(laptop, ["laptop (this)", "phone"])
            try devices.fill(disk, leaving: 0)
            let identifier = try await laptop.text("DeviceIdentifier")
            // The database's log may have room for a few names.
            try await eventually("there is no space for a name") {
                let name = try await laptop.text("DeviceName")
                let error = await errorName { try await laptop.rename(device: identifier, to: name + "x") }
                if !error.isEmpty { #expect(try await laptop.text("DeviceName") == name) }
                return error == "IOError"
            }
            unlink(disk + "/filler")
            try await laptop.rename(device: identifier, to: "Desk")
            #expect(try await laptop.text("DeviceName") == "Desk")
        }
    }

    @Test func `a name that is given in signing in counts, though the service ends before it could be uploaded`()
        async throws
    {
        try await withTwoDevices { devices in
            try await devices.join()
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            try await lists(phone, ["laptop", "phone (this)"])
            try await laptop.signOut(keepingValues: false)
            // Nothing is uploaded before everything has arrived, which is impossible without the segments.
            rename(devices.folder + "/s", devices.folder + "/away")
            try await laptop.signIn(devices.url, ["device-name": "My laptop"])
            try await devices.laptop.restart()
            #expect(try await laptop.text("DeviceName") == "My laptop")
            rename(devices.folder + "/away", devices.folder + "/s")
            try await lists(laptop, ["My laptop (this)", "phone"])
            try await lists(phone, ["My laptop", "phone (this)"])

            // From then on other devices may rename it, even after a restart.
            try await devices.laptop.restart()
            try await phone.rename(device: try await laptop.text("DeviceIdentifier"), to: "Ours")
            try await phone.syncNow()
            try await lists(laptop, ["Ours (this)", "phone"])
        }
    }

    @Test func `a name that is given again in signing in may be changed by others afterwards`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            try await lists(phone, ["laptop", "phone (this)"])
            try await laptop.join(devices.url, ["device-name": "laptop"])
            try await devices.store(devices.laptop).set("key", .integer(1))
            try await laptop.syncNow()
            try await phone.rename(device: try await laptop.text("DeviceIdentifier"), to: "Ours")
            try await phone.syncNow()
            try await lists(laptop, ["Ours (this)", "phone"])
        }
    }

    @Test func `a device that was forgotten is off the list until it uploads again, and its values stay`()
        async throws
    {
        try await withTwoDevices { devices in
            try await devices.join()
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            try await phone.set("key", .integer(1))
            _ = try await devices.converge()
            try await lists(laptop.client.account, ["laptop (this)", "phone"])
            let identifier = try await phone.client.account.text("DeviceIdentifier")
            let own = try await laptop.client.account.text("DeviceIdentifier")
            #expect(await errorName { try await laptop.client.account.forget(device: own) } == "InvalidArgs")
            #expect(await errorName { try await laptop.client.account.forget(device: "nobody") } == "InvalidArgs")

            try await devices.phone.stop()
            try await laptop.client.account.forget(device: identifier)
            #expect(try await names(laptop.client.account) == ["laptop (this)"])
            try await laptop.client.account.syncNow()
            #expect(try await laptop.everything() == ["key": .integer(1)])
            #expect(await errorName { try await laptop.client.account.forget(device: identifier) } == "InvalidArgs")

            try await devices.phone.start()
            try await phone.set("back", .integer(1))
            #expect(try await devices.converge() == ["key": .integer(1), "back": .integer(1)])
            try await lists(laptop.client.account, ["laptop (this)", "phone"])
        }
    }

    @Test func `two devices that made the account at once go on with one`() async throws {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            // Neither folder has been copied to the other yet.
            let other = try devices.makeFolder("other")
            try await laptop.client.account.join(devices.url)
            try await phone.client.account.join("folder://\(other)")
            try await laptop.set("laptop", .integer(1))
            try await phone.set("phone", .integer(1))
            let identifiers = [
                try await laptop.client.account.text("AccountIdentifier"),
                try await phone.client.account.text("AccountIdentifier"),
            ]
            #expect(identifiers[0] != identifiers[1])
            let expected: [Text: Value] = ["laptop": .integer(1), "phone": .integer(1)]
            try await eventually("both are one account") {
                try await laptop.client.account.syncNow()
                try await phone.client.account.syncNow()
                try carry(between: devices.folder, other)
                let (left, right) = (try await laptop.everything(), try await phone.everything())
                return left == expected && right == expected
            }
            for store in [laptop, phone] {
                #expect(try await store.client.account.text("AccountIdentifier") == identifiers.min())
                #expect(try await store.client.account.lastError() == "")
            }
            for device in [devices.laptop, devices.phone] { try await device.restart() }
            for store in [laptop, phone] {
                try await store.client.account.syncNow()
                #expect(try await store.client.account.text("AccountIdentifier") == identifiers.min())
            }
        }
    }

    /// Copies what is newer in each of two folders to the other, each file atomically, as a sync tool does. Both
    /// services write meanwhile, so this reads heads before it lists the segments that they name, and copies them after
    /// these.
    private func carry(between folder: String, _ other: String) throws {
        for (from, to) in [(folder, other), (other, folder)] {
            let heads = newer("h", in: from, than: to)
            let others = ["a", "s"].flatMap { newer($0, in: from, than: to) }
            for kind in ["a", "s", "h"] { mkdir("\(to)/\(kind)", 0o700) }
            for (name, bytes) in others + heads {
                let part = "\(to)/\(name.prefix(1))/.carried"
                try bytes.write(to: URL(filePath: part))
                try #require(rename(part, "\(to)/\(name)") == 0)
            }
        }
    }

    private func newer(_ kind: String, in from: String, than to: String) -> [(name: String, bytes: Data)] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "\(from)/\(kind)")) ?? []
        return names.filter { !$0.hasPrefix(".") }.map { "\(kind)/\($0)" }
            .filter { time(of: "\(from)/\($0)") > time(of: "\(to)/\($0)") }
            .compactMap { name in
                let bytes = FileManager.default.contents(atPath: "\(from)/\(name)")
                return bytes == FileManager.default.contents(atPath: "\(to)/\(name)") ? nil : bytes.map { (name, $0) }
            }
    }

    private func time(of path: String) -> Date {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        return attributes?[.modificationDate] as? Date ?? .distantPast
    }
}
