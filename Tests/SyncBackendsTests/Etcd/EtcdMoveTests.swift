// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import PropertyList
import Replication
import ServerTesting
import StoreEngine
import SyncEngine
import Testing

@testable import Etcd

/// An account whose rows were copied to another cluster.
@Suite(.serialized, .timeLimit(.minutes(30)), .enabled(if: EtcdCluster.isInstalled))
struct EtcdMoveTests {
    private static let store = "org.example.Notes"

    /// Whether the other cluster has had more transactions than the first one.
    @Test(arguments: [false, true]) func `devices that have moved with their account see each other's changes`(
        isBusy: Bool
    ) async throws {
        let (first, second) = (try EtcdCluster(), try EtcdCluster())
        let remote = first.remote
        let devices = try await BackendConformance.devices(2, remote)
        devices[0].set(Self.store, "before", .integer(1))
        devices[0].set(Self.store, "removed", .integer(1))
        for device in devices { device.set(Self.store, device.name, .integer(1)) }
        try await BackendConformance.settle(devices)
        for round in 0..<50 { try first.control(["put", "other", "\(round)"]) }
        devices[0].set(Self.store, "removed", nil)
        try await BackendConformance.settle(devices)
        try await copy(from: first, to: second)
        for device in devices {
            device.backend = try second.backend()
            try await device.signIn(creating: false)
        }
        devices[0].set(Self.store, "after", .integer(1))
        try await devices[0].sync()
        if isBusy { for round in 0..<100 { try second.control(["put", "other", "\(round)"]) } }
        try await devices[1].sync()
        #expect(devices[1].values(Self.store).keys.sorted() == ["0", "1", "after", "before"])
        // The device reads everything only once. From then on it reads what is new.
        try await devices[1].sync()
        let backend = devices[1].backend
        let whole = try await backend.pull(after: nil, as: devices[1].origin)
        for store in whole.stores { _ = try await whole.change(of: store) }
        let cursor = await whole.finish(joined: Set(whole.stores)).cursor
        #expect(try await backend.pull(after: cursor, as: devices[1].origin).stores.isEmpty)
        devices[0].set(Self.store, "again", .integer(2))
        try await devices[0].sync()
        #expect(try await backend.pull(after: cursor, as: devices[1].origin).change(of: Self.store).isDelta)
    }

    private func copy(from first: EtcdCluster, to second: EtcdCluster) async throws {
        let source = try first.backend().client
        let target = try second.backend().client
        let rows = try await source.range(EtcdRange(under: Array((EtcdCluster.prefix + "/").utf8))).rows.rows
        for row in rows { _ = try await target.commit(EtcdTransaction(operations: [.put(row.key, row.value)])) }
    }
}
