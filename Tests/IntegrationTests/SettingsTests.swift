// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// The file of settings, and what one user may have the service hold.
@BusActor
@Suite(.timeLimit(.minutes(10)))
struct SettingsTests {
    /// A machine whose service has a file of settings, which can be written anew.
    private func withSettings(
        _ text: String, manifests: Int = 1,
        _ body: @BusActor (Machine, _ write: (String) throws -> Void) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        chmod(directory.path, 0o755)
        let path = directory.path + "/settings.conf"
        let write: (String) throws -> Void = {
            try Data($0.utf8).write(to: URL(filePath: path))
            chmod(path, 0o644)
        }
        try write(text)
        try await withMachine {
            $0.arguments = ["--configuration", path]
            $0.manifests = (0..<manifests).map { ManifestText("org.example.Notes\($0 == 0 ? "" : "\($0)")") }
        } _: { machine in
            try await body(machine, write)
        }
    }

    private func reload(_ machine: Machine) async -> BusError? {
        await failure {
            try await machine.client(as: Users.service).manager("Reload")
        }
    }

    private func limits(_ store: StoreClient) async throws -> Value? { try await store.property("Limits") }

    @Test func `limits of a store are the settings', and hold`() async throws {
        try await withSettings("[Store]\nKeys=2\nTotalBytes=8K\n") { machine, _ in
            let store = try machine.store()
            try await store.set("a", .integer(1))
            try await store.set("b", .integer(1))
            let keys = await failure { try await store.set("c", .integer(1)) }
            #expect(keys?.name.hasSuffix(".QuotaExceeded") == true)
            let bytes = await failure { try await store.set("b", .data([UInt8](repeating: 1, count: 8192))) }
            #expect(bytes?.message.contains("8192") == true, "\(bytes?.message ?? "")")
            guard case .dictionary(let limits) = try await limits(store) else { throw CocoaError(.coderInvalidValue) }
            #expect(limits["keys"] == .integer(2) && limits["total-bytes"] == .integer(8192))
        }
    }

    @Test func `a user may not have more stores than the settings say, and those that are there go on`() async throws {
        try await withSettings("[User]\nStores=2\n", manifests: 3) { machine, _ in
            let client = try machine.client()
            let (first, second, third) = (
                try client.store("org.example.Notes"), try client.store("org.example.Notes1"),
                try client.store("org.example.Notes2")
            )
            try await first.set("key", .integer(1))
            try await second.set("key", .integer(1))
            let refused = await failure { try await third.set("key", .integer(1)) }
            #expect(refused?.name == "org.freedesktop.DBus.Error.LimitsExceeded")
            #expect(refused?.message.contains("2 stores") == true)
            try await first.set("key", .integer(2))
            #expect(try await third.everything().isEmpty)
        }
    }

    @Test func `a user's database may not get larger than the settings say, and removing still works`() async throws {
        try await withSettings("[User]\nDatabaseBytes=1M\n", manifests: 3) { machine, _ in
            let client = try machine.client()
            let first = try client.store("org.example.Notes")
            let megabyte = Value.data([UInt8](repeating: 1, count: 700 << 10))
            try await first.set("key", megabyte)
            let refused = await failure { try await client.store("org.example.Notes1").set("key", megabyte) }
            #expect(refused?.name.hasSuffix(".QuotaExceeded") == true)
            #expect(refused?.message.contains("database-bytes") == true, "\(refused?.message ?? "")")
            try await first.remove("key")
            #expect(try await first.everything().isEmpty)
        }
    }

    @Test func `calls beyond those of a connection that may wait are refused, and the others answered`() async throws {
        try await withSettings("[User]\nWaitingCalls=1\n") { machine, _ in
            let store = try machine.store()
            try await store.set("key", .integer(1))
            let outcomes = try await atOnce(40) { _ in await errorName { try await store.synchronize() } }
            #expect(Set(outcomes) == ["", "LimitsExceeded"])
            try await store.synchronize()
        }
    }

    @Test func `a reload applies other settings, and no client is lost`() async throws {
        try await withSettings("[User]\nSubscriptionsPerConnection=1\n", manifests: 2) { machine, write in
            let client = try machine.client()
            let (first, second) = (try client.store("org.example.Notes"), try client.store("org.example.Notes1"))
            try await first.subscribe()
            #expect(await errorName { try await second.subscribe() } == "LimitsExceeded")
            try write("[User]\nSubscriptionsPerConnection=2\n")
            #expect(await reload(machine) == nil)
            try await second.subscribe()
            try await first.set("key", .integer(1))
            #expect(try await first.value("key") == .integer(1))
            try write("[User]\nSubscriptionsPerConnection=1\n")
            machine.device.signal(SIGHUP)
            try await eventually("the settings are read again") {
                machine.device.log.components(separatedBy: "were read again").count == 3
            }
            #expect(try await first.value("key") == .integer(1))
        }
    }

    @Test func `settings that aren't right leave those that are in force, and the log and the caller have the line`()
        async throws
    {
        try await withSettings("[Store]\nKeys=7\n[User]\nSubscriptionsPerConnection=1\n") { machine, write in
            try write("[User]\nSubscriptionsPerConnection=2\nStores=many\n")
            let refused = await reload(machine)
            #expect(refused?.name == "org.freedesktop.DBus.Error.InvalidFileContent")
            #expect(refused?.message.contains("line 3") == true && refused?.message.contains("65536") == true)
            #expect(machine.device.log.contains("line 3"))
            guard case .dictionary(let limits) = try await limits(machine.store()) else {
                throw CocoaError(.coderInvalidValue)
            }
            #expect(limits["keys"] == .integer(7))
        }
    }

    @Test func `a service doesn't begin with settings that aren't right`() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/settings.conf"
        try Data("[Service]\nIdleExit=soon\n".utf8).write(to: URL(filePath: path))
        let checked = try await run([Device.program(), "--check-configuration", "--configuration", path])
        #expect(checked.exit == .code(78))
        #expect(checked.error.contains("line 2") && checked.error.contains("5min"))
        let begun = try await run([Device.program(), "--configuration", path, "--state-directory", directory.path])
        #expect(begun.exit == .code(78))
        #expect(begun.error.contains("line 2"))
        try Data("[Service]\nIdleExit=5min\n".utf8).write(to: URL(filePath: path))
        #expect(try await run([Device.program(), "--check-configuration", "--configuration", path]).exit == .code(0))
    }

    @Test func `a scheme that the settings don't allow is denied`() async throws {
        try await withSettings("[Sync]\nBackends=webdavs\n") { machine, _ in
            let account = try machine.client().account
            #expect(await errorName { try await account.signIn("folder:///tmp/nothing") } == "AccessDenied")
        }
    }
}
