// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import Foundation
import PropertyList
import Replication
import ServerTesting
import StoreEngine
import SyncEngine
import Synchronization
import Testing

@testable import BackendSupport
@testable import Etcd

/// Faults of real clusters, and on the way to them. No acknowledged write is lost, and all devices converge.
@Suite(.serialized, .timeLimit(.minutes(30)), .enabled(if: EtcdCluster.isInstalled))
struct EtcdFaultTests {
    private static let store = "org.example.Notes"

    // MARK: Requests

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `whatever the way does to requests, nothing is lost and nothing comes back`(_ seed: UInt64) async throws {
        let cluster = try EtcdCluster()
        let proxy = try FaultProxy(before: cluster.ports[0])
        let remote = EmptyRemote {
            try EtcdBackend.make(
                url: "etcd://127.0.0.1:\(proxy.port)/settings/ada", credentials: ServerCredentials())
        }
        let judged = try await JudgedDevices(3, remote)
        let reject = ServerAnswer(503, [:], "{\"error\":\"etcdserver: leader changed\",\"code\":14}")
        let page = ServerAnswer(200, [:], "<html>Log in</html>")
        let faults: [FaultProxy.Fault] = [
            .cut, .answerLost, .answerCut(40), .twice, .late(20), .overtaken(100), .requestCut(10), .answer(reject),
            .answer(page),
        ]
        try await judged.work(through: proxy, faults, Dice(seed: seed))
        let broken = try await judged.judge()
        #expect(broken == [])
        // Then all is quiet.
        let before = try cluster.control(["get", "settings/ada/account", "-w", "fields"])
        for device in judged.devices { try await device.sync() }
        let after = try cluster.control(["get", "settings/ada/account", "-w", "fields"])
        #expect(Self.modified(before) == Self.modified(after))
    }

    private static func modified(_ row: String) -> Substring? {
        row.split(separator: "\n").first { $0.contains("ModRevision") }
    }

    /// The argument is the number of transactions that succeed.
    @Test(arguments: 1...4) func `a publication that is cut between its transactions deletes nothing`(
        _ made: Int
    ) async throws {
        let cluster = try EtcdCluster()
        let proxy = try FaultProxy(before: cluster.ports[0])
        let remote = EmptyRemote { try EtcdBackend.make(url: cluster.url(), credentials: ServerCredentials()) }
        let devices = try await BackendConformance.devices(2, remote)
        let keys = (0..<250).map { "\($0)" }
        for key in keys { devices[0].set(Self.store, key, .integer(1)) }
        devices[0].set(Self.store, "removed", .integer(1))
        try await BackendConformance.settle(devices)
        devices[0].backend = try EtcdBackend.make(
            url: "etcd://127.0.0.1:\(proxy.port)/settings/ada", credentials: ServerCredentials())
        try await devices[0].signIn(creating: false)
        for key in keys { devices[0].set(Self.store, key, .integer(2)) }
        devices[0].set(Self.store, "removed", nil)
        devices[0].forgetTombstones(Self.store)
        let count = Atomic(0)
        proxy.onRequest { request in
            guard String(decoding: request.body, as: UTF8.self).contains("request_put") else { return nil }
            return count.add(1, ordering: .relaxed).newValue > made ? .cut : nil
        }
        do throws(RemoteError) { try await devices[0].sync() } catch { #expect(error.code == .unavailable) }
        proxy.onRequest(nil)
        // The other device and a new one have every key, with the old value or the new one.
        try await devices[1].pull()
        let late = BackendDevice("late", seed: 99, backend: try remote.makeBackend())
        try await late.signIn(creating: false)
        try await late.sync()
        for device in [devices[1], late] {
            let values = device.values(Self.store)
            #expect(keys.allSatisfy { [.integer(1), .integer(2)].contains(values[$0]) })
        }
        try await BackendConformance.settle(devices + [late])
        #expect(late.values(Self.store) == Dictionary(uniqueKeysWithValues: keys.map { ($0, .integer(2)) }))
    }

    // MARK: Members

    /// What happens to a cluster while devices write.
    enum Trouble: CaseIterable {
        case leaderKilled, leaderFrozen, eachRestarted, majorityGone, restored
    }

    @Test(arguments: Trouble.allCases)
    func `eight devices that write while something befalls their cluster lose nothing`(_ trouble: Trouble)
        async throws
    {
        let cluster = try EtcdCluster(.init(members: 3))
        let remote = cluster.remote
        let judged = try await JudgedDevices(8, remote)
        try await judged.work { try cause(trouble, in: cluster) }
        let broken = try await judged.judge()
        #expect(broken == [])
    }

    private func cause(_ trouble: Trouble, in cluster: EtcdCluster) throws {
        switch trouble {
        case .leaderKilled: cluster.kill(try cluster.leader())
        case .leaderFrozen:
            let leader = try cluster.leader()
            cluster.freeze(leader)
            usleep(3_000_000)
            cluster.freeze(leader, false)
        case .restored:
            try cluster.save(to: "backup")
            usleep(300_000)
            try cluster.restore(from: "backup")
        case .eachRestarted:
            for member in 0..<3 {
                cluster.kill(member)
                usleep(200_000)
                try cluster.start(member)
            }
        case .majorityGone:
            cluster.kill(0)
            cluster.kill(1)
            usleep(1_000_000)
            try cluster.start(0)
            try cluster.start(1)
        }
    }

    // MARK: Watching

    @Test func `others' changes are told of, and none is missed while a member is away`() async throws {
        let cluster = try EtcdCluster(.init(members: 3))
        let remote = cluster.remote
        let (writer, reader) = (
            try await BackendConformance.devices(1, remote)[0],
            try cluster.backend()
        )
        let hints = reader.watch.hints()
        let count = Atomic(0)
        let listening = Task {
            for await _ in hints { count.add(1, ordering: .relaxed) }
        }
        func eventually(_ condition: () -> Bool) async throws {
            for _ in 0..<12_000 where !condition() { try await Task.sleep(for: .milliseconds(5)) }
            #expect(condition())
        }
        for round in 1...4 {
            try await eventually { reader.traits.givesHints }
            // An election is a reason to poll as well, and members that get no CPU time hold one.
            let before = count.load(ordering: .relaxed)
            if round == 4 {
                // The member that the reader watches goes away.
                cluster.kill(try #require(reader.client.url.members.firstIndex(of: reader.client.member)))
            }
            writer.set(Self.store, "a", .integer(Int64(round)))
            try await writer.sync()
            try await eventually { count.load(ordering: .relaxed) > before }
        }
        await reader.close()
        await listening.value
    }

    @Test func `a compaction that forgets what was not heard of is a reason to look`() async throws {
        let cluster = try EtcdCluster()
        let remote = cluster.remote
        let writer = try await BackendConformance.devices(1, remote)[0]
        let reader = try cluster.backend()
        let device = BackendDevice("reader", seed: 9, backend: reader)
        try await device.signIn(creating: false)
        try await device.sync()
        var hints = reader.watch.hints().makeAsyncIterator()
        async let first: Void? = hints.next()
        while !reader.traits.givesHints { try await Task.sleep(for: .milliseconds(5)) }
        writer.set(Self.store, "a", .integer(0))
        try await writer.sync()
        #expect(await first != nil)
        // The reader is not listening.
        for round in 1...3 {
            writer.set(Self.store, "a", .integer(Int64(round)))
            writer.set(Self.store, "\(round)", nil)
            try await writer.sync()
        }
        try cluster.compact()
        #expect(await hints.next() != nil)
        try await device.pull()
        #expect(device.stores == writer.stores)
        // The next change is reported like any other.
        async let next: Void? = hints.next()
        while !reader.traits.givesHints { try await Task.sleep(for: .milliseconds(5)) }
        writer.set(Self.store, "a", .integer(9))
        try await writer.sync()
        #expect(await next != nil)
        await reader.close()
    }

    // MARK: Backups

    /// Whether others write before the devices poll that know what was lost, and whether its writer is gone.
    @Test(arguments: [false, true], [false, true])
    func `what a cluster that was restored has lost is published again by whoever holds it`(
        isBusy: Bool, isWriterGone: Bool
    ) async throws {
        let cluster = try EtcdCluster()
        let remote = cluster.remote
        let devices = try await BackendConformance.devices(3, remote)
        devices[0].set(Self.store, "before", .integer(1))
        devices[0].set(Self.store, "removed", .integer(1))
        // A device that has never published would have nothing to restore.
        for device in devices { device.set(Self.store, device.name, .integer(1)) }
        try await BackendConformance.settle(devices)
        try cluster.save(to: "backup")
        devices[0].set(Self.store, "after", .integer(1))
        devices[0].set(Self.store, "removed", nil)
        try await devices[0].sync()
        try await devices[1].sync()
        try cluster.restore(from: "backup")
        if isBusy {
            for round in 0..<8 {
                devices[2].set("org.example.Other", "\(round)", .integer(1))
                try await devices[2].sync()
            }
        }
        let living = isWriterGone ? Array(devices[1...]) : devices
        // A new process, which knows only its cursor.
        living[0].backend = try remote.makeBackend()
        _ = try await living[0].backend.open(creatingAccount: false)
        try await BackendConformance.settle(living)
        let late = BackendDevice("late", seed: 99, backend: try remote.makeBackend())
        try await late.signIn(creating: false)
        try await late.sync()
        #expect(late.values(Self.store).keys.sorted() == ["0", "1", "2", "after", "before"])
        #expect(late.stores == living[0].stores)
    }

    /// Whether the process that has published ends before its next poll.
    @Test(arguments: [false, true])
    func `what was published while another device was faster, and went with the restored cluster, comes again`(
        isStartedAnew: Bool
    ) async throws {
        let cluster = try EtcdCluster()
        let proxy = try FaultProxy(before: cluster.ports[0])
        let devices = try await BackendConformance.devices(2, cluster.remote)
        try await BackendConformance.settle(devices)
        devices[0].backend = try EtcdBackend.make(
            url: "etcd://127.0.0.1:\(proxy.port)/settings/ada", credentials: ServerCredentials())
        try await devices[0].signIn(creating: false)
        try await devices[0].sync()
        // The other device publishes between this one's pull and its transaction. Then the backup is made.
        let hasCome = Atomic(false)
        let mayGo = Atomic(false)
        proxy.onRequest { request in
            guard String(decoding: request.body, as: UTF8.self).contains("request_put") else { return nil }
            if hasCome.exchange(true, ordering: .acquiringAndReleasing) { return nil }
            while !mayGo.load(ordering: .acquiring) { usleep(1000) }
            return nil
        }
        devices[0].set(Self.store, "late", .integer(1))
        devices[1].set(Self.store, "first", .integer(1))
        nonisolated(unsafe) let slow = devices[0]
        async let isPublished = slow.sync()
        while !hasCome.load(ordering: .acquiring) { try await Task.sleep(for: .milliseconds(5)) }
        try await devices[1].sync()
        try cluster.save(to: "backup")
        mayGo.store(true, ordering: .releasing)
        _ = try await isPublished
        try cluster.restore(from: "backup")
        if isStartedAnew {
            devices[0].backend = try cluster.remote.makeBackend()
            _ = try await devices[0].backend.open(creatingAccount: false)
        }
        try await BackendConformance.settle(devices)
        let new = BackendDevice("new", seed: 99, backend: try cluster.remote.makeBackend())
        try await new.signIn(creating: false)
        try await new.sync()
        #expect(new.values(Self.store).keys.sorted() == ["first", "late"])
    }

    @Test
    func `a restored cluster that has lost only what others wrote gives revisions twice, and nothing is skipped`()
        async throws
    {
        let cluster = try EtcdCluster()
        let remote = cluster.remote
        let devices = try await BackendConformance.devices(2, remote)
        devices[0].set(Self.store, "a", .integer(1))
        try await BackendConformance.settle(devices)
        try cluster.save(to: "backup")
        for round in 0..<20 { try cluster.control(["put", "other", "\(round)"]) }
        for device in devices { try await device.pull() }
        try cluster.restore(from: "backup")
        devices[0].set(Self.store, "b", .integer(2))
        try await devices[0].sync()
        try await devices[1].pull()
        #expect(devices[1].values(Self.store) == ["a": .integer(1), "b": .integer(2)])
    }

    @Test func `a cluster that was restored to before there was an account is reported, and not obeyed`() async throws {
        let cluster = try EtcdCluster()
        try cluster.control(["put", "other", "1"])
        try cluster.save(to: "backup")
        let remote = cluster.remote
        let devices = try await BackendConformance.devices(2, remote)
        devices[0].set(Self.store, "a", .integer(1))
        try await BackendConformance.settle(devices)
        try cluster.restore(from: "backup")
        await #expect { try await devices[1].pull() } throws: { ($0 as? RemoteError)?.code == .reset }
        // A user has declared the devices' state right.
        _ = try await devices[1].backend.restore(devices[1].account)
        try await BackendConformance.settle(devices)
        #expect(devices[1].values(Self.store) == ["a": .integer(1)])
    }
}
