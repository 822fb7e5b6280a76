// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import Foundation
import HTTPClient
import PropertyList
import Replication
import ServerTesting
import StoreEngine
import SyncEngine
import Testing

@testable import BackendSupport
@testable import Blobs
@testable import WebDAV

/// A server that lists nothing.
@Suite(.serialized, .timeLimit(.minutes(30)), .enabled(if: WebDAVServer.Kind.nginxBare.program != nil))
struct WebDAVNamesTests {
    private static let store = "org.example.Notes"

    private func remote(
        _ port: UInt16, _ environment: Environment = .system, settling: Duration = .milliseconds(100)
    ) -> EmptyRemote {
        EmptyRemote {
            let url = try WebDAVURL("webdav://127.0.0.1:\(port)/dav/sync")
            return BlobBackend(
                storage: WebDAVStorage(url, HTTPOptions(), settling: settling), environment: environment)
        }
    }

    /// Makes any server one that lists nothing.
    private static let listingNothing: @Sendable (ServerRequest) -> FaultProxy.Fault? = { request in
        if request.method == "PROPFIND" { return .answer(ServerAnswer(405)) }
        return request.method == "GET" && request.path.hasSuffix("/") ? .answer(ServerAnswer(403)) : nil
    }

    private func names(_ server: WebDAVServer, _ folder: String) throws -> Set<String>? {
        let file = FileManager.default.contents(atPath: server.root + "/sync/\(folder)/names")
        return NamesFile.decode(Array(file ?? Data()))
    }

    private func write(_ names: Set<String>, _ server: WebDAVServer, _ folder: String) throws {
        let file = URL(filePath: server.root + "/sync/\(folder)/names")
        try Data(NamesFile.encode(names)).write(to: file)
    }

    @Test func `a check says that names are kept, and leaves nothing behind`() async throws {
        let server = try WebDAVServer(.nginxBare)
        let checks = await WebDAVBackend.check(url: server.url, credentials: .init())
        #expect(checks.allSatisfy { $0.isPassed } && checks.count == 12, "\(checks)")
        #expect(checks.first { $0.step == "folder" }?.detail.contains("names") == true)
        #expect(try FileManager.default.subpathsOfDirectory(atPath: server.root).isEmpty)
    }

    @Test func `a name that another device's file lacks is put back by whoever knows of it`() async throws {
        let server = try WebDAVServer(.nginxBare)
        let devices = try await BackendConformance.devices(2, remote(server.port))
        for device in devices { device.set(Self.store, device.name, .integer(1)) }
        try await BackendConformance.settle(devices)
        let all = try #require(try names(server, "h"))
        #expect(all == Set(devices.map { $0.origin.description }))
        // The second has read the file before the first wrote it. Then the first is lost for good.
        try write([devices[1].origin.description], server, "h")
        try await devices[1].pull()
        #expect(try names(server, "h") == all)
        let late = BackendDevice("late", seed: 99, backend: try remote(server.port).makeBackend())
        try await late.signIn(creating: false)
        try await late.sync()
        #expect(late.values(Self.store).count == 2)
    }

    @Test func `a device that is not named is so before its first upload has ended`() async throws {
        let server = try WebDAVServer(.nginxBare)
        let proxy = try FaultProxy(before: server.port)
        defer { proxy.end() }
        let remote = remote(proxy.port)
        let first = try await BackendConformance.devices(1, remote)[0]
        first.set(Self.store, "a", .integer(1))
        try await first.sync()
        let late = BackendDevice("late", seed: 99, backend: try remote.makeBackend())
        try await late.signIn(creating: false)
        late.set(Self.store, "b", .integer(1))
        // The device's file of names never stays, as if another device replaced it each time.
        proxy.onRequest { $0.method == "PUT" && $0.path.hasSuffix("h/names") ? .answer(ServerAnswer(204)) : nil }
        await #expect { try await late.sync() } throws: { ($0 as? RemoteError)?.code == .unavailable }
        #expect(late.hasPendingChanges)
        proxy.onRequest(nil)
        try await BackendConformance.settle([first, late])
        #expect(first.values(Self.store).count == 2 && !late.hasPendingChanges)
    }

    @Test func `a head that is gone is not named for ever, and one that comes back is`() async throws {
        let server = try WebDAVServer(.nginxBare)
        let devices = try await BackendConformance.devices(2, remote(server.port))
        for device in devices { device.set(Self.store, device.name, .integer(1)) }
        try await BackendConformance.settle(devices)
        let gone = devices[1].origin.description
        try FileManager.default.removeItem(atPath: server.root + "/sync/h/\(gone)")
        for _ in 0..<3 { try await devices[0].pull() }
        #expect(try names(server, "h") == [devices[0].origin.description])
        devices[1].set(Self.store, "again", .integer(1))
        try await BackendConformance.settle(devices)
        #expect(try names(server, "h")?.contains(gone) == true)
        #expect(devices[0].values(Self.store).count == 3)
    }

    @Test(.enabled(if: WebDAVServer.Kind.nginx.program != nil))
    func `a server that comes to list nothing has not lost the account`() async throws {
        let server = try WebDAVServer(.nginx)
        let proxy = try FaultProxy(before: server.port)
        defer { proxy.end() }
        let remote = remote(proxy.port)
        let device = try await BackendConformance.devices(1, remote)[0]
        device.set(Self.store, "a", .integer(1))
        try await device.sync()
        proxy.onRequest(Self.listingNothing)
        await #expect { try await device.pull() } throws: { ($0 as? RemoteError)?.code == .unavailable }
        // The same holds for a service that starts meanwhile.
        device.backend = try remote.makeBackend()
        for _ in 0..<2 {
            await #expect { try await device.pull() } throws: { error in
                let error = error as? RemoteError
                return error?.code == .unavailable && error?.reason == .listsNothing
            }
        }
        proxy.onRequest(nil)
        try await device.pull()
        #expect(device.values(Self.store) == ["a": .integer(1)])
    }

    @Test(arguments: [WebDAVServer.Kind.nginx, .nginxIndex].filter { $0.program != nil })
    func `once the server lists, devices that keep names see those that have come since`(
        _ kind: WebDAVServer.Kind
    ) async throws {
        let server = try WebDAVServer(kind)
        let proxy = try FaultProxy(before: server.port)
        defer { proxy.end() }
        let remote = self.remote(proxy.port)
        proxy.onRequest(Self.listingNothing)
        let devices = try await BackendConformance.devices(2, remote)
        for device in devices { device.set(Self.store, device.name, .integer(1)) }
        try await BackendConformance.settle(devices)
        proxy.onRequest(nil)
        let late = BackendDevice("late", seed: 99, backend: try remote.makeBackend())
        try await late.signIn(creating: false)
        late.set(Self.store, "late", .integer(1))
        try await late.sync()
        #expect(try names(server, "h")?.contains(late.origin.description) == false)
        for _ in 0..<20 {
            for device in devices { try await device.pull() }
        }
        for device in devices { #expect(device.values(Self.store).count == 3) }
    }

    @Test func `a look costs a request for the names and one for each head`() async throws {
        let server = try WebDAVServer(.nginxBare)
        let proxy = try FaultProxy(before: server.port)
        defer { proxy.end() }
        let devices = try await BackendConformance.devices(2, remote(proxy.port))
        for device in devices { device.set(Self.store, device.name, .integer(1)) }
        try await BackendConformance.settle(devices)
        proxy.exchanges = []
        for _ in 0..<5 { try await devices[1].pull() }
        print("five looks without a listing: \(proxy.exchanges.summary)")
        #expect(proxy.exchanges.count == 15)
        devices[0].set(Self.store, "a", .integer(1))
        proxy.exchanges = []
        try await devices[0].sync()
        print("a small change without a listing, the writer: \(proxy.exchanges.summary)")
        proxy.exchanges = []
        try await devices[1].pull()
        print("a small change without a listing, a reader: \(proxy.exchanges.summary)")
        #expect(proxy.exchanges.count == 4)
    }

    @Test(arguments: [1, 2] as [UInt64])
    func `whatever the way does to requests, the simulation's rules hold without a listing`(_ seed: UInt64) async throws
    {
        let server = try WebDAVServer(.nginxBare)
        let proxy = try FaultProxy(before: server.port)
        defer { proxy.end() }
        let (time, dice) = (Clock(), Dice(seed: seed))
        let environment = Environment(time: { time.next() }, random: { dice.roll() })
        let judged = try await JudgedDevices(3, remote(proxy.port, environment, settling: .milliseconds(300)))
        let page = ServerAnswer(200, ["Content-Type": "text/html"], "<!DOCTYPE html><form>Log in</form>")
        let faults: [FaultProxy.Fault] = [
            .cut, .answerLost, .answerCut(60), .answerCut(300), .twice, .late(20), .overtaken(100), .requestCut(10),
            .answer(ServerAnswer(500)), .answer(ServerAnswer(429)), .answer(page),
        ]
        try await judged.work(through: proxy, faults, Dice(seed: seed + 100))
        let broken = try await judged.judge()
        #expect(broken == [])
    }

    @Test func `a file of names that is cut, changed or something else is none`() {
        let names: Set = ["00000000000000aa", String(repeating: "b", count: 32)]
        let bytes = NamesFile.encode(names)
        #expect(NamesFile.decode(bytes) == names && NamesFile.decode(NamesFile.encode([])) == [])
        for count in 0..<bytes.count { #expect(NamesFile.decode(Array(bytes[..<count])) == nil) }
        var changed = bytes
        changed[10] ^= 1
        #expect(NamesFile.decode(changed) == nil && NamesFile.decode(bytes + bytes) == nil)
        // A server may send 4 MiB of one character, which would take hours to look at as such.
        #expect(
            NamesFile.decode(Array("UKVn 1\na".utf8) + Array(String(repeating: "\u{301}\u{327}", count: 1 << 20).utf8))
                == nil)
        // Nothing leads out of the folder.
        #expect(NamesFile.decode(NamesFile.encode([".", "..", "../h/00000000000000aa", "names"])) == [])
    }
}
