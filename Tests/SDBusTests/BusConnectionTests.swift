// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import SDBus

@BusActor
@Suite(.timeLimit(.minutes(30)))
struct BusConnectionTests {
    let bus: PrivateBus

    init() throws {
        bus = try PrivateBus()
    }

    // MARK: Counts

    /// As dbus-daemon reports them, and as a bus that refuses to for one connection, or that reports other counts.
    @Test(
        arguments: [
            nil, BusError(name: "org.freedesktop.DBus.Error.Failed", message: "Unimplemented functionality"),
            .unknownMethod("No such method."),
        ], ["OutgoingBytes", "Serial"])
    func `a bus is asked for what it holds in the way that it knows`(_ refusal: BusError?, _ count: String) async throws
    {
        let (server, client) = try BusConnection.pair()
        let statistics = Interface<Thing>(
            "org.freedesktop.DBus.Debug.Stats",
            [
                .method("GetConnectionStats", in: ["name": "s"], out: ["counts": "a{sv}"]) { thing, call in
                    thing.calls += 1
                    if let refusal { throw refusal }
                    try call.reply { try Self.write($0, count, "u") { try $0.append(UInt32(7)) } }
                },
                .method("GetStats", out: ["counts": "a{sv}"]) { _, call in
                    try call.reply {
                        try Self.write($0, "org.bus1.DBus.Debug.Stats.PeerAccounting", "a(sa{sv}a{su})") { reply in
                            try reply.container("a", "(sa{sv}a{su})") {
                                for (name, bytes) in [(":1.6", 6), (":1.7", 7)] as [(String, UInt32)] {
                                    try Self.writePeer(reply, name, bytes)
                                }
                            }
                        }
                    }
                },
            ])
        let thing = Thing()
        let slot = try server.register(statistics, at: "/org/freedesktop/DBus", thing)
        for _ in 0..<3 { #expect(try await client.undeliveredBytes(to: ":1.7") == 7) }
        #expect(thing.calls == (refusal == nil && count == "OutgoingBytes" ? 3 : 1))
        withExtendedLifetime(slot) {}
    }

    /// Writes a dictionary of one entry.
    private static func write(
        _ message: Message, _ name: String, _ signature: String, _ body: (Message) throws -> Void
    ) throws {
        try message.container("a", "{sv}") {
            try message.container("e", "sv") {
                try message.append(name)
                try message.container("v", signature) { try body(message) }
            }
        }
    }

    private static func writePeer(_ message: Message, _ name: String, _ bytes: UInt32) throws {
        try message.container("r", "sa{sv}a{su}") {
            try message.append(name)
            try message.container("a", "{sv}") {}
            try message.container("a", "{su}") {
                try message.container("e", "su") {
                    try message.append("OutgoingBytes")
                    try message.append(bytes)
                }
            }
        }
    }

    // MARK: Rounds

    @Test func `calls that arrive together are one round`() async throws {
        let ends = try ThingPair()
        try await ends.callKeep(1)
        var rounds: [Int] = []
        ends.server.afterDispatch = {
            rounds.append(ends.thing.kept.count)
            for call in ends.thing.kept { try? call.reply() }
            ends.thing.kept = []
        }
        try await ends.callKeep(200)
        #expect(rounds.reduce(0, +) == 200)
        #expect(rounds.max() ?? 0 > 10 && rounds.max() ?? 0 <= 64, "\(rounds)")
        #expect(rounds.count < 50, "\(rounds)")
    }

    @Test func `answers of a client that doesn't read stop our reading`() async throws {
        let ends = try ThingPair()
        let blob = [UInt8](repeating: 1, count: 10_000)
        let slot = try ends.server.register(
            Interface<Thing>(
                "org.example.Blob",
                [
                    .method("Get", out: ["blob": "ay"]) { thing, call in
                        thing.calls += 1
                        try call.reply { try $0.append(bytes: blob) }
                    }
                ]
            ),
            at: "/blob",
            ends.thing
        )
        try await ends.callKeep(1)
        ends.client.dispatcher.stop()
        for _ in 0..<80 {
            // No more than the socket takes, so that none waits for the client's loop.
            for _ in 0..<50 {
                let call = try ends.client.newCall(nil, "/blob", "org.example.Blob", "Get")
                try ends.client.start(call, timeout: nil) { _ in }
            }
            try await Task.sleep(for: .milliseconds(2))
        }
        // The socket holds some megabytes; 1024 messages wait.
        try await eventually { ends.server.dispatcher.queuedWrites >= 1024 }
        #expect(ends.thing.calls < 4000)
        #expect((1024...1100).contains(ends.server.dispatcher.queuedWrites))
        try ends.client.dispatcher.start(ends.client.reference)
        try await eventually { ends.client.pendingCalls.isEmpty }
        #expect(ends.thing.calls == 4000)
        withExtendedLifetime(slot) {}
    }

    // MARK: Calls

    @Test func `a call without an answer in time fails`() async throws {
        let ends = try ThingPair()
        #expect(
            await errorName {
                try await ends.client.invoke(nil, "/thing", "org.example.Thing", "Keep", timeout: .milliseconds(20))
            } == standard + "NoReply"
        )
        #expect(ends.client.pendingCalls.isEmpty)
    }

    @Test func `a cancelled task doesn't wait for the answer`() async throws {
        let ends = try ThingPair()
        let task = Task { try await ends.invoke("Keep") }
        try await eventually { ends.thing.kept.count == 1 }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(ends.client.pendingCalls.isEmpty)
        try ends.thing.kept[0].reply()
        try await ends.invoke("Echo") { call in try call.container("v", "b") { try call.append(true) } }
    }

    @Test func `closing fails the calls that wait`() async throws {
        let ends = try ThingPair()
        let task = Task { await errorName { try await ends.invoke("Keep") } }
        try await eventually { ends.thing.kept.count == 1 }
        ends.client.close()
        #expect(await task.value == standard + "Disconnected")
        #expect(await errorName { try await ends.invoke("Keep") } != nil)
    }

    @Test func `the other end's going is told once`() async throws {
        let ends = try ThingPair()
        try await ends.callKeep(1)
        var count = 0
        ends.server.onDisconnect = { count += 1 }
        ends.client.close()
        try await eventually { count == 1 }
        #expect(!ends.server.isOpen)
        try await Task.sleep(for: .milliseconds(20))
        #expect(count == 1)
    }

    @Test func `a connection may be released on any thread, while messages come in`() async throws {
        var servers: [BusConnection] = []
        var closed = 0
        for _ in 0..<20 {
            servers.append(try serverOfReleasedClient())
            servers.last?.onDisconnect = { closed += 1 }
        }
        try await eventually { closed == 20 }
    }

    /// Returns one end of a pair, with signals in flight to the other, which a thread is about to release.
    private func serverOfReleasedClient() throws -> BusConnection {
        let (server, client) = try BusConnection.pair()
        for _ in 0..<50 { try server.send(try server.newSignal("/thing", "org.example.Thing", "Changed", to: "")) }
        Task.detached { [client] in
            try? await Task.sleep(for: .microseconds(Int.random(in: 0..<500)))
            withExtendedLifetime(client) {}
        }
        return server
    }

    @Test func `a registration may be released on any thread, while calls come in`() async throws {
        for _ in 0..<200 {
            let (server, client) = try BusConnection.pair()
            var slot: Slot? = try server.register(thingInterface, at: "/thing", Thing())
            Task.detached { [slot] in
                try? await Task.sleep(for: .microseconds(Int.random(in: 0..<500)))
                withExtendedLifetime(slot) {}
            }
            slot = nil
            let refusal = "org.example.Refused"
            var error: String? = refusal
            while error == refusal {
                error = await errorName {
                    try await client.invoke(nil, "/thing", "org.example.Thing", "Refuse") {
                        try $0.append(refusal)
                        try $0.append("")
                    }
                }
            }
            #expect(error == standard + "UnknownObject")
        }
    }

    // MARK: On a bus

    @Test func `a bus that is killed is told of`() async throws {
        let connection = try bus.connect()
        var isDisconnected = false
        connection.onDisconnect = { isDisconnected = true }
        let pending = Task {
            await errorName { try await connection.invoke(connection.uniqueName, "/none", "org.example.None", "Wait") }
        }
        bus.kill()
        try await eventually { isDisconnected }
        #expect(await pending.value != nil)
    }

    @Test func `a bus that isn't there is an error`() throws {
        #expect(throws: BusError.self) {
            _ = try BusConnection.open(.address("unix:path=/nonexistent/bus"), description: "test")
        }
    }

    @Test func `a name that is taken says who has it`() async throws {
        let (first, second) = (try bus.connect(), try bus.connect())
        try await first.names.request("org.example.Name")
        try await first.names.request("org.example.Name")
        let error = await #expect(throws: BusError.self) { try await second.names.request("org.example.Name") }
        #expect(error?.name == standard + "AddressInUse")
        #expect(error?.message.contains(try #require(first.uniqueName)) == true)
        try await first.names.release("org.example.Name")
        try await second.names.request("org.example.Name")
        #expect(await errorName { try await second.names.request("no name") } != nil)
    }

    @Test func `a name that is lost is told of, and one that is given back isn't`() async throws {
        let connection = try bus.connect()
        var losses = 0
        connection.names.onLost = { losses += 1 }
        try await connection.names.request("org.example.Name")
        try await connection.names.release("org.example.Name")
        try await connection.names.request("org.example.Name")
        #expect(losses == 0)
        // Releases the name without the connection's knowledge.
        try await connection.invoke(
            "org.freedesktop.DBus",
            "/org/freedesktop/DBus",
            "org.freedesktop.DBus",
            "ReleaseName"
        ) { try $0.append("org.example.Name") }
        try await eventually { losses == 1 }
    }

    @Test func `a signal gets to its recipient and to nobody else`() async throws {
        let (server, client, other) = (try bus.connect(), try bus.connect(), try bus.connect())
        var received: [[String]] = []
        var overheard = 0
        let rule = "type='signal',interface='org.example.Thing'"
        let slots = [
            try await client.addMatch(rule) { message in
                guard (try? message.readUInt32()) == 3, let keys = try? message.readStrings() else { return }
                received.append(keys + [message.sender ?? ""])
            },
            try await other.addMatch(rule) { _ in overheard += 1 },
        ]
        let signal = try server.newSignal("/thing", "org.example.Thing", "Changed", to: try #require(client.uniqueName))
        try signal.append(UInt32(3))
        try signal.append(strings: ["a", "b"])
        try server.send(signal)
        try await eventually { !received.isEmpty }
        // The bus's reply to this comes after the signal, so a copy would have arrived by now.
        _ = try await other.introspect("org.freedesktop.DBus", "/")
        #expect(received == [["a", "b", try #require(server.uniqueName)]])
        #expect(overheard == 0)
        withExtendedLifetime(slots) {}
    }

    @Test func `a match ends with its slot, and a rule that isn't one is refused`() async throws {
        let (server, client) = try BusConnection.pair()
        var count = 0
        var slot: Slot? = try await client.addMatch("type='signal'") { _ in count += 1 }
        var later = 0
        let other = try await client.addMatch("type='signal'") { _ in later += 1 }
        try server.send(try server.newSignal("/thing", "org.example.Thing", "Changed", to: ""))
        try await eventually { count == 1 }
        #expect(slot != nil)
        slot = nil
        try server.send(try server.newSignal("/thing", "org.example.Thing", "Changed", to: ""))
        // The other match has it, so this one would have had it, too.
        try await eventually { later == 2 }
        #expect(count == 1)
        withExtendedLifetime(other) {}
        let connection = try bus.connect()
        await #expect(throws: BusError.self) { _ = try await connection.addMatch("kind='signal'") { _ in } }
    }
}

extension ThingPair {
    /// Calls Keep `count` times at once, and replies unless the server's `afterDispatch` does.
    fileprivate func callKeep(_ count: Int) async throws {
        let isAnswered = server.afterDispatch != nil
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<count {
                group.addTask { try await invoke("Keep") }
            }
            if !isAnswered {
                try await eventually { thing.kept.count == count }
                for call in thing.kept { try call.reply() }
                thing.kept = []
            }
            try await group.waitForAll()
        }
    }
}
