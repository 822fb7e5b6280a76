// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import StoreBus
import Synchronization
import Testing
import UbiquitousStoreTesting

/// Messages with header fields that no specification knows, in which libsystemd finds others than the bus.
@BusActor
@Suite(.timeLimit(.minutes(30)), .enabled(if: Users.areSeveral, Users.needsRoot))
struct ForgedHeaderTests {
    @Test func `nobody calls in another's name`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            try await store.set("key", .string("own"))
            let attacker = try RawClient(machine.bus, as: Users.daemon)
            var value = Wire()
            value.string("key")
            value.signature("s")
            value.string("forged")
            var call = ForgedCall(sender: try #require(store.client.connection.uniqueName), path: store.path)
            (call.interface, call.member) = (BusNames.storeInterface, "SetValue")
            (call.signature, call.body) = ("sv", value.bytes)
            // The bus appends the true sender, which has one of these lengths.
            for length in 4...9 {
                let message = call.bytes(ownName: length, serial: attacker.nextSerial())
                try #require(!message.isEmpty)
                attacker.send(message)
            }
            try await machine.store(as: Users.daemon).set("after", .integer(1))
            try await store.set("other", .integer(1))
            #expect(try await store.value("key") == .string("own"))
            #expect(machine.device.exit == nil)
        }
    }

    /// A message with variants in variants. libsystemd takes the first byte for the whole array, then finds a field at the
    /// next multiple of eight, and goes into each variant until its stack ends.
    private static var deepMessage: WireMessage {
        var variants = Wire()
        variants.bytes = [0, 0, 0, 0, 201]
        for _ in 0..<100_000 { variants.signature("v") }
        variants.signature("y")
        variants.bytes.append(0)
        var message = WireMessage()
        (message.destination, message.path) = (BusNames.service, BusNames.managerPath)
        (message.interface, message.member, message.flags) = ("org.freedesktop.DBus.Peer", "Ping", 1)
        message.hiddenField = variants.bytes
        return message
    }

    @Test func `variants in variants end no service`() async throws {
        try await withMachine { machine in
            let attacker = try RawClient(machine.bus, as: Users.daemon)
            for type in [1, 4] as [UInt8] {
                var message = Self.deepMessage
                message.type = type
                attacker.send(message.bytes(serial: attacker.nextSerial()))
            }
            try await machine.store(as: Users.daemon).set("after", .integer(1))
            try await machine.store().set("other", .integer(1))
            #expect(machine.device.exit == nil)
        }
    }

    /// Unique names are numbers that count up, so messages can wait for a service that is being started.
    @Test(arguments: ["variants", "NameLost"])
    func `what is sent to the next names keeps no service from starting`(what: String) async throws {
        try await withMachine(started: false) { machine in
            let name = try #require(try machine.client().connection.uniqueName)
            let number = try #require(name.split(separator: ".").last.flatMap { Int($0) })
            var message = Self.deepMessage
            message.type = 4
            if what == "NameLost" {
                message.hiddenField = []
                (message.path, message.interface, message.member) = (
                    "/org/freedesktop/DBus", "org.freedesktop.DBus", "NameLost"
                )
                var name = Wire()
                name.string(BusNames.service)
                (message.signature, message.body) = ("s", name.bytes)
            }
            // The next one is the attacker's own.
            let signals = (2...7).map { next in
                message.destination = ":1.\(number + next)"
                return message.bytes(serial: UInt32(next))
            }
            let isOver = Over()
            nonisolated(unsafe) let attacker = try RawClient(machine.bus, as: Users.daemon)
            Thread.detachNewThread {
                while !isOver.isSet.load(ordering: .relaxed) {
                    for signal in signals { attacker.send(signal) }
                    usleep(2000)
                }
            }
            defer { isOver.isSet.store(true, ordering: .relaxed) }
            try await machine.device.start()
            try await machine.store().set("other", .integer(1))
            #expect(machine.device.exit == nil)
        }
    }
}

private final class Over: Sendable {
    let isSet = Atomic(false)
}

/// A call that the bus takes for its true sender's, and libsystemd for another's.
private struct ForgedCall {
    let sender: String
    let path: String
    var interface = ""
    var member = ""
    var signature = ""
    var body: [UInt8] = []

    init(sender: String, path: String) { (self.sender, self.path) = (sender, path) }

    private func fields(sender: String?) -> [UInt8] {
        var fields = Wire()
        for (code, type, value) in [
            (1, "o", path), (6, "s", BusNames.service), (2, "s", interface), (3, "s", member), (7, "s", sender),
            (8, "g", signature),
        ] as [(UInt8, String, String?)] {
            guard let value else { continue }
            fields.align(8)
            fields.bytes.append(code)
            fields.signature(type)
            if type == "g" { fields.signature(value) } else { fields.string(value) }
        }
        fields.align(8)
        return fields.bytes
    }

    /// The fields: an unknown array, in which libsystemd finds a second set of fields and the beginning of an unknown one
    /// that takes up the true ones and the true sender.
    func bytes(ownName: Int, serial: UInt32) -> [UInt8] {
        let (known, hidden) = (fields(sender: nil), fields(sender: sender))
        let base = 16 + hidden.count
        let end = known.count + 4 + 4 + ownName + 1
        for longs in 1..<255 {
            for bytes in 0..<8 {
                let type = String(repeating: "t", count: longs) + String(repeating: "y", count: bytes)
                let head = [201, UInt8(type.utf8.count)] + Array(type.utf8) + [0]
                let start = (base + head.count + 7) / 8 * 8
                guard start + 8 * longs + bytes == start + end else { continue }
                var array = [0, 0, 0, 0] + hidden + head
                array += [UInt8](repeating: 0, count: start - base - head.count)
                var message = Wire()
                message.bytes = [UInt8(ascii: "l"), 1, 1, 1]
                message.number(UInt32(body.count))
                message.number(serial)
                message.number(UInt32(start + known.count))
                message.bytes += [200, 2] + Array("ay".utf8) + [0, 0, 0, 0]
                message.number(UInt32(array.count))
                message.bytes += array + known
                message.align(8)
                return message.bytes + body
            }
        }
        return []
    }
}
