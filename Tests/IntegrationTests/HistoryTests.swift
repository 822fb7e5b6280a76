// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// A key's former values, and why they were replaced.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct HistoryTests {
    private func reasons(_ store: StoreClient, _ key: String) async throws -> [String] {
        try await store.history(key).map { former in
            guard case .string(let why) = former["why"], let value = former["value"] else { return "?" }
            return "\(why) \(value)"
        }
    }

    @Test func `each value that went says why, on the device where it was`() async throws {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            try await phone.set("early", .integer(1))
            try await laptop.set("early", .integer(2))
            try await devices.join()
            #expect(try await reasons(phone, "early") == ["initial-sync \(Value.integer(1))"])
            #expect(try await phone.value("early") == .integer(2))

            try await laptop.set("k", .integer(1))
            try await laptop.set("k", .integer(2))
            try await laptop.remove("k")
            #expect(
                try await reasons(laptop, "k") == ["removed \(Value.integer(2))", "replaced \(Value.integer(1))"])
            try await laptop.set("k", .integer(3))
            _ = try await devices.converge()
            try await phone.set("k", .integer(4))
            _ = try await devices.converge()
            #expect(try await reasons(laptop, "k").first == "merge \(Value.integer(3))")
            #expect(try await reasons(phone, "k") == ["replaced \(Value.integer(3))"])
            let former = try await phone.history("k")
            #expect(former.first?["origin-device"] == (try await laptop.client.account.property("DeviceIdentifier")))
            try await phone.remove("k")
            _ = try await devices.converge()
            #expect(try await reasons(laptop, "k").first == "merge \(Value.integer(4))")

            // Restoring an earlier value is an ordinary write.
            let value = try #require(try await laptop.history("k").first?["value"])
            try await laptop.set("k", value)
            #expect(try await devices.converge()["k"] == .integer(4))
        }
    }

    @Test func `a device is named for what it wrote before both machines started anew`() async throws {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            try await devices.join()
            try await laptop.set("k", .integer(1))
            _ = try await devices.converge()
            try await phone.set("k", .integer(2))
            _ = try await devices.converge()
            // A service that was killed takes another origin, and its next upload removes its head under the former one.
            devices.laptop.kill()
            try await devices.laptop.start()
            try await laptop.set("other", .integer(1))
            _ = try await devices.converge()
            try await devices.phone.restart()
            _ = try await devices.converge()
            let former = try await phone.history("k")
            #expect(former.first?["origin-device"] == (try await laptop.client.account.property("DeviceIdentifier")))
        }
    }

    @Test func `a value that went with its account is told, and is the other account's still`() async throws {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            let other = try devices.makeFolder("other")
            try await phone.client.account.join("folder://\(other)")
            try await phone.set("both", "B")
            try await phone.client.account.syncNow()
            try await laptop.client.account.join(devices.url)
            try await laptop.apply(["both": "A", "a": "A"])
            try await laptop.client.account.join("folder://\(other)")
            #expect(try await laptop.everything() == ["both": "B"])
            for key in ["both", "a"] {
                #expect(try await reasons(laptop, key) == ["account \(Value.string("A"))"])
            }
            try await devices.laptop.restart()
            #expect(try await reasons(laptop, "a") == ["account \(Value.string("A"))"])
            try await laptop.client.account.join(devices.url)
            #expect(try await laptop.everything() == ["both": "A", "a": "A"])
            #expect(try await reasons(laptop, "both") == ["account \(Value.string("B"))"])
            try await laptop.client.account.signOut(keepingValues: false)
            #expect(try await reasons(laptop, "a").isEmpty)
        }
    }
}
