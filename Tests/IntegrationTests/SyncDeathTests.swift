// SPDX-License-Identifier: Apache-2.0

import PropertyList
import SDBus
import ServerTesting
import Synchronization
import Testing
import UbiquitousStoreTesting

/// A remote that crashes the service in each sync cycle must not do so for ever.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct SyncDeathTests {
    @Test func `an account during whose cycles the service died twice waits and says so, and SyncNow tries at once`()
        async throws
    {
        let folder = MemoryFolder()
        let server = try ScriptedServer { folder.answer(to: $0) }
        var options = Device.Options()
        options.manifests = [ManifestText(notes)]
        let device = try await Device.start(on: .start(), options)
        try await BusClient(device.bus).account.join("webdav://127.0.0.1:\(server.port)/dav")
        folder.isSilent = true
        _ = try await device.stop()
        for _ in 0..<2 {
            server.requests = []
            try await device.start()
            // The service dies in the middle of a cycle.
            try await eventually("a cycle begins") { !server.requests.isEmpty }
            device.kill()
        }
        try await device.start()
        let account = try BusClient(device.bus).account
        #expect(try await account.state() == "offline")
        #expect(try await account.text("LastErrorMessage").contains("ended unexpectedly"))
        // A regular exit changes nothing.
        try await device.restart()
        #expect(try await BusClient(device.bus).account.text("LastErrorMessage").contains("10 min"))
        folder.isSilent = false
        try await BusClient(device.bus).account.syncNow()
        #expect(try await BusClient(device.bus).account.lastError() == "")
    }

    @Test func `a start that does not get the service's name is no death of an account`() async throws {
        let folder = MemoryFolder()
        let server = try ScriptedServer { folder.answer(to: $0) }
        var options = Device.Options()
        options.manifests = [ManifestText(notes)]
        let device = try await Device.start(on: .start(), options)
        try await BusClient(device.bus).account.join("webdav://127.0.0.1:\(server.port)/dav")
        _ = try await device.stop()
        let other = try await Device.start(on: device.bus)
        for _ in 0..<3 {
            let process = try device.launch()
            #expect(try await process.finish() != .code(0))
        }
        _ = try await other.stop()
        try await device.start()
        let account = try BusClient(device.bus).account
        try await account.syncNow()
        try await device.restart()
        #expect(try await BusClient(device.bus).account.lastError() == "")
    }
}
