// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import SDBus
import ServerTesting
import Synchronization
import Testing
import UbiquitousStoreTesting

/// Concurrent calls that try a remote: the last one counts.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct SupersededTests {
    /// Begins a call that waits for a server's answer. The task returns the name of its error.
    private func begin(
        _ server: ScriptedServer, _ call: @escaping @BusActor (String) async throws -> Void
    ) async throws -> Task<String, Never> {
        let before = server.requests.count
        let url = "webdav://127.0.0.1:\(server.port)/dav"
        let waiting = Task { @BusActor in await errorName { try await call(url) } }
        try await eventually("the server is asked") { server.requests.count > before }
        return waiting
    }

    @Test func `a sign-in takes the place of one that hangs, which never comes true`() async throws {
        let folder = MemoryFolder()
        folder.isSilent = true
        let server = try ScriptedServer { folder.answer(to: $0) }
        try await withTwoDevices { devices in
            let (account, other) = (try devices.account(devices.laptop), try devices.account(devices.laptop))
            let first = try await begin(server) { try await account.signIn($0) }
            let second = try await begin(server) { try await account.signIn($0) }
            try await other.signIn(devices.url)
            #expect(await first.value == "Busy")
            #expect(await second.value == "Busy")
            try await eventually("the server is left") { server.openConnections == 0 }
            folder.isSilent = false
            #expect(try await account.text("Backend") == devices.url)
            try await account.syncNow()
            #expect(try await account.text("Backend") == devices.url)
        }
    }

    @Test func `a sign-in that its caller has given up doesn't come true, and another account stays`() async throws {
        let folder = MemoryFolder()
        folder.isSilent = true
        let server = try ScriptedServer { folder.answer(to: $0) }
        try await withTwoDevices { devices in
            let account = try devices.account(devices.laptop)
            let first = try await begin(server) { try await account.signIn($0) }
            try await account.signOut(["only-attempt": .boolean(true)])
            #expect(await first.value == "Busy")
            try await eventually("the server is left") { server.openConnections == 0 }
            #expect(try await account.state() == "signed-out")
            try await account.signIn(devices.url)
            let second = try await begin(server) { try await account.signIn($0) }
            try await account.signOut(["only-attempt": .boolean(true)])
            #expect(await second.value == "Busy")
            #expect(try await account.text("Backend") == devices.url)
            try await account.signOut(["only-attempt": .boolean(true)])
            try await account.syncNow()
        }
    }

    @Test func `a check that hangs gives way to a sign-in, and that to a check`() async throws {
        let server = try ScriptedServer { _ in .nothing }
        try await withTwoDevices { devices in
            let account = try devices.account(devices.laptop)
            let check = try await begin(server) { _ = try await account.check($0) }
            let signIn = try await begin(server) { try await account.signIn($0) }
            #expect(await check.value == "Busy")
            let steps = try await account.check(devices.url)
            #expect(steps.last?["ok"] == .boolean(true))
            #expect(await signIn.value == "Busy")
            #expect(try await account.state() == "signed-out")
            try await eventually("the server is left") { server.openConnections == 0 }
        }
    }

    @Test func `a server that was slow has its account made by the last call alone`() async throws {
        let folder = MemoryFolder()
        folder.isSilent = true
        let server = try ScriptedServer { folder.answer(to: $0) }
        try await withTwoDevices { devices in
            let account = try devices.account(devices.laptop)
            let first = try await begin(server) { try await account.signIn($0, ["device-name": "first"]) }
            folder.isSilent = false
            let identifier = try await account.signIn(
                "webdav://127.0.0.1:\(server.port)/dav", ["device-name": "second"])
            #expect(await first.value == "Busy")
            #expect(try await account.text("AccountIdentifier") == identifier)
            #expect(try await account.text("DeviceName") == "second")
        }
    }

    @Test(arguments: [true, false])
    func `an encrypted account that was made for a call that was given up can be entered`(encrypting: Bool) async throws
    {
        let folder = MemoryFolder()
        let isHeard = Mutex(false)
        let server = try ScriptedServer { request in
            let answer = folder.answer(to: request)
            return request.method == "PUT" && !isHeard.withLock(\.self) ? .nothing : answer
        }
        try await withTwoDevices { devices in
            let account = try devices.account(devices.laptop)
            let first = try await begin(server) { try await account.signIn($0, ["encrypt": .boolean(true)]) }
            try await eventually("the account is made") { server.requests.contains { $0.method == "PUT" } }
            try await account.signOut(["only-attempt": .boolean(true)])
            #expect(await first.value == "Busy")
            // Whatever else the user signs in to and out of.
            try await account.signIn(devices.url)
            try await account.signOut()
            #expect(await errorName { try await account.signOut() } == "NotSignedIn")
            try await devices.laptop.restart()
            isHeard.withLock { $0 = true }
            let again = try devices.account(devices.laptop)
            let options: KeyValuePairs<String, Value> = encrypting ? ["encrypt": .boolean(true)] : [:]
            try await again.signIn("webdav://127.0.0.1:\(server.port)/dav", options)
            #expect(try await again.property("Encrypted") == .boolean(true))
            #expect(try await again.property("PhraseUnconfirmed") == .boolean(true))
            let keys = FileManager.default.subpaths(atPath: devices.laptop.stateDirectory)?.filter {
                $0.contains("attempted")
            }
            #expect(keys == [])
        }
    }
}
