// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Replication
import StoreEngine
import Testing

@testable import SyncEngine

/// The list of an account's devices, on a database and without a remote.
@MainActor
@Suite struct DeviceListTests {
    private static let day: UInt64 = 86_400_000_000

    private let device = SyncDevice()
    private let list: DeviceList

    init() { list = DeviceList(device.database, own: RemoteDevice(identifier: "d", name: "Laptop")) }

    private func entry(_ identifier: String) throws -> Value? {
        try device.database.store("@devices").value(for: Key(unchecked: identifier))
    }

    private func write(_ identifier: String, _ facts: [Text: Value]) throws {
        try device.database.store("@devices").stage(
            setting: [(Key(unchecked: identifier), .dictionary(facts))], removing: [])
        try device.database.commit()
    }

    @Test func `a device writes its entry once a day, and at once when it has another name`() throws {
        try list.announceOwn()
        let first = try entry("d")
        #expect(first != nil)
        device.later.move(by: Self.day / 2)
        try list.announceOwn()
        #expect(try entry("d") == first)
        list.takeName("Desk")
        try list.announceOwn()
        let second = try entry("d")
        #expect(second != first)
        device.later.move(by: Self.day + 1)
        try list.announceOwn()
        #expect(try entry("d") != second)
    }

    @Test func `a name chosen here counts until the account has it, and then the account's does`() throws {
        list.takeName("Desk")
        try write("d", ["name": .string("Phone")])
        list.noteEntries(in: try device.database.store("@devices"))
        #expect(list.own.name == "Desk")
        try list.announceOwn()
        #expect(!list.announcesName)
        try write("d", ["name": .string("Phone")])
        list.noteEntries(in: try device.database.store("@devices"))
        #expect(list.own.name == "Phone")
    }

    @Test func `a device that is forgotten under a name of before keeps its own`() throws {
        list.takeName("Desk")
        try list.announceOwn()
        try write("d", ["name": .string("Laptop"), "forgotten": .boolean(true)])
        list.noteEntries(in: try device.database.store("@devices"))
        #expect(list.own.name == "Desk")
        try list.announceOwn()
        #expect(try entry("d") != nil && list.own.name == "Desk")
    }

    @Test func `an entry that says nothing, or says it otherwise, is a device of that identifier`() throws {
        try write("b", [:])
        try write("c", ["name": .integer(5), "last-seen": .string("never"), "forgotten": .string("no")])
        let others = try list.others().sorted { $0.identifier < $1.identifier }
        #expect(others.map(\.name) == ["b", "c"] && others.map(\.lastSeen) == [0, 0])
    }

    @Test func `changes by several devices, or by one that is not known, are of no single one`() {
        let (phone, desk) = (RemoteDevice(identifier: "p", name: ""), RemoteDevice(identifier: "q", name: ""))
        list.note([Origin(bits: 1): phone, Origin(bits: 2): phone, Origin(bits: 3): desk])
        #expect(list.soleIdentifier(of: [Origin(bits: 1), Origin(bits: 2)]) == "p")
        #expect(list.soleIdentifier(of: [Origin(bits: 1), Origin(bits: 3)]) == nil)
        #expect(list.soleIdentifier(of: [Origin(bits: 4)]) == nil)
        #expect(list.soleIdentifier(of: [device.database.origin]) == "d")
    }
}
