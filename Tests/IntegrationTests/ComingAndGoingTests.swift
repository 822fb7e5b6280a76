// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// The service releases what it holds for users and connections once they are gone.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct ComingAndGoingTests {
    private func descriptors(_ machine: Machine) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/\(machine.device.pid)/fd").count
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `users who are gone leave no descriptors behind, and find their values again`() async throws {
        try await withMachine { machine in
            let before = try descriptors(machine)
            // Only users with a name, because the bus accepts no others.
            let users = (0..<100).filter { getpwuid($0) != nil } + [Users.nobody]
            try #require(users.count > 15)
            for user in users {
                let store = try machine.store(as: user)
                try await store.set("key", .integer(Int64(user)))
                store.client.connection.close()
            }
            // The same for users that only call Identify.
            for user in users {
                let client = try machine.client(as: user)
                try await client.manager("Identify")
                client.connection.close()
            }
            try await eventually("most databases are closed") { try descriptors(machine) <= before + 10 * 3 + 4 }
            for user in users { #expect(try await machine.store(as: user).value("key") == .integer(Int64(user))) }
        }
    }
}
