// SPDX-License-Identifier: Apache-2.0

import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

@BusActor
@Suite(.timeLimit(.minutes(30)))
struct KeyTests {
    private let longest = [
        String(repeating: "k", count: 128), String(repeating: "\u{1f600}", count: 64),
        String(repeating: "語", count: 128),
    ]
    private let tooLong = [
        String(repeating: "k", count: 129), String(repeating: "\u{1f600}", count: 65),
        String(repeating: "\u{1f600}", count: 64) + "k", String(repeating: "k", count: 1_000_000),
    ]

    @Test func `a key has up to 128 UTF-16 code units, surrogate pairs counted as two`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            for key in longest {
                try await store.set(key, .integer(1))
                #expect(try await store.value(key) == .integer(1))
            }
            for key in tooLong {
                #expect(await errorName { try await store.set(key, .integer(1)) } == "KeyTooLong")
                #expect(await errorName { try await store.remove(key) } == "KeyTooLong")
                #expect(
                    await errorName { try await store.apply(["good": .integer(1), key: .integer(1)]) } == "KeyTooLong"
                )
                #expect(
                    await errorName { try await store.apply(["good": .integer(1)], removing: [key]) } == "KeyTooLong"
                )
            }
            #expect(try await store.property("KeyCount") == .integer(3))
        }
    }

    @Test func `an empty key is none`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            #expect(await errorName { try await store.set("", .integer(1)) } == "InvalidKey")
            #expect(await errorName { try await store.remove("") } == "InvalidKey")
            #expect(await errorName { try await store.apply(["": .integer(1)]) } == "InvalidKey")
            #expect(await errorName { try await store.apply(removing: [""]) } == "InvalidKey")
            #expect(try await store.everything().isEmpty)
        }
    }

    @Test func `a read of a key that can't exist finds nothing`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            for key in ["", "absent"] + tooLong {
                #expect(await errorName { _ = try await store.value(key) } == "NoSuchKey")
            }
            #expect(try await store.values([""] + tooLong).isEmpty)
        }
    }

    @Test func `two spellings of é are two keys`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            try await store.apply(["é": .string("e\u{301}"), "e\u{301}": .string("é")])
            #expect(try await store.value("é") == .string("e\u{301}"))
            try await store.remove("é")
            #expect(await errorName { _ = try await store.value("é") } == "NoSuchKey")
            #expect(try await store.value("e\u{301}") == .string("é"))
        }
    }

    @Test func `a U+0000 in a key or a string ends its sender's connection, and nothing is stored`() async throws {
        try await withMachine({ $0.user = nil }) { machine in
            let store = try machine.store(as: nil)
            for (key, value) in [("a\0b", "text"), ("key", "a\0b")] {
                let raw = try RawClient(machine.bus)
                var body = Wire()
                body.string(key)
                body.signature("s")
                body.string(value)
                raw.store(store.path, "SetValue", signature: "sv", body: body.bytes)
                try await eventually("the bus hangs up") { raw.isClosed() }
            }
            #expect(try await store.everything().isEmpty)
        }
    }
}
