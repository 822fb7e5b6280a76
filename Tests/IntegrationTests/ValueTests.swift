// SPDX-License-Identifier: Apache-2.0

import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

@BusActor
@Suite(.timeLimit(.minutes(30)))
struct ValueTests {
    private let values: [(String, Value)] = [
        ("true", .boolean(true)), ("false", .boolean(false)), ("one", .integer(1)), ("one real", .real(1)),
        ("max", .integer(.max)), ("min", .integer(.min)), ("minus zero", .real(-0.0)), ("zero", .real(0)),
        ("infinity", .real(.infinity)), ("-infinity", .real(-.infinity)), ("nan", .real(.nan)),
        ("another nan", .real(Double(bitPattern: 0xfff8_0000_0000_1234))),
        ("signalling nan", .real(Double(bitPattern: 0x7ff0_0000_0000_0001))), ("tiny", .real(.leastNonzeroMagnitude)),
        ("empty string", .string("")), ("string", .string("s3cret-0f-the-tests \u{1f469}\u{200d}\u{1f4bb}")),
        ("no data", .data([])), ("data", .data(Array(0...255))), ("date", .date(0)), ("date 2", .date(-0.0)),
        ("date 3", .date(769_478_400.123_456_7)), ("date 4", .date(-.greatestFiniteMagnitude)),
        ("empty array", .array([])),
        ("array", .array([.boolean(true), .integer(1), .real(1), .data([]), .array([]), .dictionary([:])])),
        ("empty dictionary", .dictionary([:])),
        ("dictionary", .dictionary(["": .integer(1), "é": .integer(2), "e\u{301}": .integer(3)])),
        ("é", .string("é")), ("e\u{301}", .string("e\u{301}")), ("1", .integer(-1)), ("/", .string("/")),
    ]

    private func nested(_ depth: Int) -> Value { depth == 0 ? .integer(1) : .array([nested(depth - 1)]) }

    @Test func `every value is read as it was written, before and after a restart`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            for (key, value) in values { try await store.set(key, value) }
            let expected = Dictionary(uniqueKeysWithValues: values.map { (Text($0.0), $0.1) })
            for (key, value) in values {
                let back = try await store.value(key)
                #expect(back == value, "\(key)")
            }
            #expect(try await store.everything() == expected)
            #expect(try await store.values(values.map(\.0) + ["absent"]) == expected)
            #expect(try await store.property("KeyCount") == .integer(Int64(values.count)))
            #expect(try await store.property("BytesUsed") == .integer(Int64(values.reduce(0) { $0 + $1.1.size })))
            try await machine.device.restart()
            #expect(try await store.everything() == expected)
        }
    }

    @Test func `what is accepted in other forms is given in the one form`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            func set(_ type: String, _ build: @BusActor (Message) throws -> Void) async throws -> Value {
                try await store.set("key") { m in try m.container("v", type) { try build(m) } }
                return try await store.value("key")
            }
            #expect(try await set("y") { try $0.append(7 as UInt8) } == .integer(7))
            #expect(try await set("n") { try $0.append(Int16.min) } == .integer(-32768))
            #expect(try await set("q") { try $0.append(UInt16.max) } == .integer(65535))
            #expect(try await set("i") { try $0.append(Int32.min) } == .integer(-2_147_483_648))
            #expect(try await set("u") { try $0.append(UInt32.max) } == .integer(4_294_967_295))
            #expect(try await set("t") { try $0.append(UInt64(Int64.max)) } == .integer(.max))
            #expect(try await set("as") { try $0.append(strings: ["a"]) } == .array([.string("a")]))
            #expect(try await set("a{sb}") { m in try m.container("a", "{sb}") {} } == .dictionary([:]))
            #expect(try await set("aav") { m in try m.container("a", "av") {} } == .array([]))
        }
    }

    @Test func `sixty variants in variants are one value`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            func wrap(_ count: Int, _ message: Message) throws {
                if count == 0 { return try message.append(variant: .integer(9)) }
                try message.container("v", "v") { try wrap(count - 1, message) }
            }
            try await store.set("key") { try wrap(59, $0) }
            #expect(try await store.value("key") == .integer(9))
        }
    }

    @Test func `what is no property list is refused, and what was there stays`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            try await store.set("key", .string(Text(secret)))
            func refused(_ type: String, _ build: @BusActor (Message) throws -> Void) async -> String {
                await errorName { try await store.set("key") { m in try m.container("v", type) { try build(m) } } }
            }
            #expect(await refused("o") { try $0.append(objectPath: "/a") } == "InvalidValue")
            #expect(await refused("g") { try $0.append(signature: "a{sv}") } == "InvalidValue")
            #expect(await refused("ah") { m in try m.container("a", "h") {} } == "InvalidValue")
            #expect(await refused("ao") { m in try m.container("a", "o") {} } == "InvalidValue")
            #expect(
                await refused("(x)") { m in try m.container("r", "x") { try m.append(1 as Int64) } } == "InvalidValue"
            )
            #expect(await refused("a{iv}") { m in try m.container("a", "{iv}") {} } == "InvalidValue")
            #expect(await refused("a{os}") { m in try m.container("a", "{os}") {} } == "InvalidValue")
            #expect(await refused("t") { try $0.append(UInt64(Int64.max) + 1) } == "InvalidValue")
            #expect(await refused("t") { try $0.append(UInt64.max) } == "InvalidValue")
            for seconds in [Double.nan, .infinity, -.infinity] {
                let name = await refused("(d)") { m in try m.container("r", "d") { try m.append(seconds) } }
                #expect(name == "InvalidValue")
            }
            #expect(try await store.value("key") == .string(Text(secret)))
        }
    }

    @Test func `sixteen containers fit and seventeen do not, in every way of writing`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            try await store.set("key", nested(16))
            #expect(try await store.value("key") == nested(16))
            #expect(await errorName { try await store.set("key", nested(17)) } == "DepthExceeded")
            #expect(
                await errorName { try await store.apply(["other": .integer(1), "key": nested(17)]) } == "DepthExceeded"
            )
            #expect(await errorName { try await store.set("key", nested(22)) } == "DepthExceeded")
            #expect(try await store.everything() == ["key": nested(16)])
        }
    }

    @Test func `twenty-two dictionaries disconnect at most their sender`() async throws {
        func nested(_ depth: Int) -> Value { depth == 0 ? .integer(1) : .dictionary(["k": nested(depth - 1)]) }
        try await withMachine { machine in
            let (victim, other) = (try machine.store(), try machine.store())
            for depth in [21, 40] {
                let name = await errorName { try await victim.set("key", nested(depth)) }
                let names = ["DepthExceeded", "Disconnected", "NoReply", "InvalidArgs", "LimitsExceeded", "ENOTCONN"]
                #expect(names.contains(name), "\(name)")
            }
            #expect(try await other.everything().isEmpty)
            #expect(machine.device.exit == nil)
        }
    }

    @Test func `the types of what is there are part of a value`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            let first = try await store.set("key", .integer(1))
            for (step, value) in [Value.boolean(true), .real(1), .date(1), .string("1"), .data([1])].enumerated() {
                #expect(try await store.set("key", value) == first + UInt64(step) + 1)
                #expect(try await store.value("key") == value)
            }
        }
    }
}
