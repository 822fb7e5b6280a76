// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import SDBus

#if canImport(Glibc)
    import Glibc
#endif

@BusActor
@Suite(.timeLimit(.minutes(30)))
struct PeerTests {
    let bus: PrivateBus

    init() throws {
        bus = try PrivateBus()
    }

    @Test func `a caller is who the bus says`() async throws {
        let (server, slot) = try serve(Thing())
        let client = try bus.connect()
        let (name, uid) = try await client.whoAmI(server)
        #expect(name == client.uniqueName && uid == getuid())
        withExtendedLifetime(slot) {}
    }

    @Test func `the bus is asked once for each caller`() async throws {
        let (server, slot) = try serve(Thing())
        let clients = [try bus.connect(), try bus.connect()]
        for _ in 0..<3 {
            for client in clients { _ = try await client.whoAmI(server) }
        }
        #expect(server.admission?.arrivals.requests == 2)
        withExtendedLifetime(slot) {}
    }

    @Test func `without a bus the caller is the socket's other end, or what the test says`() async throws {
        let ends = try ThingPair()
        #expect(
            try await ends.call("WhoAmI") { [try $0.readString(), "\(try $0.readUInt32())"] } == ["", "\(getuid())"]
        )
        let (server, client) = try BusConnection.pair()
        server.peers.directCredentials = Credentials(uid: 4242)
        let slot = try server.register(thingInterface, at: "/thing", Thing())
        let uid = try await client.call(nil, "/thing", "org.example.Thing", "WhoAmI") { answer in
            _ = try answer.readString()
            return try answer.readUInt32()
        }
        #expect(uid == 4242)
        withExtendedLifetime(slot) {}
    }

    @Test func `a caller whom the bus doesn't know any more is refused`() async throws {
        let thing = Thing()
        let (server, slot) = try serve(thing)
        let client = try bus.connect()
        // All of this is on the loop's thread, so the server receives the call only after the client has gone.
        let call = try client.newThingCall(server, "Keep")
        try client.send(call)
        client.flush()
        client.close()
        try await eventually { server.admission?.arrivals.requests == 1 }
        #expect(thing.kept.isEmpty)
        withExtendedLifetime(slot) {}
    }

    @Test func `find and enumerators see the caller`() async throws {
        let server = try bus.connect()
        let thing = Thing()
        let clients = [try bus.connect(), try bus.connect()]
        let own = clients[0].uniqueName
        let slots = [
            try server.register(thingInterface, under: "/things") { path, peer in
                path == "/things/own" && peer.uniqueName == own ? .object(thing) : nil
            },
            try server.enumerate(under: "/things") { _, peer in peer.uniqueName == own ? ["/things/own"] : [] },
        ]
        #expect(try await clients[0].introspect(server.uniqueName, "/things").contains(#"<node name="own"/>"#))
        #expect(!(try await clients[1].introspect(server.uniqueName, "/things").contains("own")))
        _ = try await clients[0].introspect(server.uniqueName, "/things/own")
        #expect(
            await errorName { _ = try await clients[1].introspect(server.uniqueName, "/things/own") }
                == standard + "UnknownObject"
        )
        withExtendedLifetime(slots) {}
    }

    // MARK: Vanishing

    @Test func `a held peer that vanishes is told of once, and others aren't`() async throws {
        let thing = Thing()
        let (server, slot) = try serve(thing)
        var vanished: [String] = []
        server.peers.onVanished = { vanished.append($0.uniqueName) }
        let clients = [try bus.connect(), try bus.connect()]
        let peers = try await keepCalls(of: clients, thing, server)
        peers[0].hold()
        peers[0].hold()
        #expect(server.peers.vanishingMatch != nil)
        clients[1].close()
        clients[0].close()
        try await eventually { !vanished.isEmpty }
        try await Task.sleep(for: .milliseconds(20))
        #expect(vanished == [clients[0].uniqueName])
        #expect(!peers[0].isHeld && server.peers.vanishingMatch == nil)
        peers[0].release()
        withExtendedLifetime(slot) {}
    }

    @Test func `there is one match while peers are held, and none after`() async throws {
        let thing = Thing()
        let (server, slot) = try serve(thing)
        let clients = [try bus.connect(), try bus.connect()]
        let peers = try await keepCalls(of: clients, thing, server)
        #expect(server.peers.vanishingMatch == nil)
        peers[0].hold()
        let match = try #require(server.peers.vanishingMatch)
        peers[1].hold()
        #expect(server.peers.vanishingMatch === match)
        peers[0].release()
        #expect(server.peers.vanishingMatch === match)
        peers[1].release()
        #expect(server.peers.vanishingMatch == nil)
        withExtendedLifetime(slot) {}
    }

    @Test func `a peer that vanished before it was held is told of, too`() async throws {
        let thing = Thing()
        let (server, slot) = try serve(thing)
        let client = try bus.connect()
        let peers = try await keepCalls(of: [client], thing, server)
        client.close()
        try await Task.sleep(for: .milliseconds(50))
        var vanished: [String] = []
        server.peers.onVanished = { vanished.append($0.uniqueName) }
        peers[0].hold()
        try await eventually { vanished == [client.uniqueName] }
        #expect(!peers[0].isHeld && server.peers.vanishingMatch == nil)
        withExtendedLifetime(slot) {}
    }

    @Test func `peers that aren't held are forgotten, the longest unseen first`() throws {
        let (connection, _) = try BusConnection.pair()
        var cache = PeerCache()
        func add(_ number: Int) -> Peer {
            let peer = Peer(":1.\(number)", Credentials(uid: 0), on: connection.reference)
            cache.insert(peer)
            return peer
        }
        add(0).hold()
        let referred = add(1)
        for number in 2...(PeerCache.capacity + 1) { _ = add(number) }
        #expect(cache.peer(":1.2") != nil)
        for number in 100...101 { _ = add(number) }
        #expect(cache.peer(":1.2") != nil)
        #expect(cache.peer(":1.3") == nil)
        #expect(cache.peer(":1.0")?.isHeld == true)
        #expect(cache.peer(":1.1") === referred)
    }

    // MARK: Support

    private func serve(_ thing: Thing) throws -> (BusConnection, Slot) {
        let server = try bus.connect("server")
        return (server, try server.register(thingInterface, at: "/thing", thing))
    }

    /// Returns the peers of clients, from a call of each.
    private func keepCalls(of clients: [BusConnection], _ thing: Thing, _ server: BusConnection) async throws -> [Peer]
    {
        for (index, client) in clients.enumerated() {
            try client.send(try client.newThingCall(server, "Keep"))
            try await eventually { thing.kept.count == index + 1 }
        }
        defer { thing.kept = [] }
        return thing.kept.map(\.peer)
    }
}

extension BusConnection {
    fileprivate func whoAmI(_ server: BusConnection) async throws -> (String, UInt32) {
        try await call(server.uniqueName, "/thing", "org.example.Thing", "WhoAmI") {
            (try $0.readString(), try $0.readUInt32())
        }
    }

    func newThingCall(_ server: BusConnection, _ member: String) throws -> Message {
        try newCall(server.uniqueName, "/thing", "org.example.Thing", member)
    }
}
