// SPDX-License-Identifier: Apache-2.0

import Foundation
import PressureTesting
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// Clients that don't read: everything that the service sends them is bounded, whichever code sends it.
///
/// dbus-daemon stops reading from the service, for all clients, once 127 MiB are unread.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct UnreadTests {
    private let introspectable = "org.freedesktop.DBus.Introspectable"
    private let properties = "org.freedesktop.DBus.Properties"

    /// Expects that the service still runs and serves others.
    private func expectService(_ machine: Machine) async throws {
        let other = try machine.store(as: nil)
        for number in 0..<50 { try await other.set("key", .integer(Int64(number))) }
        #expect(try await other.value("key") == .integer(49))
        #expect(machine.device.exit == nil)
    }

    @Test func `two connections that ask for introspection and read nothing don't hold the others up`() async throws {
        try await withMachine { machine in
            let path = try machine.store().path
            nonisolated(unsafe) let deaf = try (0..<2).map { _ in try RawClient(machine.bus, as: Users.client) }
            // About 200 MB of answers, if all were given.
            try await elsewhere { [introspectable] in
                for _ in 0..<12_000 {
                    for client in deaf { client.call(BusNames.service, path, introspectable, "Introspect") }
                }
            }
            try await expectService(machine)
            withExtendedLifetime(deaf) {}
        }
    }

    @Test func `connections that ask for properties and mistakes and read nothing don't hold the others up`()
        async throws
    {
        try await withMachine { machine in
            let path = try machine.store().path
            nonisolated(unsafe) let deaf = try (0..<2).map { _ in try RawClient(machine.bus, as: Users.client) }
            var arguments = Wire()
            arguments.string(BusNames.storeInterface)
            // Errors repeat the names of interfaces that don't exist.
            var long = Wire()
            long.string(String(repeating: "x", count: 100_000))
            try await elsewhere { [properties, bodies = [arguments.bytes, long.bytes]] in
                for _ in 0..<5000 {
                    for client in deaf {
                        for body in bodies {
                            client.call(BusNames.service, path, properties, "GetAll", signature: "s", body: body)
                        }
                        client.store(path, "GetValue", 1)
                    }
                }
            }
            try await expectService(machine)
            withExtendedLifetime(deaf) {}
        }
    }

    @Test func `a client that makes one blocking call after the other is not held up`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            try await store.set("key", .data([UInt8](repeating: 1, count: 50_000)))
            let client = try RawClient(machine.bus, as: Users.client)
            var key = Wire()
            key.string("key")
            // More than a client may leave unread.
            for number in 0..<300 {
                client.store(store.path, "GetValue", signature: "s", body: key.bytes)
                try await eventually("call \(number) is answered") {
                    try #require(client.turn(waiting: 20, answersCalls: false)).contains { $0.replySerial != 0 }
                }
            }
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `two hundred connections of a user with an unread snapshot each don't hold the others up`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            try await store.set("large", .data([UInt8](repeating: 1, count: 1_000_000)))
            let deaf = try (0..<200).map { _ in try RawClient(machine.bus, as: Users.client) }
            for client in deaf { client.store(store.path, "GetSnapshot", 0, 0) }
            try await expectService(machine)
            // At most 24 MiB are in transit per user, and waiting calls are small.
            #expect(try #require(ProcessMemory.privateDirty(of: machine.device.pid)) < 96 << 10)
            // Once the connections have ended, the user is served again.
            for client in deaf { client.end() }
            #expect(try await store.everything().count == 1)
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `eight users with 16 MiB unread each don't hold the others up`() async throws {
        try await withMachine { machine in
            var deaf: [RawClient] = []
            // The bus accepts only users that the machine knows.
            let users = ((1..<100) as Range<UInt32>).filter { getpwuid($0) != nil && $0 != Users.service }.prefix(8)
            #expect(users.count == 8)
            for user in users {
                let store = try machine.store(as: user)
                try await store.set("large", .data([UInt8](repeating: 1, count: 1_000_000)))
                let clients = try (0..<16).map { _ in try RawClient(machine.bus, as: user) }
                for client in clients { client.store(store.path, "GetSnapshot", 0, 0) }
                deaf += clients
            }
            try await expectService(machine)
            #expect(try #require(ProcessMemory.privateDirty(of: machine.device.pid)) < 128 << 10)
            withExtendedLifetime(deaf) {}
        }
    }

    @Test func `a user's own client is served again once the others have read`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            try await store.set("large", .data([UInt8](repeating: 1, count: 1_000_000)))
            let slow = try (0..<40).map { _ in try RawClient(machine.bus, as: Users.client) }
            for client in slow { client.store(store.path, "GetSnapshot", 0, 0) }
            let own = Task { @BusActor in try await store.everything().count }
            // By now the service has found nothing read, so it has to check again later.
            try await expectService(machine)
            let reading = Task { @BusActor in
                while !Task.isCancelled {
                    for client in slow { _ = client.turn(waiting: 0) }
                    try await Task.sleep(for: .milliseconds(5))
                }
            }
            #expect(try await own.value == 1)
            reading.cancel()
        }
    }

    @Test func `a subscriber with as many waiting calls as there may be is told of the last change`() async throws {
        let directory = try TemporaryDirectory()
        let settings = directory.path + "/settings.conf"
        try "[User]\nWaitingCalls=1\n".write(toFile: settings, atomically: true, encoding: .utf8)
        try await withMachine { options in
            options.arguments = ["--configuration", settings]
        } _: { machine in
            let store = try machine.store()
            try await store.set("large", .data([UInt8](repeating: 1, count: 1_000_000)))
            let deaf = try RawClient(machine.bus, as: Users.client)
            deaf.store(store.path, "Subscribe", 1)
            // A change that came before the subscription would not be signalled.
            try await eventually("it is subscribed") {
                deaf.turn(waiting: 10)?.contains { $0.type == 2 && !$0.sender.hasPrefix("org") } ?? false
            }
            deaf.askForMuch(store.path)
            try await store.set("key", .integer(1))
            // The signal arrives once the client reads, without another change.
            var signals = 0
            try await eventually("the change is told") {
                signals += deaf.turn(waiting: 10)?.count { $0.type == 4 && !$0.sender.hasPrefix("org") } ?? 0
                return signals >= 1
            }
        }
    }

    @Test func `a subscriber to two stores that reads late is told of both`() async throws {
        let other = "org.example.Other"
        try await withMachine { options in
            options.manifests = [ManifestText(notes), ManifestText(other)]
        } _: { machine in
            let stores = try [machine.store(), machine.store(other)]
            try await stores[0].set("large", .data([UInt8](repeating: 1, count: 1_000_000)))
            try await stores[1].set("key", .integer(0))
            let deaf = try RawClient(machine.bus, as: Users.client)
            var answers = 0
            for store in stores { deaf.store(store.path, "Subscribe", 1) }
            try await eventually("it is subscribed") {
                answers += deaf.turn(waiting: 10)?.count { $0.type == 2 && !$0.sender.hasPrefix("org") } ?? 0
                return answers >= 2
            }
            deaf.askForMuch(stores[0].path)
            for store in stores { try await store.set("key", .integer(1)) }
            var signals = 0
            try await eventually("both changes are told") {
                signals += deaf.turn(waiting: 10)?.count { $0.type == 4 && !$0.sender.hasPrefix("org") } ?? 0
                return signals >= 2
            }
        }
    }

    @Test func `states of the account are merged for a subscriber that does not read`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let store = try devices.store(devices.laptop)
            let account = store.client.account
            let deaf = try RawClient(devices.laptop.bus)
            try await store.set("large", .data([UInt8](repeating: 1, count: 1_000_000)))
            try await account.syncNow()
            var flags = Wire()
            flags.number(0 as UInt64)
            deaf.call(
                BusNames.service, account.path, BusNames.accountInterface, "Subscribe", signature: "t",
                body: flags.bytes)
            let owner = try await store.client.serviceOwner()
            func read() throws -> [WireReply] { try #require(deaf.turn(waiting: 10)).filter { $0.sender == owner } }
            var subscribed: WireReply?
            try await eventually("it is subscribed") {
                subscribed = try read().first
                return subscribed != nil
            }
            #expect(subscribed?.type == 2, "\(subscribed?.errorName ?? "")")
            deaf.askForMuch(store.path)
            _ = try await store.everything()
            for _ in 0..<20 {
                try await account.setPaused(true)
                try await account.setPaused(false)
            }
            var (answers, signals) = (0, 0)
            do {
                try await eventually("everything is read") {
                    for reply in try read() { if reply.type == 4 { signals += 1 } else { answers += 1 } }
                    return answers == 127 && signals > 0
                }
            } catch {
                Issue.record("\(answers) answers and \(signals) signals were read.")
                throw error
            }
            // The first signals may have gone out before the answers used up the client's share.
            #expect(signals < 20, "\(signals)")
        }
    }
}
