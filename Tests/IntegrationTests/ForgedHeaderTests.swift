// SPDX-License-Identifier: Apache-2.0

import Glibc
import PropertyList
import SDBus
import StoreBus
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
            for length in 4...9 { attacker.send(call.bytes(ownName: length, serial: attacker.nextSerial())) }
            try await machine.store(as: Users.daemon).set("after", .integer(1))
            try await store.set("other", .integer(1))
            #expect(try await store.value("key") == .string("own"))
            #expect(machine.device.exit == nil)
        }
    }

    /// libsystemd goes into each variant, until its stack ends.
    @Test func `variants in variants end no service`() async throws {
        try await withMachine { machine in
            let attacker = try RawClient(machine.bus, as: Users.daemon)
            // libsystemd takes the first byte for the whole array, and then finds a field at the next multiple of eight.
            var variants = Wire()
            variants.bytes = [0, 0, 0, 0, 201]
            for _ in 0..<200_000 { variants.signature("v") }
            variants.signature("y")
            variants.bytes.append(0)
            var message = WireMessage()
            (message.destination, message.path) = (BusNames.service, BusNames.managerPath)
            (message.interface, message.member, message.flags) = ("org.freedesktop.DBus.Peer", "Ping", 1)
            for type in [1, 4] as [UInt8] {
                message.type = type
                message.hiddenField = variants.bytes
                attacker.send(message.bytes(serial: attacker.nextSerial()))
            }
            try await machine.store(as: Users.daemon).set("after", .integer(1))
            try await machine.store().set("other", .integer(1))
            #expect(machine.device.exit == nil)
        }
    }
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
