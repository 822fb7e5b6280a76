// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import PropertyList
import Replication
import ServerTesting
import StoreEngine
import SyncEngine
import Synchronization
import Testing

@testable import Etcd

/// What a device learns if it has not watched all the time, or watches a silent member.
@Suite(.serialized, .timeLimit(.minutes(30)), .enabled(if: EtcdCluster.isInstalled))
struct EtcdWatchTests {
    private static let store = "org.example.Notes"

    /// Watches an account, and counts the hints.
    private final class Listener: Sendable {
        let backend: EtcdBackend
        /// Kept alive for as long as the listener.
        let cluster: EtcdCluster
        private let count = Atomic(0)
        private let listening = Mutex<Task<Void, Never>?>(nil)

        init(_ cluster: EtcdCluster, _ backend: EtcdBackend? = nil) throws {
            self.cluster = cluster
            self.backend = try backend ?? cluster.backend()
        }

        var hints: Int { count.load(ordering: .relaxed) }
        var isLive: Bool { backend.traits.givesHints }

        func begin() {
            listening.withLock {
                $0 = Task { for await _ in backend.hints() { count.add(1, ordering: .relaxed) } }
            }
        }

        func end() async {
            await backend.close()
            await listening.withLock(\.self)?.value
        }
    }

    private func eventually(_ condition: () -> Bool, _ location: SourceLocation = #_sourceLocation) async throws {
        for _ in 0..<6000 where !condition() { try await Task.sleep(for: .milliseconds(5)) }
        let isSo = condition()
        #expect(isSo, sourceLocation: location)
    }

    /// A device that writes, and one that has polled once, with the listener on its backend.
    private func devices(
        _ cluster: EtcdCluster
    ) async throws -> (writer: BackendDevice, reader: BackendDevice, listener: Listener) {
        let remote = cluster.remote
        let devices = try await BackendConformance.devices(2, remote)
        let listener = try Listener(cluster)
        devices[1].backend = listener.backend
        try await devices[1].signIn(creating: false)
        try await BackendConformance.settle(devices)
        return (devices[0], devices[1], listener)
    }

    private func change(_ device: BackendDevice, to number: Int64) async throws {
        device.set(Self.store, "a", .integer(number))
        try await device.sync()
    }

    @Test func `a change between the first look and the first moment of listening is told of, and no own one is`()
        async throws
    {
        let (writer, reader, listener) = try await devices(try EtcdCluster())
        try await change(writer, to: 1)
        listener.begin()
        try await eventually { listener.hints == 1 && listener.isLive }
        reader.set(Self.store, "own", .integer(1))
        try await reader.sync()
        try await eventually { listener.isLive }
        try await change(writer, to: 2)
        try await eventually { listener.hints == 2 }
        await listener.end()
        #expect(listener.hints == 2)
    }

    @Test func `an outage is a reason to look, once, and the look that comes through has it be listened to again`()
        async throws
    {
        let cluster = try EtcdCluster()
        let (_, reader, listener) = try await devices(cluster)
        listener.begin()
        for outage in 1...2 {
            try await eventually { listener.isLive }
            cluster.kill(0)
            try await eventually { listener.hints == outage }
            await #expect(throws: RemoteError.self) { try await reader.pull() }
            try cluster.start(0)
            try await reader.pull()
        }
        try await eventually { listener.isLive }
        #expect(listener.hints == 2)
        await listener.end()
    }

    @Test func `a password that was changed is tried once by who listens, whose refusal the next look says`()
        async throws
    {
        let cluster = try EtcdCluster(.init(requiresUser: true))
        let proxy = try FaultProxy(before: cluster.ports[0])
        defer { proxy.end() }
        let stale = ServerAnswer(401, [:], #"{"error":"invalid auth token","message":"invalid auth token","code":16}"#)
        proxy.onRequest { $0.path == "/v3/watch" ? .answer(stale) : nil }
        let url = "etcd://127.0.0.1:\(proxy.port)/\(EtcdCluster.prefix)"
        let device = try await BackendConformance.devices(1, cluster.remote)[0]
        let listener = try Listener(cluster, EtcdBackend.make(url: url, credentials: cluster.credentials))
        device.backend = listener.backend
        try await device.sync()
        func refusals() -> Int {
            proxy.exchanges.count { $0.request.path == "/v3/auth/authenticate" && $0.status != 200 }
        }
        try cluster.change(password: "another")
        listener.begin()
        // By now, four attempts to watch have failed.
        try await eventually { listener.hints == 1 }
        for attempts in [1, 2, 3] {
            await #expect { try await device.pull() } throws: { ($0 as? RemoteError)?.code == .unauthorized }
            #expect(refusals() == attempts)
            listener.backend.watch.follow(listener.backend.client.member, after: 0)
        }
        try cluster.change(password: EtcdCluster.password)
        try await device.pull()
        #expect(refusals() == 3)
        await listener.end()
    }

    @Test func `listening that began before any look misses nothing that came after it`() async throws {
        let cluster = try EtcdCluster()
        let (writer, _, looked) = try await devices(cluster)
        let look = try await looked.backend.client.range(EtcdRange(looked.backend.layout.account)).revision
        try await change(writer, to: 1)
        let listener = try Listener(cluster)
        listener.begin()
        try await eventually { listener.isLive }
        // The answer to an earlier poll has taken long.
        listener.backend.watch.follow(listener.backend.client.member, after: look)
        try await eventually { listener.hints == 1 && listener.isLive }
        await listener.end()
    }

    /// A thousand changes of 1.5 KB each would come in one piece. A few large ones stand for them.
    @Test func `changes that are too much to be told of are a reason to look, once`() async throws {
        let (writer, _, listener) = try await devices(try EtcdCluster())
        let (client, account) = (listener.backend.client, listener.backend.layout.account)
        let row = try #require(try await client.range(EtcdRange(account)).rows.rows.first?.value)
        for _ in 0..<4 {
            let other = EtcdOperation.put(account, [UInt8](repeating: 1, count: 400_000))
            _ = try await client.commit(EtcdTransaction(operations: [other]))
        }
        _ = try await client.commit(EtcdTransaction(operations: [.put(account, row)]))
        listener.begin()
        try await eventually { listener.hints == 1 }
        try await eventually { listener.isLive }
        try await change(writer, to: 1)
        try await eventually { listener.hints == 2 }
        await listener.end()
    }

    @Test func `a member that is cut off from the others is not listened to`() async throws {
        let cluster = try EtcdCluster(.init(members: 3))
        let (writer, _, listener) = try await devices(cluster)
        listener.begin()
        try await eventually { listener.isLive }
        let member = try #require(listener.backend.client.url.members.firstIndex(of: listener.backend.client.member))
        let others = (0..<3).filter { $0 != member }
        for other in others { cluster.freeze(other) }
        try await eventually { !listener.isLive }
        for other in others { cluster.freeze(other, false) }
        try await eventually { listener.isLive }
        let before = listener.hints
        try await change(writer, to: 1)
        try await eventually { listener.hints > before }
        await listener.end()
    }

    @Test func `a member that says nothing is left with the next look, and what is changed meanwhile is heard of`()
        async throws
    {
        let cluster = try EtcdCluster(.init(members: 3))
        let (writer, reader, listener) = try await devices(cluster)
        listener.begin()
        try await eventually { listener.isLive }
        let silent = listener.backend.client.member
        cluster.freeze(try #require(listener.backend.client.url.members.firstIndex(of: silent)))
        try await change(writer, to: 1)
        try await reader.pull()
        #expect(reader.stores == writer.stores && listener.backend.client.member != silent)
        try await change(writer, to: 2)
        try await eventually { listener.hints == 1 && listener.isLive }
        await listener.end()
    }
}
