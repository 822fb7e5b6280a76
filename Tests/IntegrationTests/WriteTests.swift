// SPDX-License-Identifier: Apache-2.0

import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

@BusActor
@Suite(.timeLimit(.minutes(30)))
struct WriteTests {
    @Test func `each write that changes something is one step of the generation`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            let start = try await store.generation()
            #expect(try await store.set("a", .integer(1)) == start + 1)
            #expect(try await store.apply(["b": .integer(1), "c": .integer(2)], removing: ["a"]) == start + 2)
            #expect(try await store.remove("b") == start + 3)
            #expect(try await store.generation() == start + 3)
            #expect(try await store.snapshot().generation == start + 3)
            try await machine.device.restart()
            #expect(try await store.generation() == start + 3)
            #expect(try await store.set("a", .integer(1)) == start + 4)
        }
    }

    @Test func `a write that changes nothing is no step, and nobody is told`() async throws {
        try await withMachine { machine in
            let (store, other) = (try machine.store(), try machine.store())
            let generation = try await store.set("a", .real(.nan))
            try await other.subscribe(0x1)
            #expect(try await store.set("a", .real(.nan)) == generation)
            #expect(try await store.remove("absent") == generation)
            #expect(try await store.apply(["a": .real(.nan)], removing: ["absent"]) == generation)
            #expect(try await store.apply() == generation)
            #expect(try await store.property("PendingChanges") == .integer(1))
            let last = try await store.set("b", .integer(1))
            let signal = try await other.signal("the last write's") { $0.generation == last }
            #expect(signal.keys == ["b"] && other.received.count == 1)
        }
    }

    @Test func `a snapshot since a generation is what changed since`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            let first = try await store.apply(["a": .integer(1), "b": .integer(1), "c": .integer(1)])
            try await store.set("a", .integer(2))
            try await store.remove("b")
            try await store.set("d", .integer(1))
            try await store.remove("d")
            let second = try await store.set("e", .integer(1))
            let since = try await store.snapshot(since: first)
            #expect(!since.isComplete && since.generation == second)
            #expect(since.values == ["a": .integer(2), "e": .integer(1)])
            #expect(Set(since.removed).isSubset(of: ["b", "d"]) && since.removed.contains("b"))
            let nothing = try await store.snapshot(since: second)
            #expect(
                nothing.generation == second && !nothing.isComplete && nothing.values.isEmpty && nothing.removed.isEmpty
            )
            let all = try await store.snapshot()
            #expect(all.isComplete && all.removed.isEmpty)
            #expect(all.values == ["a": .integer(2), "c": .integer(1), "e": .integer(1)])
            for unknown in [second + 1, .max, 1] {
                let answer = try await store.snapshot(since: unknown)
                #expect(answer.isComplete && answer.values == all.values)
            }
            #expect(await errorName { _ = try await store.snapshot(since: 0, flags: 1) } == "InvalidArgs")
            try await machine.device.restart()
            let after = try await store.snapshot(since: first)
            #expect(after.isComplete || after.values == since.values)
        }
    }

    @Test func `a key twice, in one argument or in both, is refused`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            #expect(await errorName { try await store.apply(["a": .integer(1), "a": .integer(1)]) } == "InvalidArgs")
            #expect(await errorName { try await store.apply(["a": .integer(1)], removing: ["a"]) } == "InvalidArgs")
            #expect(await errorName { try await store.apply(removing: ["a", "a"]) } == "InvalidArgs")
            #expect(try await store.everything().isEmpty)
        }
    }

    @Test func `if-generation holds a write back that comes too late`() async throws {
        try await withMachine { machine in
            let (one, other) = (try machine.store(), try machine.store())
            let generation = try await one.set("a", .integer(1))
            #expect(try await one.apply(["a": .integer(2)], ifGeneration: generation) == generation + 1)
            #expect(
                await errorName { try await other.apply(["a": .integer(3)], ifGeneration: generation) } == "Conflict"
            )
            #expect(await errorName { try await other.apply(["a": .integer(2)], ifGeneration: 0) } == "Conflict")
            #expect(try await one.value("a") == .integer(2))
        }
    }

    @Test func `of many that count up under if-generation at once, none is lost`() async throws {
        try await withMachine { machine in
            let stores = try (0..<6).map { _ in try machine.store() }
            try await stores[0].set("count", .integer(0))
            _ = try await atOnce(stores.count) { index in
                var done = 0
                while done < 20 {
                    let snapshot = try await stores[index].snapshot()
                    guard case .integer(let count) = snapshot.values["count"] else { return }
                    let name = await errorName {
                        try await stores[index].apply(["count": .integer(count + 1)], ifGeneration: snapshot.generation)
                    }
                    if name.isEmpty { done += 1 }
                }
            }
            #expect(try await stores[0].value("count") == .integer(120))
        }
    }

    @Test func `flags and options that nobody knows, and options of another type, are refused`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            for flags in [0x2, 0x8000_0000_0000_0000, 0x3] as [UInt64] {
                #expect(await errorName { try await store.subscribe(flags) } == "InvalidArgs")
                #expect(await errorName { try await store.synchronize(flags) } == "InvalidArgs")
                #expect(await errorName { _ = try await store.snapshot(since: 0, flags: flags) } == "InvalidArgs")
            }
            let unknown = await errorName {
                try await store.apply([(key: "a", value: .integer(1))]) { try $0.append(entry: "x", .boolean(true)) }
            }
            let mistyped = await errorName {
                try await store.apply([(key: "a", value: .integer(1))]) {
                    try $0.append(entry: "if-generation", .integer(1))
                }
            }
            let twice = await errorName {
                try await store.apply([(key: "a", value: .integer(1))]) { message in
                    for _ in 0..<2 {
                        try message.container("e", "sv") {
                            try message.append("if-generation")
                            try message.container("v", "t") { try message.append(0 as UInt64) }
                        }
                    }
                }
            }
            #expect([unknown, mistyped, twice] == ["InvalidArgs", "InvalidArgs", "InvalidArgs"])
            #expect(try await store.everything().isEmpty)
        }
    }

    @Test func `arguments of other types are refused`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            func name(_ member: String, _ build: @BusActor (Message) throws -> Void) async -> String {
                await errorName { try await store.call(member, build) { _ in } }
            }
            #expect(await name("GetValue") { _ in } == "InvalidArgs")
            #expect(await name("GetValue") { try $0.append(1 as UInt32) } == "InvalidArgs")
            #expect(await name("SetValue") { try $0.append("a") } == "InvalidArgs")
            #expect(await name("GetSnapshot") { try $0.append(0 as UInt64) } == "InvalidArgs")
            #expect(await name("Unsubscribe") { try $0.append("x") } == "InvalidArgs")
            #expect(await errorName { try await store.call("Explode", { _ in }) { _ in } } == "UnknownMethod")
        }
    }

    @Test func `a write and a read of the same connection are in order, many at a time`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            let areThere = try await atOnce(50) { index in
                try await store.set("key \(index)", .integer(1))
                return try await store.value("key \(index)") == .integer(1)
            }
            #expect(areThere.allSatisfy { $0 })
            #expect(try await store.property("KeyCount") == .integer(50))
        }
    }
}
