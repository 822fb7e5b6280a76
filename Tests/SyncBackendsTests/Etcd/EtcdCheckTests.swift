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

/// What a check reports about a cluster, and how devices sign in to one.
@Suite(.serialized, .timeLimit(.minutes(30)), .enabled(if: EtcdCluster.isInstalled))
struct EtcdCheckTests {
    private let steps = ["address", "connect", "version", "clock", "sign in", "read", "space", "write", "delete"]

    @Test func `a check says step by step what was tried, and leaves nothing behind`() async throws {
        let cluster = try EtcdCluster(.init(members: 3))
        let checks = await EtcdBackend.check(url: cluster.url(), credentials: cluster.credentials)
        #expect(checks.map(\.step) == steps + ["account"] && checks.allSatisfy(\.isPassed), "\(checks)")
        #expect(checks[2].detail.hasPrefix("etcd 3.") && checks[5].detail.contains("Authentication is off"))
        #expect(checks[9].detail.contains("no account"))
        #expect(try cluster.control(["get", "--prefix", "--keys-only", EtcdCluster.prefix]).isEmpty)
        // One absent member is reported, and is no failure. Two absent ones are.
        cluster.kill(1)
        let two = await EtcdBackend.check(url: cluster.url(), credentials: cluster.credentials)
        #expect(two.last?.step == "account" && two.allSatisfy(\.isPassed), "\(two)")
        #expect(two[1].detail.contains("refuses connections"))
        cluster.kill(2)
        let one = await EtcdBackend.check(url: cluster.url(), credentials: cluster.credentials)
        #expect(one.last?.isPassed == false && ["version", "read"].contains(one.last?.step), "\(one)")
    }

    @Test func `a check of a member that answers a few bytes a second ends in time`() async throws {
        let server = try ScriptedServer { _ in .dripping(200, #"{"version":"3.5.0","leader":"1"}"#) }
        let checks = await EtcdBackend.check(
            url: "etcd://127.0.0.1:\(server.port)/settings", credentials: .init(), within: .seconds(1))
        #expect(checks.map(\.step) == ["address", "connect"])
        #expect(checks.last?.isPassed == false && checks.last?.detail == "127.0.0.1 did not answer in time.")
    }

    @Test func `a web server is no etcd, and nobody reads what it says`() async throws {
        for (status, words, page) in [
            (501, "is not an etcd server", "\n<!DOCTYPE html><title>secret</title>"),
            (503, "is unavailable: it doesn't answer as etcd does (status 503)", "secret"),
            (200, "is not an etcd server", #"{"message":"secret"}"#),
            (403, "answers 403: it doesn't answer as etcd does", #"{"code":403,"message":"secret"}"#),
        ] {
            let server = try ScriptedServer { _ in ServerAnswer(status, [:], page) }
            let checks = await EtcdBackend.check(
                url: "etcd://127.0.0.1:\(server.port)/settings", credentials: .init(), within: .seconds(5))
            let detail = checks.last?.detail ?? ""
            #expect(detail.contains(words) && !checks.contains { $0.detail.contains("secret") }, "\(checks)")
        }
    }

    @Test func `a check ends with the step that fails, in words that help`() async throws {
        let cluster = try EtcdCluster(.init(isSecure: true, requiresUser: true))
        func fails(_ url: String, _ credentials: ServerCredentials, at step: String, _ words: String) async {
            let checks = await EtcdBackend.check(url: url, credentials: credentials)
            #expect(checks.last?.step == step && checks.last?.isPassed == false, "\(checks)")
            #expect(checks.last?.detail.contains(words) == true, "\(checks)")
            #expect(checks.allSatisfy { !$0.detail.contains(EtcdCluster.password) })
        }
        let (right, url) = (cluster.credentials, cluster.url())
        var other = right
        other.authority = nil
        await fails(url, other, at: "connect", "not trusted")
        await fails(url.replacing("127.0.0.1", with: "127.0.0.2"), right, at: "connect", "refuses connections")
        await fails(url.replacing("etcds", with: "etcd"), right, at: "connect", "etcds://")
        (other, other.password) = (right, "wrong")
        await fails(url, other, at: "sign in", "doesn't accept this user and password")
        await fails(url, ServerCredentials(authority: right.authority), at: "read", "requires a user and a password")
        await fails(cluster.url("settings/eva"), right, at: "read", "may not read and write keys under settings/eva/")
        (other, other.user) = (right, "guest")
        await fails(url, other, at: "write", "may not read and write keys")
        await fails("etcds://", right, at: "address", "HOST")
    }

    @Test func `a check of members that say nothing ends there, and asks for nothing else`() async throws {
        let servers = try (0..<2).map { _ in try ScriptedServer { _ in .nothing } }
        let members = servers.map { "127.0.0.1:\($0.port)" }.joined(separator: ",")
        let checks = await EtcdBackend.check(url: "etcd://\(members)/a", credentials: ServerCredentials())
        #expect(checks.map(\.step) == ["address", "connect"] && checks.last?.isPassed == false, "\(checks)")
        #expect(checks.last?.detail.contains("did not answer in time") == true)
        #expect(servers.map { $0.requests.map(\.path) } == [["/v3/maintenance/status"], ["/v3/maintenance/status"]])
    }

    @Test func `a check whose answers are lost on the way finds that the cluster is sound`() async throws {
        let cluster = try EtcdCluster()
        let proxy = try FaultProxy(before: cluster.ports[0])
        defer { proxy.end() }
        let lost = Mutex(["request_put", "request_delete_range"])
        proxy.onRequest { request in
            let body = String(decoding: request.body, as: UTF8.self)
            return lost.withLock { lost in
                guard let first = lost.first, body.contains(first) else { return nil }
                lost.removeFirst()
                return .answerLost
            }
        }
        let checks = await EtcdBackend.check(url: "etcd://127.0.0.1:\(proxy.port)/a", credentials: ServerCredentials())
        #expect(checks.map(\.step) == steps + ["account"] && checks.allSatisfy(\.isPassed), "\(checks)")
        let isAllLost = lost.withLock(\.isEmpty)
        #expect(isAllLost)
    }

    @Test func `a cluster that begins to ask who one is gets to know it`() async throws {
        let cluster = try EtcdCluster()
        let credentials = ServerCredentials(user: EtcdCluster.user, password: EtcdCluster.password)
        let remote = EmptyRemote { try EtcdBackend.make(url: cluster.url(), credentials: credentials) }
        let devices = try await BackendConformance.devices(2, remote)
        devices[0].set("org.example.Notes", "a", .integer(1))
        try await BackendConformance.settle(devices)
        try cluster.requireUser()
        devices[0].set("org.example.Notes", "a", .integer(2))
        try await BackendConformance.settle(devices)
        #expect(devices[1].values("org.example.Notes") == ["a": .integer(2)])
        // A device without credentials is told so.
        let backend = try EtcdBackend.make(url: cluster.url(), credentials: ServerCredentials())
        await #expect { _ = try await backend.open(creatingAccount: false) } throws: {
            ($0 as? RemoteError)?.code == .unauthorized
        }
    }

    @Test func `a device signs in once, and not with each request`() async throws {
        let cluster = try EtcdCluster(.init(requiresUser: true))
        let proxy = try FaultProxy(before: cluster.ports[0])
        defer { proxy.end() }
        let remote = EmptyRemote {
            try EtcdBackend.make(
                url: "etcd://127.0.0.1:\(proxy.port)/\(EtcdCluster.prefix)", credentials: cluster.credentials)
        }
        func signings() -> Int { proxy.exchanges.count { $0.request.path == "/v3/auth/authenticate" } }
        let device = try await BackendConformance.devices(1, remote)[0]
        for round in 0..<5 as Range<Int64> {
            device.set("org.example.Notes", "a", .integer(round))
            try await device.sync()
        }
        #expect(signings() == 1 && proxy.exchanges.count > 10)
        // The cluster forgets its tokens: always in this case, and perhaps with a restart.
        try cluster.control(["auth", "disable"])
        try cluster.control(["auth", "enable"])
        for round in 5..<7 as Range<Int64> {
            device.set("org.example.Notes", "a", .integer(round))
            try await device.sync()
        }
        #expect(signings() == 2)
    }

    @Test(arguments: [200, 404, 403]) func `what stands before one member and is no etcd has the others be asked`(
        _ status: Int
    ) async throws {
        let cluster = try EtcdCluster()
        let server = try ScriptedServer { _ in ServerAnswer(status, [:], "<html>Under construction</html>") }
        let url = "etcd://127.0.0.1:\(server.port),127.0.0.1:\(cluster.ports[0])/\(EtcdCluster.prefix)"
        let remote = EmptyRemote { try EtcdBackend.make(url: url, credentials: ServerCredentials()) }
        let device = try await BackendConformance.devices(1, remote)[0]
        device.set("org.example.Notes", "a", .integer(1))
        try await device.sync()
        #expect(server.requests.count == 1)
    }

    @Test func `a token that a member does not know any more is renewed`() async throws {
        let cluster = try EtcdCluster(.init(requiresUser: true))
        let devices = try await BackendConformance.devices(2, cluster.remote)
        cluster.kill(0)
        try cluster.start(0)
        devices[0].set("org.example.Notes", "a", .integer(1))
        try await BackendConformance.settle(devices)
        #expect(devices[1].values("org.example.Notes") == ["a": .integer(1)])
        // A token of a form that etcd never gives.
        let backend = try EtcdBackend.make(url: cluster.url(), credentials: ServerCredentials(token: "nonsense.1"))
        await #expect { _ = try await backend.open(creatingAccount: false) } throws: {
            ($0 as? RemoteError)?.code == .unauthorized
        }
    }

    @Test func `a cluster that is full is said to be, is read all the same, and takes what waited once it has room`()
        async throws
    {
        let cluster = try EtcdCluster(.init(quota: 4 << 20))
        let remote = cluster.remote
        let devices = try await BackendConformance.devices(2, remote)
        devices[0].set("org.example.Notes", "a", .integer(1))
        try await devices[0].sync()
        await #expect {
            for round in 0..<10 {
                devices[0].set("org.example.Notes", "b", .data([UInt8](repeating: UInt8(round), count: 700_000)))
                try await devices[0].sync()
            }
        } throws: {
            ($0 as? RemoteError)?.code == .full
        }
        try await devices[1].pull()
        #expect(devices[1].values("org.example.Notes")["a"] == .integer(1))
        let checks = await EtcdBackend.check(url: cluster.url(), credentials: cluster.credentials)
        #expect(checks.last?.step == "space" && checks.last?.detail.contains("NOSPACE") == true, "\(checks)")
        try cluster.compact()
        try cluster.control(["defrag"])
        try cluster.control(["alarm", "disarm"])
        try await BackendConformance.settle(devices)
        #expect(devices[1].values("org.example.Notes").count == 2)
    }

    @Test func `a cluster that takes nothing since its members differ is said to, and goes on once that is over`()
        async throws
    {
        let cluster = try EtcdCluster()
        let devices = try await BackendConformance.devices(1, cluster.remote)
        let client = try EtcdClient(EtcdURL(cluster.url()), cluster.credentials)
        defer { client.close() }
        let status = try await client.call("/v3/maintenance/status", .dictionary([:]))
        let member = try #require(status["header"]?["member_id"])
        let alarm = Value.dictionary(["action": .string("ACTIVATE"), "memberID": member, "alarm": .string("CORRUPT")])
        // Only this answer has no header, so the client takes it for no answer of etcd's.
        await #expect(throws: RemoteError.self) { _ = try await client.call("/v3/maintenance/alarm", alarm) }
        devices[0].set("org.example.Notes", "a", .integer(1))
        await #expect { try await devices[0].sync() } throws: {
            ($0 as? RemoteError)?.code == .denied && "\($0)".contains("CORRUPT")
        }
        let checks = await EtcdBackend.check(url: cluster.url(), credentials: cluster.credentials)
        #expect(checks.last?.step == "space" && checks.last?.detail.contains("CORRUPT") == true, "\(checks)")
        try cluster.control(["alarm", "disarm"])
        try await devices[0].sync()
        #expect(try cluster.control(["get", "--prefix", EtcdCluster.prefix, "--keys-only"]).contains("/device/"))
    }

    @Test func `nobody answers, and a member that answers nothing sensible, are failures that pass`() async throws {
        let (server, port) = (try ScriptedServer { _ in ServerAnswer(200, [:], "<html>") }, 1)
        for url in ["etcd://127.0.0.1:\(port)/a", "etcd://127.0.0.1:\(server.port)/a"] {
            let backend = try EtcdBackend.make(url: url, credentials: ServerCredentials())
            await #expect("\(url)") { _ = try await backend.open(creatingAccount: true) } throws: {
                [.unavailable, .unsupported].contains(($0 as? RemoteError)?.code)
            }
        }
    }
}
