// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import PropertyList
import Replication
import Sealing
import ServerTesting
import Synchronization
import Testing

@testable import BackendSupport
@testable import Etcd

/// Encrypted accounts in real clusters, and faults of these clusters.
@Suite(.serialized, .timeLimit(.minutes(30)), .enabled(if: EtcdCluster.isInstalled))
struct EtcdSealedServerTests {
    private static let store = "org.example.Notes"

    private final class Heard: Sendable { let count = Atomic(0) }

    private func eventually(_ condition: () -> Bool, _ location: SourceLocation = #_sourceLocation) async throws {
        for _ in 0..<6000 where !condition() { try await Task.sleep(for: .milliseconds(5)) }
        let isSo = condition()
        #expect(isSo, sourceLocation: location)
    }

    @Test func `others' changes are told of as soon as they are made, and one's own are not`() async throws {
        let cluster = try EtcdCluster()
        let devices = try await BackendConformance.devices(2, cluster.remote(.testKey))
        let (writer, reader) = (devices[0], devices[1])
        try await BackendConformance.settle(devices)
        let (backend, heard) = (reader.backend, Heard())
        let listening = Task { for await _ in backend.hints() { heard.count.add(1, ordering: .relaxed) } }
        for round in 1...3 {
            try await eventually { backend.traits.givesHints }
            reader.set(Self.store, "own", .integer(Int64(round)))
            try await reader.sync()
            writer.set(Self.store, "other", .integer(Int64(round)))
            try await writer.sync()
            try await eventually { heard.count.load(ordering: .relaxed) >= round }
            #expect(heard.count.load(ordering: .relaxed) == round)
            try await reader.sync()
        }
        await backend.close()
        await listening.value
    }

    @Test func `a check says since when an account is encrypted`() async throws {
        let cluster = try EtcdCluster()
        try await BackendConformance.settle(try await BackendConformance.devices(1, cluster.remote(.testKey)))
        let last = await EtcdBackend.check(url: cluster.url(), credentials: cluster.credentials).last
        #expect(last?.step == "account" && last?.isPassed == true)
        #expect(last?.detail.contains("is here, since 2023-11-14 22:13 UTC.") == true, "\(String(describing: last))")
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `whatever the way does to requests, nothing is lost and nothing comes back`(_ seed: UInt64) async throws {
        let cluster = try EtcdCluster()
        let proxy = try FaultProxy(before: cluster.ports[0])
        let url = "etcd://127.0.0.1:\(proxy.port)/settings/ada"
        let remote = EmptyRemote {
            EtcdBackend.make(try EtcdClient(try EtcdURL(url), ServerCredentials()), .system, protection: .testKey)
        }
        let judged = try await JudgedDevices(3, remote)
        let reject = ServerAnswer(503, [:], "{\"error\":\"etcdserver: leader changed\",\"code\":14}")
        let faults: [FaultProxy.Fault] = [
            .cut, .answerLost, .answerCut(40), .twice, .late(20), .overtaken(100), .requestCut(10), .answer(reject),
        ]
        try await judged.work(through: proxy, faults, Dice(seed: seed))
        let broken = try await judged.judge()
        #expect(broken == [])
    }

    @Test func `devices that write while their cluster is restored from a snapshot lose nothing`() async throws {
        let cluster = try EtcdCluster()
        let judged = try await JudgedDevices(4, cluster.remote(.testKey))
        try await judged.work {
            try cluster.save(to: "backup")
            try cluster.restore(from: "backup")
        }
        let broken = try await judged.judge()
        #expect(broken == [])
    }
}
