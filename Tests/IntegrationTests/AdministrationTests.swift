// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// Backups of all users' data, adopting data, and data that is set aside.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct AdministrationTests {
    private func call<Result: Sendable>(
        _ client: BusClient, _ member: String, _ build: (Message) throws -> Void,
        decode: @escaping @BusActor (Message) throws -> Result
    ) async throws -> Result {
        try await client.connection.call(
            BusNames.service, BusNames.managerPath, BusNames.administrationInterface, member, build: build,
            decode: decode)
    }

    private func backUp(_ client: BusClient) async throws -> String {
        try await call(client, "BackUp") {
            try $0.append(0 as UInt64)
        } decode: {
            try $0.readString()
        }
    }

    private func adopt(_ client: BusClient, _ name: String, _ uid: UInt32, _ flags: UInt64 = 0) async throws {
        try await call(client, "Adopt") {
            try $0.append(name)
            try $0.append(uid)
            try $0.append(flags)
        } decode: { _ in
        }
    }

    private func delete(_ client: BusClient, _ name: String, _ flags: UInt64 = 0) async throws {
        try await call(client, "Delete") {
            try $0.append(name)
            try $0.append(flags)
        } decode: { _ in
        }
    }

    private func names(_ client: BusClient) async throws -> [String] {
        try await call(client, "ListData") {
            try $0.append(0 as UInt64)
        } decode: {
            try $0.readDictionaries().map { entry in
                guard case .string(let name) = entry["name"] else { return "" }
                return name.string
            }
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `only root administers the data of all users`() async throws {
        try await withMachine { machine in
            let (client, root) = (try machine.client(), try machine.client(as: 0))
            try await client.store(notes).set("key", .integer(1))
            #expect(await errorName { _ = try await names(client) } == "AccessDenied")
            #expect(await errorName { _ = try await backUp(client) } == "AccessDenied")
            #expect(await errorName { try await adopt(client, "u1", 1) } == "AccessDenied")
            #expect(await errorName { try await delete(client, "u\(client.uid)", 1) } == "AccessDenied")
            #expect(try await names(root).contains("u\(client.uid)"))
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `calls that wait while their user's data is removed are answered`() async throws {
        try await withMachine { machine in
            let (store, root) = (try machine.store(), try machine.client(as: 0))
            try await store.set("key", .integer(1))
            nonisolated(unsafe) let clients = try (0..<10).map { _ in try RawClient(machine.bus, as: Users.client) }
            for client in clients {
                for number: UInt32 in 0..<120 { client.set(store.path, "key", number, later: true) }
            }
            let answered = Task.detached {
                try clients.map { client in
                    var replies = 0
                    let end = ContinuousClock.now + .seconds(60)
                    while replies < 120, ContinuousClock.now < end {
                        replies += try #require(client.turn(waiting: 100)).count { $0.replySerial > 1 }
                    }
                    return replies
                }
            }
            try await eventually("some are answered") { try await store.value("key") != .integer(1) }
            try await delete(root, "u\(store.client.uid)", 1)
            for replies in try await answered.value { #expect(replies == 120) }
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot), arguments: ["a domain", "a manifest"])
    func `data replaces no user's domains or manifests unasked`(what: String) async throws {
        try await withMachine { machine in
            let (client, root) = (try machine.client(), try machine.client(as: 0))
            let (aside, state) = ("u4242.ada.1763800000", machine.device.stateDirectory)
            let path = try await backUp(root)
            try await machine.client(as: Users.daemon).store(notes).set("key", .integer(1))
            try FileManager.default.moveItem(
                atPath: "\(try await backUp(root))/u\(Users.daemon)", toPath: "\(state)/\(aside)")
            if what == "a domain" {
                _ = try await client.domain("org.example.Editor").apply([("size", .integer(1))])
            } else {
                try await client.manager("RegisterManifest") {
                    try $0.append(bytes: Array(ManifestText("org.example.Own").xml.utf8))
                    try $0.appendDictionary {}
                }
            }
            for flags in [0x2, 0] as [UInt64] {
                #expect(await errorName { try await adopt(root, aside, client.uid, flags) } == "Conflict")
            }
            try await adopt(root, aside, client.uid, 0x1)
            _ = path
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `a copy made while apps write is whole, and becomes another user's`() async throws {
        try await withMachine { machine in
            let (client, root) = (try machine.client(), try machine.client(as: 0))
            let store = try client.store(notes)
            try await store.set("before", .integer(1))
            let path = try await backUp(root)
            try await store.set("after", .integer(1))
            let name = try #require(path.split(separator: "/").last.map(String.init))
            // As on a machine where the user has another user id.
            let (uid, aside) = (Users.daemon, "u4242.ada.1763800000")
            let state = machine.device.stateDirectory
            try FileManager.default.moveItem(atPath: "\(path)/u\(client.uid)", toPath: "\(state)/\(aside)")
            #expect(try await names(root).contains(aside))
            try await adopt(root, aside, uid)
            let other = try machine.client(as: uid).store(notes)
            #expect(try await other.everything() == ["before": .integer(1)])
            try await other.set("mine", .integer(2))
            #expect(try await store.everything() == ["before": .integer(1), "after": .integer(1)])
            try await delete(root, name)
            #expect(access(path, F_OK) != 0)
            #expect(await errorName { try await delete(root, name) } == "InvalidArgs")
            #expect(await errorName { try await delete(root, "../state") } == "InvalidArgs")
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `root's programs hear of their stores after another user's data is gone`() async throws {
        try await withMachine { machine in
            let (client, root) = (try machine.client(), try machine.client(as: 0))
            try await client.store(notes).set("key", .integer(1))
            let own = try root.store(notes)
            try await own.set("key", .integer(1))
            try await own.subscribe(0x1)
            try await delete(root, "u\(client.uid)", 1)
            try await machine.client(as: 0).store(notes).set("other", .integer(2))
            _ = try await own.signal("another program's") { $0.keys == ["other"] }
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot), arguments: [false, true])
    func `a backup continues as its device, but is another one elsewhere`(isElsewhere: Bool) async throws {
        try await withMachine { machine in
            let (client, root) = (try machine.client(), try machine.client(as: 0))
            let device = try await client.account.text("DeviceIdentifier")
            try await client.store(notes).set("key", .integer(1))
            let copy = "\(try await backUp(root))/u\(client.uid)"
            if isElsewhere {
                let record = try String(contentsOfFile: "\(copy)/machine", encoding: .utf8)
                let other = String(record.map { $0 == "0" ? "1" : "0" })
                try other.write(toFile: "\(copy)/machine", atomically: false, encoding: .utf8)
            }
            let aside = "u4242.ada.1763800000"
            try FileManager.default.moveItem(atPath: copy, toPath: "\(machine.device.stateDirectory)/\(aside)")
            try await adopt(root, aside, client.uid, 1)
            #expect(try await client.store(notes).everything() == ["key": .integer(1)])
            let identifier = try await client.account.text("DeviceIdentifier")
            #expect((identifier != device) == isElsewhere)
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `a call is answered while much data is listed or removed`() async throws {
        try await withMachine { machine in
            let root = try machine.client(as: 0)
            let aside = "u4242.ada.1763800000"
            let path = "\(machine.device.stateDirectory)/\(aside)"
            func make() throws {
                try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
                if let service = Users.service { chown(path, service, service) }
                for number in 0..<3000 { close(open("\(path)/\(number)", O_CREAT | O_WRONLY, 0o600)) }
            }
            try make()
            // If the work were done inside the call, a later call on the connection would be answered later.
            try await eventually("the list comes last") {
                try await first(root) { _ = try await names(root) } == "call"
            }
            try await eventually("the removal ends last") {
                if access(path, F_OK) != 0 { try make() }
                return try await first(root) { try await delete(root, aside) } == "call"
            }
            #expect(access(path, F_OK) != 0)
            let remains = try FileManager.default.contentsOfDirectory(atPath: machine.device.stateDirectory)
            #expect(!remains.contains { $0.hasPrefix("removed.") })
        }
    }

    /// Returns which is answered first: "work", or "call", which is made right after it.
    private func first(
        _ client: BusClient, _ work: @escaping @BusActor () async throws -> Void
    ) async throws -> String {
        var answers: [String] = []
        let slow = Task { @BusActor in
            try await work()
            answers.append("work")
        }
        let call = Task { @BusActor in
            _ = try await client.manager("Identify") { _ in
            } decode: { _ in
            }
            answers.append("call")
        }
        try await slow.value
        try await call.value
        return answers[0]
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `data in use is adopted only from a uid that no user has, and a refusal leaves it there`() async throws {
        try await withMachine { machine in
            let (client, root) = (try machine.client(), try machine.client(as: 0))
            let (uid, state) = (Users.daemon, machine.device.stateDirectory)
            try await client.store(notes).set("key", .integer(1))
            try await machine.client(as: uid).store(notes).set("key", .integer(2))
            try FileManager.default.moveItem(atPath: "\(try await backUp(root))/u\(uid)", toPath: "\(state)/u65533")
            for flags in [0, 0x1, 0x3] as [UInt64] {
                #expect(await errorName { try await adopt(root, "u\(client.uid)", uid, flags) } == "InvalidArgs")
            }
            #expect(await errorName { try await adopt(root, "u65533", client.uid) } == "Conflict")
            try await adopt(root, "u65533", client.uid, 0x3)
            #expect(access("\(state)/u65533", F_OK) == 0)
            try await adopt(root, "u65533", client.uid, 0x1)
            #expect(access("\(state)/u65533", F_OK) != 0)
            #expect(try await machine.store().everything() == ["key": .integer(2)])
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `of two calls that remove the same data at once, one is told that it is gone`() async throws {
        try await withMachine { machine in
            let aside = "u4242.ada.1763800000"
            let roots = [try machine.client(as: 0), try machine.client(as: 0)]
            for _ in 0..<20 {
                try FileManager.default.createDirectory(
                    atPath: "\(machine.device.stateDirectory)/\(aside)", withIntermediateDirectories: false)
                let calls = roots.map { root in
                    Task { @BusActor in await errorName { try await delete(root, aside) } }
                }
                var answers: [String] = []
                for call in calls { answers.append(await call.value) }
                #expect(answers.sorted() == ["", "InvalidArgs"])
            }
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `data is not adopted over values unless that is wanted, and then those are set aside`() async throws {
        try await withMachine { machine in
            let (client, root) = (try machine.client(), try machine.client(as: 0))
            let store = try client.store(notes)
            try await store.set("old", .integer(1))
            let path = try await backUp(root)
            let aside = "u4242.ada.1763800000"
            try FileManager.default.moveItem(
                atPath: "\(path)/u\(client.uid)", toPath: "\(machine.device.stateDirectory)/\(aside)")
            try await store.set("new", .integer(2))
            #expect(await errorName { try await adopt(root, aside, client.uid) } == "Conflict")
            let known = try await store.snapshot().generation
            try await adopt(root, aside, client.uid, 0x1)
            #expect(try await machine.store().everything() == ["old": .integer(1)])
            // However much is written afterwards, a program that knows the former data learns that it knows nothing.
            for number in 0..<8 { try await machine.store().set("other", .integer(Int64(number))) }
            try await machine.store().remove("other")
            #expect(try await machine.store().snapshot(since: known).isComplete)
            let names = try await names(root)
            let former = try #require(names.first { $0.hasPrefix("u\(client.uid).") })
            // Back again.
            try await adopt(root, former, client.uid, 0x1)
            #expect(try await machine.store().everything() == ["old": .integer(1), "new": .integer(2)])
            #expect(await errorName { try await delete(root, "u\(client.uid)") } == "Conflict")
            try await delete(root, "u\(client.uid)", 0x1)
            #expect(try await machine.store().everything().isEmpty)
        }
    }
}
