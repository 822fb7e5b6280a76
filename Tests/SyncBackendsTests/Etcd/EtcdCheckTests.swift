// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import Foundation
import PropertyList
import ServerTesting
import StoreEngine
import SyncEngine
import Testing

@testable import SyncBackends

/// What people are told of a cluster, and who is let in.
@Suite(.serialized, .timeLimit(.minutes(10)), .enabled(if: EtcdCluster.isInstalled))
struct EtcdCheckTests {
    private let steps = ["address", "connect", "version", "clock", "sign in", "read", "space", "write", "delete"]

    @Test func `a check says step by step what was tried, and leaves nothing behind`() async throws {
        let cluster = try EtcdCluster(.init(members: 3))
        let checks = await EtcdBackend.check(url: cluster.url(), credentials: cluster.credentials)
        #expect(checks.map(\.step) == steps + ["account"] && checks.allSatisfy(\.isPassed), "\(checks)")
        #expect(checks[2].detail.hasPrefix("etcd 3.") && checks[5].detail.contains("nobody"))
        #expect(checks[9].detail.contains("no account"))
        #expect(try cluster.control(["get", "--prefix", "--keys-only", EtcdCluster.prefix]).isEmpty)
        // One that is away is told of, and is no failure; two are.
        cluster.kill(1)
        let two = await EtcdBackend.check(url: cluster.url(), credentials: cluster.credentials)
        #expect(two.last?.step == "account" && two.allSatisfy(\.isPassed), "\(two)")
        #expect(two[1].detail.contains("takes no connections"))
        cluster.kill(2)
        let one = await EtcdBackend.check(url: cluster.url(), credentials: cluster.credentials)
        #expect(one.last?.isPassed == false && ["version", "read"].contains(one.last?.step), "\(one)")
    }

    @Test func `a check ends with the step that fails, in words that help`() async throws {
        let cluster = try EtcdCluster(.init(isSecure: true, asksWho: true))
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
        await fails(url.replacing("127.0.0.1", with: "127.0.0.2"), right, at: "connect", "takes no connections")
        await fails(url.replacing("etcds", with: "etcd"), right, at: "connect", "etcds://")
        (other, other.password) = (right, "wrong")
        await fails(url, other, at: "sign in", "neither this user nor this password")
        await fails(url, ServerCredentials(authority: right.authority), at: "read", "wants a user and a password")
        await fails(cluster.url("settings/eva"), right, at: "read", "may not read and write keys under settings/eva/")
        (other, other.user) = (right, "guest")
        await fails(url, other, at: "write", "may not read and write keys")
        await fails("etcds://", right, at: "address", "HOST")
    }

    @Test func `a token that a member does not know any more is renewed`() async throws {
        let cluster = try EtcdCluster(.init(asksWho: true))
        let devices = try await BackendConformance.devices(
            2, BackendPlace { try EtcdBackend.make(url: cluster.url(), credentials: cluster.credentials) })
        cluster.kill(0)
        try cluster.start(0)
        devices[0].set("org.example.Notes", "a", .integer(1))
        try await BackendConformance.settle(devices)
        #expect(devices[1].values("org.example.Notes") == ["a": .integer(1)])
        // One of another form, which etcd never gave.
        let backend = try EtcdBackend.make(url: cluster.url(), credentials: ServerCredentials(token: "nonsense.1"))
        await #expect { _ = try await backend.open(creatingAccount: false) } throws: {
            ($0 as? RemoteError)?.code == .unauthorized
        }
    }

    @Test func `a cluster that is full is said to be, is read all the same, and takes what waited once it has room`()
        async throws
    {
        let cluster = try EtcdCluster(.init(quota: 2 << 20))
        let place = BackendPlace { try EtcdBackend.make(url: cluster.url(), credentials: cluster.credentials) }
        let devices = try await BackendConformance.devices(2, place)
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
