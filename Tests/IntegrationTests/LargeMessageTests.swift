// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// Messages as large as the bus accepts. The service refuses them before they take much more memory than their size.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct LargeMessageTests {
    /// Returns the service's peak memory, in KiB.
    private func peak(_ machine: Machine) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(machine.device.pid)/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
        return try #require(Int(line.split(separator: " ")[1]))
    }

    /// Sends a call and returns its answer.
    private func answer(_ client: RawClient, _ send: (RawClient) -> Void) async throws -> WireReply {
        send(client)
        var found: WireReply?
        try await eventually("the answer comes") {
            found = (client.turn(waiting: 10) ?? []).first { $0.replySerial > 1 && $0.sender != "org.freedesktop.DBus" }
            return found != nil
        }
        return try #require(found)
    }

    /// Returns the serial numbers of the answers that have arrived from the service.
    private func serials(_ client: RawClient) throws -> [UInt32] {
        let replies = try #require(client.turn(waiting: 1))
        return replies.filter { $0.replySerial > 0 && $0.sender != "org.freedesktop.DBus" }.map(\.serial)
    }

    private func variant(_ signature: String, _ write: (inout Wire) -> Void) -> [UInt8] {
        var body = Wire()
        body.string("key")
        body.signature(signature)
        write(&body)
        return body.bytes
    }

    @Test func `arrays of millions are refused, and take no more memory than a store may hold`() async throws {
        try await withMachine { machine in
            let path = try machine.store().path
            try await machine.store().set("kept", .integer(1))
            let bodies = [
                // 31 MiB of Int16.
                variant("an") { $0.array(alignment: 2) { $0.bytes += [UInt8](repeating: 0, count: 31 << 20) } },
                // Nearly 8 million empty arrays, of data and of values.
                variant("aay") { $0.array(alignment: 4) { $0.bytes += [UInt8](repeating: 0, count: 31 << 20) } },
                variant("aan") { $0.array(alignment: 4) { $0.bytes += [UInt8](repeating: 0, count: 31 << 20) } },
            ]
            for body in bodies {
                let client = try RawClient(machine.bus, as: Users.client)
                let reply = try await answer(client) { $0.store(path, "SetValue", signature: "sv", body: body) }
                #expect(reply.errorName == StoreErrorCode.quotaExceeded.name)
            }
            #expect(try peak(machine) < 224 << 10)
            #expect(try await machine.store().everything() == ["kept": .integer(1)])
        }
    }

    @Test func `millions of keys are refused, and so are arguments that no call needs`() async throws {
        try await withMachine { machine in
            let path = try machine.store().path
            var keys = Wire()
            keys.array(alignment: 4) { wire in
                // Each string is a length, a terminator and, except for the last one, padding.
                wire.bytes += [UInt8](repeating: 0, count: 8 * 3_999_999 + 5)
            }
            var name = Wire()
            name.string(String(repeating: "x", count: 31 << 20))
            let client = try RawClient(machine.bus, as: Users.client)
            let many = try await answer(client) { $0.store(path, "GetValues", signature: "as", body: keys.bytes) }
            let long = try await answer(client) { $0.store(path, "GetValue", signature: "s", body: name.bytes) }
            #expect(many.errorName == BusError.limitsExceeded("").name)
            #expect(long.errorName == BusError.limitsExceeded("").name)
            #expect(try peak(machine) < 224 << 10)
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `a user whose calls take long does not have others wait for each of them`() async throws {
        try await withMachine { machine in
            let path = try machine.store().path
            let booleans = variant("ab") {
                $0.array(alignment: 4) { $0.bytes += [UInt8](repeating: 0, count: 400_000) }
            }
            let slow = try RawClient(machine.bus, as: Users.client)
            _ = try await answer(slow) { $0.store(path, "SetValue", signature: "sv", body: booleans) }
            let (store, other) = (try machine.store(as: nil), try RawClient(machine.bus))
            try await store.set("key", .integer(1))
            _ = try await answer(other) { $0.get(store.path, "key") }
            // Each answer takes as long as thousands of the other client's calls.
            for _ in 0..<20 { slow.store(path, "GetSnapshot", 0, 0) }
            for _ in 0..<30 { other.get(store.path, "key") }
            var (long, short): ([UInt32], [UInt32]) = ([], [])
            try await eventually("all calls are answered") {
                long += try serials(slow)
                short += try serials(other)
                return long.count == 20 && short.count == 30
            }
            // The serial numbers tell how the service has ordered its answers. In turns, six or more of the long ones
            // come before the last of the others.
            let last = try #require(short.max())
            #expect(long.count { $0 < last } < 4)
        }
    }

    @Test func `data of a sender of the other byte order is read`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            let client = try RawClient(machine.bus, as: Users.client)
            client.send(foreignSetValue(store.path, "key", [1, 2, 3, 255], serial: client.nextSerial()))
            try await eventually("the value is set") { try await store.everything().count == 1 }
            #expect(try await store.value("key") == .data([1, 2, 3, 255]))
        }
    }

    /// Returns a call of SetValue as a big-endian machine, or Java, sends it.
    private func foreignSetValue(_ path: String, _ key: String, _ data: [UInt8], serial: UInt32) -> [UInt8] {
        var (body, fields) = (BigEndianWire(), BigEndianWire())
        body.string(key)
        body.signature("ay")
        body.number(UInt32(data.count))
        body.bytes += data
        for (code, type, value) in [
            (1, "o", path), (2, "s", BusNames.storeInterface), (3, "s", "SetValue"), (6, "s", BusNames.service),
            (8, "g", "sv"),
        ] as [(UInt8, String, String)] {
            fields.align(8)
            fields.bytes.append(code)
            fields.signature(type)
            if type == "g" { fields.signature(value) } else { fields.string(value) }
        }
        var message = BigEndianWire()
        message.bytes = [UInt8(ascii: "B"), 1, 0, 1]
        message.number(UInt32(body.bytes.count))
        message.number(serial)
        message.number(UInt32(fields.bytes.count))
        message.bytes += fields.bytes
        message.align(8)
        return message.bytes + body.bytes
    }
}

/// A message's bytes in big-endian order, which isn't this machine's.
private struct BigEndianWire {
    var bytes: [UInt8] = []

    mutating func align(_ size: Int) {
        while bytes.count % size != 0 { bytes.append(0) }
    }

    mutating func number(_ value: UInt32) {
        align(4)
        bytes += withUnsafeBytes(of: value.bigEndian) { Array($0) }
    }

    mutating func string(_ value: String) {
        number(UInt32(value.utf8.count))
        bytes += Array(value.utf8) + [0]
    }

    mutating func signature(_ value: String) {
        bytes += [UInt8(truncatingIfNeeded: value.utf8.count)] + Array(value.utf8) + [0]
    }
}
