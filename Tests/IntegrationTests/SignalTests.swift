// SPDX-License-Identifier: Apache-2.0

import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

@BusActor
@Suite(.timeLimit(.minutes(30)))
struct SignalTests {
    private let large = Value.data([UInt8](repeating: 1, count: 1_048_577))

    @Test func `others are told of a write that asked for it, and the writer is not`() async throws {
        try await withMachine { machine in
            let (writer, asked, didNotAsk) = (try machine.store(), try machine.store(), try machine.store())
            try await writer.subscribe(0x1)
            try await asked.subscribe(0x1)
            try await didNotAsk.subscribe()
            let generation = try await writer.set("key", .string(Text(secret)))
            let signal = try await asked.signal("a local change") { _ in true }
            #expect(signal.reason == 16 && signal.keys == ["key"] && signal.generation == generation)
            #expect(signal.sender == (try await writer.client.serviceOwner()))
            _ = try await (writer.everything(), didNotAsk.everything())
            #expect(writer.received.isEmpty && didNotAsk.received.isEmpty)
        }
    }

    @Test func `two connections of one process are two`() async throws {
        try await withMachine { machine in
            let (one, two) = (try machine.store(), try machine.store())
            for store in [one, two] { try await store.subscribe(0x1) }
            try await one.set("a", .integer(1))
            try await two.set("b", .integer(1))
            #expect(try await one.signal("two's") { _ in true }.keys == ["b"])
            #expect(try await two.signal("one's") { _ in true }.keys == ["a"])
        }
    }

    @Test func `changes that follow each other are merged, with the keys of all`() async throws {
        try await withMachine { machine in
            let (writer, reader) = (try machine.store(), try machine.store())
            try await reader.subscribe(0x1)
            var last: UInt64 = 0
            for index in 0..<200 { last = try await writer.set("key \(index % 50)", .integer(Int64(index))) }
            _ = try await reader.signal("the last") { $0.generation == last }
            #expect(reader.received.count < 200)
            #expect(Set(reader.received.flatMap(\.keys)) == Set((0..<50).map { "key \($0)" }))
            #expect(reader.received.map(\.generation) == reader.received.map(\.generation).sorted())
            #expect(reader.received.allSatisfy { $0.keys == $0.keys.sorted() && Set($0.keys).count == $0.keys.count })
        }
    }

    @Test func `another reason sends what is waiting and is not merged into it`() async throws {
        try await withMachine { machine in
            let (writer, reader) = (try machine.store(), try machine.store())
            try await reader.subscribe(0x1)
            // The second change waits to be merged when the third comes, unless the machine is slow.
            try await writer.set("a", .integer(1))
            try await writer.set("b", .integer(1))
            _ = await failure { try await writer.set("c", large) }
            _ = try await reader.signal("the quota violation") { $0.reason == 2 }
            let reasons = reader.received.map(\.reason)
            #expect(reasons.last == 2 && reasons.dropLast().allSatisfy { $0 == 16 } && reasons.count >= 2)
            #expect(Set(reader.received.dropLast().flatMap(\.keys)) == ["a", "b"])
            #expect(reader.received.last?.keys == ["c"])
        }
    }

    @Test func `after Unsubscribe nothing comes, and Subscribe again changes the flags`() async throws {
        try await withMachine { machine in
            let (writer, reader) = (try machine.store(), try machine.store())
            try await reader.unsubscribe()
            try await reader.subscribe(0x1)
            try await reader.subscribe(0)
            try await writer.set("a", .integer(1))
            _ = await failure { try await writer.set("b", large) }
            _ = try await reader.signal("the quota violation") { $0.reason == 2 }
            #expect(reader.received.map(\.reason) == [2])
            try await reader.unsubscribe()
            _ = await failure { try await writer.set("b", large) }
            _ = try await reader.everything()
            #expect(reader.received.count == 1)
        }
    }

    @Test func `signals come from the path that was subscribed through, and from both for both`() async throws {
        try await withMachine { machine in
            let (writer, reader) = (try machine.store(), try machine.store())
            let alias = StoreClient(reader.client, path: try BusNames.storePath(uid: nil, identifier: notes))
            try await reader.listen()
            try await alias.subscribe(0x1)
            try await writer.set("a", .integer(1))
            _ = try await alias.signal("the change") { _ in true }
            _ = try await reader.everything()
            #expect(reader.received.isEmpty && alias.received.count == 1)

            try await reader.subscribe(0x1)
            let both = try await writer.set("b", .integer(1))
            for store in [alias, reader] { _ = try await store.signal("the second") { $0.generation == both } }
            try await alias.unsubscribe()
            let last = try await writer.set("c", .integer(1))
            _ = try await reader.signal("the third") { $0.generation == last }
            _ = try await reader.everything()
            #expect(alias.received.last?.generation == both)
        }
    }

    @Test func `the last subscription of a connection deafens neither it nor another client`() async throws {
        let names = (0..<64).map { "org.example.app\($0)" }
        try await withMachine { options in
            options.manifests += names.map { ManifestText($0) }
        } _: { machine in
            let (full, other, writer) = (try machine.client(), try machine.client(), try machine.client())
            for name in names[..<63] { try await full.store(name).subscribe(0x1) }
            // Through an alias, so that the store is subscribed to by one path and found by another.
            let last = StoreClient(full, path: try BusNames.storePath(uid: nil, identifier: names[63]))
            try await last.subscribe(0x1)
            let (reader, store) = (try other.store(names[63]), try writer.store(names[63]))
            try await reader.subscribe(0x1)
            let first = try await store.set("a", .integer(1))
            for subscriber in [last, reader] { _ = try await subscriber.signal("a") { $0.generation == first } }

            full.connection.close()
            try await eventually("the service has noticed") {
                await errorName { try await writer.store(names[0]).subscribe() } == ""
            }
            let second = try await machine.store(names[63]).set("b", .integer(1))
            _ = try await reader.signal("b") { $0.generation == second }
        }
    }

    @Test func `a subscriber that returns after a restart sees by the generation what it missed`() async throws {
        try await withMachine { machine in
            let (writer, reader) = (try machine.store(), try machine.store())
            try await reader.subscribe(0x1)
            try await writer.set("a", .integer(1))
            let seen = try await reader.snapshot().generation
            try await machine.device.restart()
            try await writer.set("b", .integer(1))
            let generation = try await reader.subscribe(0x1)
            #expect(generation > seen)
            #expect(try await reader.snapshot(since: seen).values["b"] == .integer(1))
        }
    }

    @Test func `RemoveStore is told to those who asked`() async throws {
        try await withMachine { machine in
            let (writer, reader) = (try machine.store(), try machine.store())
            try await writer.apply(["a": .integer(1), "b": .integer(2)])
            try await reader.subscribe(0x1)
            try await writer.client.manager("RemoveStore") {
                try $0.append(notes)
                try $0.append(0 as UInt64)
            }
            #expect(try await reader.signal("the removal") { _ in true }.keys == ["a", "b"])
        }
    }

    // MARK: Unintended recipients

    @Test func `whoever only listens hears nothing`() async throws {
        try await withMachine { machine in
            let (writer, reader) = (try machine.store(), try machine.store())
            let sniffer = try machine.client(as: Users.areSeveral ? Users.daemon : nil)
            var heard: [String] = []
            let slots = [
                try await sniffer.connection.addMatch("type='signal'") { heard.append($0.member ?? "") },
                try await sniffer.connection.addMatch("sender='\(BusNames.service)'") { message in
                    if message.member == "DidChangeExternally" { heard.append("by sender") }
                },
            ]
            try await reader.subscribe(0x1)
            try await reader.client.account.subscribe()
            try await writer.set("a", .integer(1))
            _ = try await reader.signal("the change") { _ in true }
            _ = try await sniffer.manager("Identify") { _ in
            } decode: { _ in
            }
            // The bus's own signals go to everyone.
            #expect(heard.filter { !["NameAcquired", "NameOwnerChanged"].contains($0) }.isEmpty, "\(heard)")
            withExtendedLifetime(slots) {}
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `nobody but root may watch the bus`() async throws {
        try await withMachine { machine in
            let result = try await run(
                ["timeout", "5", "busctl", "--address=\(machine.bus.address)", "monitor"],
                as: Users.nobody
            )
            #expect(result.exit != .code(0) && result.exit != .code(124), "\(result)")
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `signals that are addressed to the service are stopped by the policy, and broadcasts are not`() async throws {
        try await withMachine(started: false) { machine in
            let owner = try machine.client(as: Users.service).connection
            try await owner.names.request(BusNames.service)
            var heard: [String] = []
            let slot = try await owner.addMatch("type='signal',interface='org.example.Noise'") {
                heard.append($0.member ?? "")
            }
            for user in [Users.nobody, 0] {
                let forger = try RawClient(machine.bus, as: user)
                for destination in [BusNames.service, owner.uniqueName, nil] {
                    forger.signal(to: destination, "org.example.Noise", destination == nil ? "Broadcast" : "Addressed")
                }
                let count = heard.filter { $0 == "Broadcast" }.count
                try await eventually("the broadcast arrives") { heard.filter { $0 == "Broadcast" }.count > count }
            }
            #expect(heard == ["Broadcast", "Broadcast"])
            withExtendedLifetime(slot) {}
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `a signal that somebody forges is stopped by the policy`() async throws {
        try await withMachine { machine in
            let reader = try machine.store()
            try await reader.subscribe(0x1)
            for user in [Users.daemon, Users.nobody, 0] {
                let forger = try machine.client(as: user)
                for (interface, member) in [
                    (BusNames.storeInterface, "DidChangeExternally"), (BusNames.accountInterface, "AccountChanged"),
                ] {
                    let signal = try forger.connection.newSignal(
                        reader.path,
                        interface,
                        member,
                        to: reader.client.connection.uniqueName ?? ""
                    )
                    try signal.append(0 as UInt32)
                    try signal.append(strings: ["forged"])
                    try signal.append(UInt64.max)
                    try signal.appendDictionary {}
                    try forger.connection.send(signal)
                }
                // Both signals passed through the bus before the answer.
                _ = try await forger.manager("Identify") { _ in
                } decode: { _ in
                }
            }
            _ = try await reader.everything()
            #expect(reader.received.isEmpty)
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `nobody but the service's user can have its name`() async throws {
        try await withMachine(started: false) { machine in
            for user in [Users.daemon, Users.nobody, 0] {
                let client = try machine.client(as: user)
                let connection = client.connection
                #expect(await errorName { try await connection.names.request(BusNames.service) } == "AccessDenied")
            }
        }
    }
}
