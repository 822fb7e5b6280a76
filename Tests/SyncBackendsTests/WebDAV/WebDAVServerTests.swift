// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import Foundation
import PropertyList
import Replication
import Sealing
import ServerTesting
import StoreEngine
import SyncEngine
import Testing

@testable import BackendSupport
@testable import Blobs
@testable import HTTPClient
@testable import WebDAV

/// What every backend has to withstand, with each real server that is installed.
@Suite(.serialized, .timeLimit(.minutes(30)))
struct WebDAVServerTests {
    @Test func `which servers these tests ran against`() {
        print("WebDAV servers: \(WebDAVServer.Kind.installed.map(\.rawValue).joined(separator: ", "))")
        let missing = WebDAVServer.Kind.missing.map(\.rawValue)
        if !missing.isEmpty {
            print("WebDAV servers that are not installed (script/bootstrap --all): \(missing.joined(separator: ", "))")
        }
    }

    @Test(arguments: WebDAVServer.Kind.installed)
    func `a folder on a server conforms`(_ kind: WebDAVServer.Kind) async throws { try await test(kind, .none) }

    @Test(arguments: WebDAVServer.Kind.installed)
    func `a folder on a server conforms where the account is encrypted`(_ kind: WebDAVServer.Kind) async throws {
        try await test(kind, .testKey)
    }

    private func test(_ kind: WebDAVServer.Kind, _ protection: Protection) async throws {
        let server = try WebDAVServer(kind)
        for (number, conformance) in BackendConformance.cases.enumerated() {
            let folder = "place-\(number)"
            // The first case is to find a folder without an account.
            if number == 0 { try server.makeFolder(folder) }
            let storage: @Sendable () throws -> WebDAVStorage = {
                WebDAVStorage(
                    try WebDAVURL(server.url + "/" + folder), HTTPOptions(), settling: .milliseconds(100))
            }
            let remote = EmptyRemote {
                BlobBackend(storage: try storage(), environment: .system, protection: protection)
            } empty: {
                // As a user who deletes the folders: rclone does not notice what others have deleted.
                let folder = try storage().folder
                for name in ["a/", "h/", "s/"] {
                    _ = try await folder.client.send(HTTPRequest("DELETE", folder.address(name)))
                }
            }
            do { try await conformance.run(on: remote) } catch { Issue.record("\(kind): \(conformance): \(error)") }
        }
    }
}

/// Faults on the way to a server.
extension WebDAVServerTests {
    @Test(.enabled(if: WebDAVCostTests.kind != nil, "no WebDAV server is installed"), arguments: [1, 2, 3] as [UInt64])
    func `whatever the way does to requests, the simulation's rules hold`(_ seed: UInt64) async throws {
        try await test(seed, .none)
    }

    @Test(.enabled(if: WebDAVCostTests.kind != nil, "no WebDAV server is installed"), arguments: [4, 5] as [UInt64])
    func `whatever the way does to requests, they hold where the account is encrypted`(_ seed: UInt64) async throws {
        try await test(seed, .testKey)
    }

    private func test(_ seed: UInt64, _ protection: Protection) async throws {
        let kind = try #require(WebDAVCostTests.kind)
        let server = try WebDAVServer(kind)
        let proxy = try FaultProxy(before: server.port)
        defer { proxy.end() }
        let (time, dice) = (Clock(), Dice(seed: seed))
        let environment = Environment(time: { time.next() }, random: { dice.roll() })
        let remote = EmptyRemote {
            let url = try WebDAVURL("webdav://127.0.0.1:\(proxy.port)/dav/sync")
            return BlobBackend(
                storage: WebDAVStorage(url, HTTPOptions()), environment: environment, protection: protection)
        }
        let judged = try await JudgedDevices(3, remote)
        let page = ServerAnswer(200, ["Content-Type": "text/html"], "<!DOCTYPE html><form>Log in</form>")
        let faults: [FaultProxy.Fault] = [
            .cut, .answerLost, .answerCut(60), .answerCut(300), .twice, .late(20), .overtaken(100), .requestCut(10),
            .answer(ServerAnswer(500)), .answer(ServerAnswer(429)), .answer(ServerAnswer(423)),
            .answer(ServerAnswer(401)), .answer(page),
        ]
        try await judged.work(through: proxy, faults, Dice(seed: seed + 100))
        let broken = try await judged.judge()
        #expect(broken == [])
    }

    @Test(.enabled(if: WebDAVCostTests.kind != nil, "no WebDAV server is installed"))
    func `devices that write while their server is restored from a backup lose nothing`() async throws {
        let server = try WebDAVServer(#require(WebDAVCostTests.kind))
        let judged = try await JudgedDevices(
            4, EmptyRemote { try WebDAVBackend.make(url: server.url, credentials: .init()) })
        let backup = try Place()
        try await judged.work {
            server.stop()
            _ = try run("cp", "-a", server.root, backup.path + "/dav")
            try server.start()
            usleep(500_000)
            server.stop()
            try server.restore(from: backup.path + "/dav")
            try server.start()
        }
        let broken = try await judged.judge()
        #expect(broken == [])
    }

    @Test(.enabled(if: WebDAVCostTests.kind != nil, "no WebDAV server is installed"))
    func `what a damaged segment on a server had is put there again by the device that has it`() async throws {
        let server = try WebDAVServer(#require(WebDAVCostTests.kind))
        let (clock, dice) = (Clock(), Dice(seed: 1))
        let environment = Environment(time: { clock.next() }, random: { dice.roll() })
        let remote = EmptyRemote {
            try WebDAVBackend.make(url: server.url, credentials: .init(), environment: environment)
        }
        let devices = try await BackendConformance.devices(2, remote)
        devices[0].set("org.example.Notes", "a", .data([UInt8](repeating: 1, count: 3000)))
        for _ in 0..<2 { try await devices[0].sync() }
        let folder = URL(filePath: server.root + "/s")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        let file = folder.appending(path: try #require(names.first { $0.utf8.count == 32 }))
        var damaged = try Data(contentsOf: file)
        damaged[damaged.count / 2] ^= 1
        try damaged.write(to: file)
        #expect(try await !devices[1].pull())
        // The segment's writer has had time to see that the other device publishes without it.
        _ = clock.next(after: 900_000_000)
        devices[1].time += 900_000_000
        devices[1].set("org.example.Notes", "b", .integer(1))
        try await devices[1].sync()
        try await devices[0].sync()
        #expect(try await devices[1].pull())
        #expect(devices[1].values("org.example.Notes").count == 2)
    }

    @Test(
        .enabled(if: WebDAVCostTests.kind != nil, "no WebDAV server is installed"),
        arguments: [" (conflicted copy)", "%41", "?x", "#x", "é", " 100%"])
    func `a copy of a head is read, whatever a sync tool has added to its name`(_ added: String) async throws {
        let server = try WebDAVServer(#require(WebDAVCostTests.kind))
        let devices = try await BackendConformance.devices(
            2, EmptyRemote { try WebDAVBackend.make(url: server.url, credentials: .init()) })
        devices[0].set("org.example.Notes", "a", .integer(1))
        try await devices[0].sync()
        let head = server.root + "/h/\(devices[0].origin)"
        try FileManager.default.moveItem(atPath: head, toPath: head + added)
        #expect(try await devices[1].pull())
        #expect(devices[1].values("org.example.Notes") == ["a": .integer(1)])
    }
}

/// Passwords and TLS, as real servers require them.
extension WebDAVServerTests {
    static let asking: [(WebDAVServer.Kind, WebDAVServer.Access)] = [
        (.apache, .basic), (.apache, .digest), (.nginx, .basic), (.lighttpd, .basic), (.lighttpd, .digest),
        (.rclone, .basic), (.wsgidav, .basic), (.wsgidav, .digest), (.sabre, .basic),
    ].filter { $0.0.program != nil }

    @Test(arguments: asking.indices) func `a password lets in, and another one does not`(_ index: Int) async throws {
        let (kind, access) = Self.asking[index]
        let server = try WebDAVServer(kind, access: access)
        try await exchange(on: server, WebDAVServer.right)
        for wrong in [ServerCredentials(user: WebDAVServer.user, password: "wrong"), .init()] {
            let backend = try WebDAVBackend.make(url: server.url, credentials: wrong)
            await #expect("\(kind) \(access)") { _ = try await backend.open(creatingAccount: true) } throws: {
                ($0 as? RemoteError)?.code == .unauthorized
            }
        }
        let checks = await WebDAVBackend.check(url: server.url, credentials: WebDAVServer.right)
        #expect(checks.allSatisfy { $0.isPassed } && checks.count == 12, "\(checks)")
        #expect(try FileManager.default.subpathsOfDirectory(atPath: server.root).allSatisfy { !$0.contains("check-") })
    }

    @Test(arguments: [WebDAVServer.Kind.apache, .nginx, .rclone, .wsgidav].filter { $0.program != nil })
    func `only a server of the authority that was given is trusted`(_ kind: WebDAVServer.Kind) async throws {
        let (server, other) = (
            try WebDAVServer(kind, access: .basic, isSecure: true), try WebDAVServer(kind, isSecure: true)
        )
        var credentials = WebDAVServer.right
        credentials.authority = server.authority
        try await exchange(on: server, credentials)
        for authority in [nil, other.authority, Array("no PEM".utf8)] {
            credentials.authority = authority
            let checks = await WebDAVBackend.check(url: server.url, credentials: credentials)
            #expect(checks.last?.step == "connect" && checks.last?.isPassed == false)
        }
    }

    private func exchange(on server: WebDAVServer, _ credentials: ServerCredentials) async throws {
        let remote = EmptyRemote { try WebDAVBackend.make(url: server.url, credentials: credentials) }
        let devices = try await BackendConformance.devices(2, remote)
        devices[0].set("org.example.Notes", "a", .integer(1))
        try await BackendConformance.settle(devices)
        #expect(devices[1].values("org.example.Notes") == ["a": .integer(1)])
    }
}

extension WebDAVServer {
    /// The credentials for a server that requires a password.
    static var right: ServerCredentials { .init(user: user, password: password) }
}
