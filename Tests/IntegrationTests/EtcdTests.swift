// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import SDBus
import ServerTesting
import Synchronization
import Testing
import UbiquitousStoreTesting

/// Two services, and between them an etcd cluster with users.
@BusActor
@Suite(
    .serialized, .timeLimit(.minutes(30)),
    .enabled(if: EtcdCluster.isInstalled, "script/bootstrap --all installs etcd"))
struct EtcdTests {
    private static let credentials: KeyValuePairs<String, Value> = [
        "user": .string(Text(EtcdCluster.user)), "password": .string(Text(EtcdCluster.password)),
    ]

    /// Runs a test with two devices signed in to an account in a cluster.
    private func withCluster(_ body: @BusActor (TwoDevices, EtcdCluster) async throws -> Void) async throws {
        let cluster = try await elsewhere { try EtcdCluster(.init(members: 3, requiresUser: true)) }
        try await withTwoDevices { devices in
            for device in [devices.laptop, devices.phone] {
                device.keepSecret(EtcdCluster.password)
                try await devices.account(device).join(cluster.url(), Self.credentials)
            }
            try await body(devices, cluster)
        }
    }

    @Test func `what one device writes the other one is told of once, without anybody asking`() async throws {
        try await withCluster { devices, cluster in
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            try await phone.subscribe()
            for round in 1...5 as ClosedRange<Int64> {
                try await laptop.set("a", .integer(round))
                try await eventually("the phone is told") { phone.received.count == Int(round) }
            }
            #expect(try await phone.value("a") == .integer(5))
            // The leader is killed, and a write meanwhile arrives once there is another one.
            try await elsewhere { cluster.kill(try cluster.leader()) }
            try await laptop.set("a", .integer(6))
            try await eventually("the phone is told") { phone.received.count == 6 }
            #expect(phone.received.allSatisfy { $0.keys == ["a"] })
            try await devices.laptop.restart()
            try await devices.store(devices.laptop).set("restarted", .integer(1))
            #expect(try await devices.converge() == ["a": .integer(6), "restarted": .integer(1)])
        }
    }

    @Test func `without a cluster everything works but the sync, and it goes on by itself`() async throws {
        try await withCluster { devices, cluster in
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            try await laptop.apply(["first": .integer(1), "both": .integer(1)])
            _ = try await devices.converge()
            for member in 0..<3 { cluster.kill(member) }
            #expect(await errorName { try await laptop.client.account.syncNow() } == "BackendUnavailable")
            #expect(try await laptop.client.account.state() == "offline")
            try await laptop.apply(["laptop": .integer(1), "both": "laptop"])
            try await phone.apply(["phone": .integer(1)], removing: ["first"])
            try await elsewhere { for member in 0..<3 { try cluster.start(member) } }
            let expected: [Text: Value] = ["laptop": .integer(1), "phone": .integer(1), "both": "laptop"]
            #expect(try await devices.converge() == expected)
        }
    }

    @Test func `while all members are frozen amid work everything local answers, and then it goes on`() async throws {
        try await withCluster { devices, cluster in
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            // Between the laptop and the cluster, to see when the laptop makes requests.
            let proxies = try cluster.ports.map { try FaultProxy(before: $0) }
            defer { for proxy in proxies { proxy.end() } }
            let members = proxies.map { "127.0.0.1:\($0.port)" }.joined(separator: ",")
            try await laptop.client.account.join("etcd://\(members)/\(EtcdCluster.prefix)", Self.credentials)
            try await laptop.apply(["before": .integer(1), "both": .integer(1)])
            _ = try await devices.converge()
            try await laptop.set("amid", .integer(1))
            for member in 0..<3 { cluster.freeze(member) }
            let other = try devices.account(devices.laptop)
            let ended = Atomic(0)
            let sync = Task {
                _ = await failure { try await other.syncNow() }
                ended.add(1, ordering: .relaxed)
            }
            try await eventually("a sync cycle is under way") { proxies.contains { $0.isWaiting } }
            for number in 0..<50 as Range<Int64> { try await laptop.set("\(number)", .integer(number)) }
            try await laptop.apply(["both": "laptop"], removing: ["before"])
            _ = try await laptop.synchronize()
            #expect(try await laptop.value("both") == "laptop")
            #expect(try await laptop.everything().count == 52)
            try await phone.set("both", "phone")
            #expect(try await phone.value("both") == "phone")
            #expect(ended.load(ordering: .relaxed) == 0, "the cluster still hangs, and the cycle with it")
            for member in 0..<3 { cluster.freeze(member, false) }
            await sync.value
            let values = try await devices.converge()
            #expect(values.count == 52 && values["both"] == "phone" && values["before"] == nil)
        }
    }

    @Test func `a cluster that was restored from a backup loses nothing and brings nothing back`() async throws {
        try await withCluster { devices, cluster in
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            try await laptop.apply(["kept": .integer(1), "deleted": .integer(1), "changed": .integer(1)])
            _ = try await devices.converge()
            try await elsewhere { try cluster.save(to: "backup") }
            try await phone.apply(["changed": .integer(2), "later": .integer(1)], removing: ["deleted"])
            let expected: [Text: Value] = ["kept": .integer(1), "changed": .integer(2), "later": .integer(1)]
            #expect(try await devices.converge() == expected)
            // More revisions, so that the restored cluster takes a while to reach its former revision.
            for round in 0..<20 {
                try await phone.set("changed", .integer(Int64(round)))
                try await phone.client.account.syncNow()
            }
            try await phone.set("changed", .integer(2))
            #expect(try await devices.converge() == expected)
            try await elsewhere { try cluster.restore(from: "backup") }
            try await laptop.set("after", .integer(1))
            #expect(try await devices.converge() == expected.merging(["after": .integer(1)]) { $1 })
            try await phone.subscribe()
            try await laptop.set("told", .integer(1))
            try await eventually("the phone is told") { phone.received.contains { $0.keys == ["told"] } }
        }
    }

    @Test func `a check says what was tried, and a wrong password is refused`() async throws {
        try await withCluster { devices, cluster in
            let account = try devices.account(devices.laptop)
            let wrong: KeyValuePairs<String, Value> = ["user": "ada", "password": "an0ther"]
            #expect(
                await errorName { try await account.signIn(cluster.url(), wrong) } == "BackendAuthenticationFailed")
            #expect(
                await errorName { try await account.signIn(cluster.url("settings/eva"), Self.credentials) }
                    == "AccessDenied")
            #expect(await errorName { try await account.signIn("etcd://127.0.0.1", [:]) } == "BackendUnsupported")
            #expect(try await account.state() == "idle")
        }
    }

    @Test func `a member that takes connections and never answers delays nobody who asks for something local`()
        async throws
    {
        let server = try ScriptedServer { _ in .nothing }
        try await withTwoDevices { devices in
            let laptop = try devices.store(devices.laptop)
            let other = try devices.account(devices.laptop)
            let isOver = Atomic(false)
            let signIn = Task {
                defer { isOver.store(true, ordering: .relaxed) }
                return await errorName { try await other.signIn("etcd://127.0.0.1:\(server.port)/x") }
            }
            try await eventually("the server is asked") { !server.requests.isEmpty }
            for number in 0..<100 { try await laptop.set("\(number)", .integer(1)) }
            #expect(try await laptop.everything().count == 100)
            let waits = !isOver.load(ordering: .relaxed)
            #expect(waits, "the sign-in still hangs")
            server.end()
            #expect(await signIn.value == "BackendUnavailable")
        }
    }
}
