// SPDX-License-Identifier: Apache-2.0

import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

@BusActor
@Suite(.timeLimit(.minutes(30)))
struct LimitTests {
    private let limit = 1_048_576

    private func data(_ count: Int) -> Value { .data([UInt8](repeating: 7, count: count)) }

    private func numbers(_ range: Range<Int>) -> [(key: String, value: Value)] {
        range.map { (key: "key \($0)", value: .integer(Int64($0))) }
    }

    @Test func `a mebibyte under one key fits, and then nothing else does`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            try await store.set("all", data(limit))
            #expect(try await store.property("BytesUsed") == .integer(Int64(limit)))
            #expect(try await store.value("all") == data(limit))
            #expect(await errorName { try await store.set("more", .boolean(true)) } == "QuotaExceeded")
            try await store.apply(["more": .boolean(true)], removing: ["all"])
            #expect(try await store.everything() == ["more": .boolean(true)])
        }
    }

    @Test func `a byte more is refused with the limit, what is used, what it is and what was needed`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            try await store.set("a", data(1000))
            let value = await failure { try await store.set("b", data(limit + 1)) }
            #expect(value?.name.hasSuffix(".QuotaExceeded") == true)
            for part in ["value-bytes", "1048576", "1048577"] {
                #expect(value?.message.contains(part) == true, "\(part)")
            }
            let total = await failure { try await store.set("b", data(limit - 999)) }
            #expect(total?.name.hasSuffix(".QuotaExceeded") == true)
            for part in ["total-bytes", "1000", "1048576", "1048577"] {
                #expect(total?.message.contains(part) == true, "\(part) in \(total?.message ?? "")")
            }
            #expect(try await store.property("KeyCount") == .integer(1))
            try await store.set("b", data(limit - 1000))
        }
    }

    @Test func `keys don't count, a dictionary's keys do`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            try await store.set(
                String(repeating: "\u{8a9e}", count: 128),
                .dictionary(["\u{e9}": .string("abc"), "": .array([])])
            )
            #expect(try await store.property("BytesUsed") == .integer(2 + 3 + 0 + 1))
        }
    }

    @Test func `1024 keys fit and the next does not, but replacing does`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            try await store.apply(numbers(0..<1024)) { _ in }
            let refused = await failure { try await store.set("one more", .integer(1)) }
            #expect(refused?.name.hasSuffix(".QuotaExceeded") == true)
            for part in ["keys", "1024", "1025"] { #expect(refused?.message.contains(part) == true) }
            try await store.set("key 5", .string("replaced"))
            try await store.apply(["one more": .integer(1)], removing: ["key 0"])
            #expect(try await store.property("KeyCount") == .integer(1024))
            try await machine.device.restart()
            #expect(await errorName { try await store.set("and more", .integer(1)) } == "QuotaExceeded")
            #expect(try await store.property("KeyCount") == .integer(1024))
        }
    }

    @Test func `a call that breaks a limit is refused as a whole`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            let generation = try await store.set("kept", .integer(1))
            let name = await errorName { try await store.apply(numbers(0..<1024), removing: []) { _ in } }
            #expect(name == "QuotaExceeded")
            let large = await errorName {
                try await store.apply(["a": .integer(1), "b": data(limit)], removing: ["kept"])
            }
            #expect(large == "QuotaExceeded")
            #expect(try await store.everything() == ["kept": .integer(1)])
            #expect(try await store.generation() == generation)
        }
    }

    @Test func `a refused write is signalled to the writer and to the others, with the limit`() async throws {
        try await withMachine { machine in
            let (writer, other, silent) = (try machine.store(), try machine.store(), try machine.store())
            try await writer.subscribe()
            try await other.subscribe()
            try await silent.listen()
            _ = await failure { try await writer.apply(["b": data(limit), "a": .integer(1)]) }
            for store in [writer, other] {
                let signal = try await store.signal("a quota violation") { $0.reason == 2 }
                #expect(signal.keys == ["a", "b"])
                #expect(signal.info["limit"] == .string("total-bytes"))
                #expect(signal.info["needed"] == .integer(Int64(limit) + 8))
                #expect(signal.info["available"] == .integer(Int64(limit)))
                #expect(signal.generation == (try await store.generation()))
            }
            // Any signal to it would have arrived before this answer.
            _ = try await silent.everything()
            #expect(silent.received.isEmpty)
        }
    }

    @Test func `65 subscriptions of a connection are one too many, and one that ends makes room`() async throws {
        try await withMachine { options in
            options.manifests += (0..<65).map { ManifestText("org.example.app\($0)") }
        } _: { machine in
            let client = try machine.client()
            let stores = try (0..<65).map { try client.store("org.example.app\($0)") }
            try await client.account.subscribe()
            for store in stores[..<63] { try await store.subscribe() }
            #expect(await errorName { try await stores[63].subscribe() } == "LimitsExceeded")
            // Subscribing again doesn't count, but subscribing through the other path does.
            try await stores[0].subscribe(0x1)
            let alias = StoreClient(client, path: try BusNames.storePath(uid: nil, identifier: "org.example.app0"))
            #expect(await errorName { try await alias.subscribe() } == "LimitsExceeded")
            try await stores[0].unsubscribe()
            try await stores[63].subscribe()
            #expect(await errorName { try await stores[64].subscribe() } == "LimitsExceeded")
            _ = try await stores[64].everything()
        }
    }

    @Test func `257 subscriptions of a user are one too many, and a connection that goes makes room`() async throws {
        try await withMachine { options in
            options.manifests += (0..<64).map { ManifestText("org.example.app\($0)") }
        } _: { machine in
            let clients = try (0..<5).map { _ in try machine.client() }
            for client in clients[..<4] {
                for index in 0..<64 { try await client.store("org.example.app\(index)").subscribe() }
            }
            let last = try clients[4].store(notes)
            #expect(await errorName { try await last.subscribe() } == "LimitsExceeded")
            clients[0].connection.close()
            try await eventually("there is room again") { await errorName { try await last.subscribe() } == "" }
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `one user's subscriptions leave the others' alone`() async throws {
        try await withMachine { options in
            options.manifests += (0..<64).map { ManifestText("org.example.app\($0)") }
        } _: { machine in
            for _ in 0..<4 {
                let client = try machine.client(as: Users.nobody)
                for index in 0..<64 { try await client.store("org.example.app\(index)").subscribe() }
            }
            try await machine.store(as: Users.daemon).subscribe()
        }
    }
}
