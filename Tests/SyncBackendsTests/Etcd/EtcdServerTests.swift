// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import PropertyList
import Replication
import Sealing
import ServerTesting
import StoreEngine
import SyncEngine
import Testing

@testable import BackendSupport
@testable import Etcd
@testable import Simulation

/// What every backend has to withstand, with real clusters.
@Suite(.serialized, .timeLimit(.minutes(30)), .enabled(if: EtcdCluster.isInstalled))
struct EtcdServerTests {
    @Test(
        arguments: EtcdCluster.Release.installed.flatMap { release in
            [
                EtcdCluster.Options(release: release), EtcdCluster.Options(members: 3, release: release),
                EtcdCluster.Options(isSecure: true, requiresUser: true, release: release),
            ]
        }, [false, true])
    func `a remote in a cluster conforms, encrypted or not`(
        _ options: EtcdCluster.Options, _ isEncrypted: Bool
    ) async throws {
        let protection = isEncrypted ? Protection.testKey : .none
        let cluster = try EtcdCluster(options)
        for (number, conformance) in BackendConformance.cases.enumerated() {
            let prefix = EtcdCluster.prefix + "/\(number)"
            let remote = EmptyRemote {
                EtcdBackend.make(
                    try EtcdClient(try EtcdURL(cluster.url(prefix)), cluster.credentials), .system,
                    protection: protection)
            } empty: {
                try cluster.control(["del", "--prefix", prefix + "/"])
            }
            do { try await conformance.run(on: remote) } catch {
                Issue.record("\(options): \(protection): \(conformance): \(error)")
            }
        }
    }

    @Test func `a store that is too much for one answer is read in pages`() async throws {
        let cluster = try EtcdCluster()
        let remote = cluster.remote
        let devices = try await BackendConformance.devices(2, remote)
        for number in 0..<8 as Range<UInt8> {
            devices[0].set("org.example.Notes", "\(number)", .data([UInt8](repeating: number, count: 900_000)))
        }
        try await BackendConformance.settle(devices)
        #expect(devices[1].values("org.example.Notes").count == 8)
    }

    @Test func `a new device goes on without a store that two others have made too large`() async throws {
        let cluster = try EtcdCluster()
        let devices = try await BackendConformance.devices(2, cluster.remote)
        for (number, device) in devices.enumerated() {
            for key in 0..<4500 { device.set("large", "\(number) \(key)", .integer(1)) }
            try await device.push()
        }
        let late = try EngineDevice("late", seed: 9, ledger: { Ledger() }, report: { _ in })
        try await late.signIn(to: try cluster.backend(), creating: false)
        _ = try late.write(1, to: 0, of: 0, removes: false)
        for _ in 0..<2 {
            let error = await #expect(throws: RemoteError.self) { try await late.sync() }
            #expect(error?.message.hasPrefix("The store large has grown too large to be joined any further.") == true)
        }
        #expect(!late.hasPendingChanges)
        // Each pull offers the store, and it arrives when it has shrunk.
        for key in 0..<4500 { devices[0].set("large", "0 \(key)", nil) }
        devices[0].forgetTombstones("large")
        try await devices[0].push()
        try await late.sync()
    }
}

extension EtcdCluster {
    /// The credentials that the cluster requires.
    var credentials: ServerCredentials {
        options.requiresUser
            ? ServerCredentials(user: Self.user, password: Self.password, authority: authority)
            : ServerCredentials(authority: authority)
    }
}
