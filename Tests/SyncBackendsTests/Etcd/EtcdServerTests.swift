// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import PropertyList
import ServerTesting
import StoreEngine
import SyncEngine
import Testing

@testable import SyncBackends

/// What every backend has to stand, against real clusters.
@Suite(.serialized, .timeLimit(.minutes(10)), .enabled(if: EtcdCluster.isInstalled))
struct EtcdServerTests {
    @Test(arguments: [
        EtcdCluster.Options(), EtcdCluster.Options(members: 3),
        EtcdCluster.Options(isSecure: true, asksWho: true),
    ])
    func `a place in a cluster conforms`(_ options: EtcdCluster.Options) async throws {
        let cluster = try EtcdCluster(options)
        for (number, conformance) in BackendConformance.cases.enumerated() {
            let prefix = EtcdCluster.prefix + "/\(number)"
            let place = BackendPlace {
                try EtcdBackend.make(url: cluster.url(prefix), credentials: cluster.credentials)
            } empty: {
                try cluster.control(["del", "--prefix", prefix + "/"])
            }
            do { try await conformance.run(on: place) } catch { Issue.record("\(options): \(conformance): \(error)") }
        }
    }

    @Test func `a store that is too much for one answer is read in pages`() async throws {
        let cluster = try EtcdCluster()
        let place = cluster.place
        let devices = try await BackendConformance.devices(2, place)
        for number in 0..<8 as Range<UInt8> {
            devices[0].set("org.example.Notes", "\(number)", .data([UInt8](repeating: number, count: 900_000)))
        }
        try await BackendConformance.settle(devices)
        #expect(devices[1].values("org.example.Notes").count == 8)
    }
}

extension EtcdCluster {
    /// What the cluster wants to hear.
    var credentials: ServerCredentials {
        options.asksWho
            ? ServerCredentials(user: Self.user, password: Self.password, authority: authority)
            : ServerCredentials(authority: authority)
    }
}
