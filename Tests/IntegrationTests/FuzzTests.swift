// SPDX-License-Identifier: Apache-2.0

import PressureTesting
import PropertyList
import SDBus
import Testing
import UbiquitousStoreTesting

/// Messages that no client should send; `script/pressure messages` sends a million.
@Suite(.enabled(if: Users.areSeveral, Users.needsRoot), .timeLimit(.minutes(30)))
struct FuzzTests {
    @Test(arguments: [1, 2])
    func `ten thousand messages that are nonsense get errors of their members, and another's value stays`(
        seed: UInt64
    ) async throws {
        let site = try await Site(policy: repositoryFile("dbus/org.example.UbiquitousStore.conf"))
        let other = try await BusClient(site.bus, as: Site.users[1]).store(Site.store)
        try await other.set("key", .string("kept"))
        let errors = try DocumentedErrors(file: repositoryFile("dbus/org.example.UbiquitousStore.xml"))
        let report = try await elsewhere { try MessageFuzzer(site, seed: seed, errors: errors).send(10_000) }
        #expect(report.strangers.isEmpty, "\(report.strangers)")
        #expect(report.unanswered.isEmpty)
        #expect(try await other.value("key") == .string("kept"))
        #expect(try await site.device.stop() == .code(0))
        #expect(site.device.log.isEmpty)
    }
}
