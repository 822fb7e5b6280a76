// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import PropertyList
import Sealing
import ServerTesting
import StoreEngine
import SyncEngine
import Testing

@testable import BackendSupport
@testable import Etcd

/// What sync over a cluster costs, in requests and bytes on the wire, and in its database.
@Suite(.timeLimit(.minutes(30)), .enabled(if: EtcdCluster.isInstalled))
struct EtcdCostTests {
    @Test func `a look costs a request, and a change costs what has changed`() async throws {
        let cluster = try EtcdCluster()
        let proxy = try FaultProxy(before: cluster.ports[0])
        defer { proxy.end() }
        let remote = EmptyRemote {
            try EtcdBackend.make(url: "etcd://127.0.0.1:\(proxy.port)/settings/ada", credentials: .init())
        }
        let devices = try await BackendConformance.devices(2, remote)
        proxy.exchanges = []
        devices[0].fillSmallStores()
        devices[0].set("org.example.large", "a", .data([UInt8](repeating: 1, count: 500_000)))
        try await devices[0].sync()
        print("a first upload of 20 small stores and a large one: \(proxy.exchanges.summary)")
        try await BackendConformance.settle(devices)
        // As many transactions as the account's row names.
        for round in 0..<130 as Range<Int64> {
            devices[0].set("org.example.app-3", "setting.3", .integer(round))
            try await devices[0].sync()
        }
        try await BackendConformance.settle(devices)

        proxy.exchanges = []
        for _ in 0..<5 { try await devices[1].pull() }
        print("five looks: \(proxy.exchanges.summary)")
        #expect(proxy.exchanges.count == 5)

        for store in ["org.example.app-3", "org.example.large"] {
            devices[0].set(store, "setting.3", .string("another value"))
            proxy.exchanges = []
            try await devices[0].sync()
            print("a small change in \(store), the writer: \(proxy.exchanges.summary)")
            #expect(proxy.exchanges.count == 2)
            #expect(proxy.exchanges.bytesOut + proxy.exchanges.bytesIn <= 16 << 10)
            proxy.exchanges = []
            try await devices[1].pull()
            print("a small change in \(store), a reader: \(proxy.exchanges.summary)")
            #expect(proxy.exchanges.count == 2)
            #expect(proxy.exchanges.bytesOut + proxy.exchanges.bytesIn <= 16 << 10)
        }

        let late = BackendDevice("late", seed: 99, backend: try remote.makeBackend())
        proxy.exchanges = []
        try await late.signIn(creating: false)
        try await late.sync()
        print("a first download of 20 small stores and a large one: \(proxy.exchanges.summary)")
        #expect(proxy.exchanges.count <= 25)
    }

    @Test func `in an encrypted account a look is a request, and a small change is its head`() async throws {
        let cluster = try EtcdCluster()
        let proxy = try FaultProxy(before: cluster.ports[0])
        defer { proxy.end() }
        let url = "etcd://127.0.0.1:\(proxy.port)/settings/ada"
        // A head of 4 KiB in base64, and the request around it.
        try await expectBlobCosts(through: proxy, most: 8 << 10, methods: (["POST", "POST"], ["POST", "POST"])) {
            EtcdBackend.make(try EtcdClient(try EtcdURL(url), ServerCredentials()), $0, protection: .testKey)
        }
    }
}
