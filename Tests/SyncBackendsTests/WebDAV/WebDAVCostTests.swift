// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import PropertyList
import Replication
import Sealing
import ServerTesting
import StoreEngine
import SyncEngine
import Synchronization
import Testing

@testable import BackendSupport
@testable import Blobs
@testable import HTTPClient
@testable import WebDAV

/// What sync over a server costs, in requests and bytes on the wire.
@Suite(.timeLimit(.minutes(10)))
struct WebDAVCostTests {
    static let kind = [WebDAVServer.Kind.apache, .lighttpd, .nginx].first { $0.program != nil }

    @Test(
        .enabled(if: kind != nil, "no WebDAV server is installed; script/bootstrap --all installs them"),
        arguments: [Protection.none, .testKey])
    func `a look costs a request, a small change few, and a first download less than one for each store`(
        _ protection: Protection
    ) async throws {
        let server = try WebDAVServer(#require(Self.kind))
        let proxy = try FaultProxy(before: server.port)
        defer { proxy.end() }
        let url = "webdav://127.0.0.1:\(proxy.port)/dav/sync"
        let dice = Dice(seed: 1)
        let time = Atomic<UInt64>(1_700_000_000_000_000)
        let environment = Environment(time: { time.load(ordering: .relaxed) }, random: { dice.roll() })
        let place = BackendPlace {
            BlobBackend(
                storage: WebDAVStorage(try WebDAVURL(url), HTTPOptions()), environment: environment,
                protection: protection)
        }
        // What sealing may add to a head.
        let most = (4 << 10) + (protection.isWanted ? 400 : 0)
        let devices = try await BackendConformance.devices(2, place)
        devices[0].fillSmallStores()
        devices[1].set("org.example.app-1", "own", .boolean(true))
        try await BackendConformance.settle(devices)
        // Nobody has written for a while.
        time.add(601_000_000, ordering: .relaxed)
        try await BackendConformance.settle(devices)

        proxy.exchanges = []
        for _ in 0..<5 { try await devices[1].pull() }
        print("five looks: \(proxy.exchanges.summary)")
        #expect(proxy.exchanges.count == 5)

        devices[0].set("org.example.app-3", "setting.3", .string("another value"))
        proxy.exchanges = []
        try await devices[0].sync()
        print("a small change, the writer: \(proxy.exchanges.summary)")
        #expect(proxy.exchanges.map(\.request.method) == ["PROPFIND", "PUT"])
        #expect(proxy.exchanges.bytesOut <= most && proxy.exchanges.bytesIn <= most)
        proxy.exchanges = []
        try await devices[1].pull()
        print("a small change, a reader: \(proxy.exchanges.summary)")
        #expect(proxy.exchanges.map(\.request.method) == ["PROPFIND", "GET"])
        #expect(proxy.exchanges.bytesOut <= most && proxy.exchanges.bytesIn <= most)

        let late = BackendDevice("late", seed: 99, backend: try place.makeBackend())
        proxy.exchanges = []
        try await late.signIn(creating: false)
        try await late.sync()
        print("a first download of 20 small stores: \(proxy.exchanges.summary)")
        #expect(proxy.exchanges.count <= 25)
    }
}
