// SPDX-License-Identifier: Apache-2.0

import Glibc
import PropertyList
import SDBus
import Sealing
import ServerTesting
import Synchronization
import Testing
import UbiquitousStoreTesting

/// What users and other devices do while an account moves to a key.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct MovingAccountTests {
    /// A server whose answers a test can replace.
    private final class World: Sendable {
        let folder = MemoryFolder()
        private let before = Mutex<@Sendable (ServerRequest) -> ServerAnswer?>({ _ in nil })

        /// Sets what runs before each request is answered. An answer that it returns replaces the server's.
        func onRequest(_ body: @escaping @Sendable (ServerRequest) -> ServerAnswer?) { before.withLock { $0 = body } }

        func answer(to request: ServerRequest) -> ServerAnswer {
            before.withLock { $0 }(request) ?? folder.answer(to: request)
        }
    }

    /// Runs a test with a device that has an unencrypted account with one value.
    private func withDevice(_ body: @BusActor (Device, World) async throws -> Void) async throws {
        let world = World()
        let server = try ScriptedServer { world.answer(to: $0) }
        defer { server.end() }
        var options = Device.Options()
        options.manifests = [ManifestText(notes)]
        let device = try await Device.start(on: .start(), options)
        try await account(device).join("webdav://127.0.0.1:\(server.port)/dav")
        try await store(device).set("colour", "red")
        try await account(device).syncNow()
        try await body(device, world)
        check(device)
        device.kill()
        device.bus.end()
    }

    private func account(_ device: Device) throws -> AccountClient { try BusClient(device.bus).account }

    private func store(_ device: Device) throws -> StoreClient { try BusClient(device.bus).store(notes) }

    private func removeStore(_ device: Device) async throws {
        try await BusClient(device.bus).manager("RemoveStore") {
            try $0.append(notes)
            try $0.append(0 as UInt64)
        }
    }

    @Test func `a store is not removed from a device while its account moves, and may be when that is over`()
        async throws
    {
        try await withDevice { device, world in
            let account = try self.account(device)
            // The move can't finish, because no head can be uploaded.
            world.onRequest { $0.method == "PUT" && $0.path.contains("/h/") ? ServerAnswer(503) : nil }
            #expect(await errorName { try await account.encrypt() } != "")
            #expect(await errorName { try await removeStore(device) } == "Conflict")
            try await device.restart()
            #expect(await errorName { try await removeStore(device) } == "Conflict")
            #expect(try await store(device).everything() == ["colour": "red"])
            world.onRequest { _ in nil }
            let again = try self.account(device)
            try await again.encrypt()
            device.keepSecret(try await again.recoveryPhrase(flags: 1))
            try await removeStore(device)
            try await again.syncNow()
            try await eventually("the store comes back from the account") {
                try await store(device).everything() == ["colour": "red"]
            }
        }
    }

    /// Returns a key whose identifier is smaller than any random one, so that it counts.
    private static func smallKey() throws -> AccountKey {
        try #require(
            AccountKey(secret: Array("sixteen secrets!".utf8), identifier: KeyIdentifier(high: 0, low: 1)))
    }

    private nonisolated static func plant(_ key: AccountKey, in world: World) {
        world.folder.put(
            "/dav/a/\(key.identifier)", SealedMarker(of: key, time: 1_700_000_000_000_000, links: []).bytes)
    }

    /// One of the device's requests for the list of markers, by its number.
    private final class Look: Sendable {
        private let state = Mutex((count: 0, isReached: false, isAnswered: false))
        private let number: Int
        private let isHeld: Bool

        init(_ number: Int, isHeld: Bool) { (self.number, self.isHeld) = (number, isHeld) }

        var isReached: Bool { state.withLock(\.isReached) }

        func answer() { state.withLock { $0.isAnswered = true } }

        /// Runs `body` before request `number` is answered. With `isHeld`, holds the answer until ``answer()``, at most
        /// two seconds, because the caller of ``answer()`` may be waiting for it.
        func note(_ body: () -> Void) {
            let isThis = state.withLock { state in
                state.count += 1
                return state.count == number
            }
            guard isThis else { return }
            body()
            state.withLock { $0.isReached = true }
            for _ in 0..<200 where isHeld && !state.withLock(\.isAnswered) { usleep(10_000) }
        }
    }

    private final class Once: Sendable {
        private let state = Mutex(false)
        var isSo: Bool { state.withLock(\.self) }
        func note() { state.withLock { $0 = true } }
    }

    @Test(arguments: [false, true])
    func `a move gives way to a smaller key, at whichever look that turns up, and its words are taken then`(
        isFoundByAnother: Bool
    ) async throws {
        let key = try Self.smallKey()
        let words = RecoveryPhrase(of: key).words.joined(separator: " ")
        var (number, isOver) = (1, false)
        while !isOver {
            try await withDevice { device, world in
                let (account, look) = (try self.account(device), Look(number, isHeld: isFoundByAnother))
                device.keepSecret(words)
                world.onRequest { request in
                    if request.method == "PROPFIND", request.path.hasSuffix("/dav/a/") {
                        look.note { Self.plant(key, in: world) }
                    }
                    return nil
                }
                var error: String?
                let move = Task { @BusActor in error = await errorName { try await account.encrypt() } }
                try await eventually("the look, or the end") { look.isReached || error != nil }
                // Another caller's cycle finds the key while the answer is held.
                if isFoundByAnother, look.isReached { _ = await errorName { try await account.syncNow() } }
                look.answer()
                await move.value
                isOver = !look.isReached
                if isOver { return #expect(error == "") }
                // If the device has stopped already, it may need no other poll, and none happens by itself.
                if try await account.lastError() != "KeyNeeded" {
                    try await eventually("the device stops for the other key") {
                        await errorName { try await account.syncNow() } == "KeyNeeded"
                    }
                }
                try await store(device).set("later", "kept")
                try await account.unlock(words)
                try await account.syncNow()
                #expect(try await account.lastError() == "", "at look \(number)")
                #expect(try await account.recoveryPhrase() == words, "at look \(number)")
                #expect(try await store(device).everything() == ["colour": "red", "later": "kept"])
            }
            number += 1
        }
        #expect(number > 4)
    }

    @Test(arguments: ["local", "remote"])
    func `a device whose remote was emptied, and has another key's account by now, waits for that key's words`(
        side: String
    ) async throws {
        let key = try Self.smallKey()
        let words = RecoveryPhrase(of: key).words.joined(separator: " ")
        try await withDevice { device, world in
            let account = try self.account(device)
            device.keepSecret(words)
            try await account.encrypt()
            device.keepSecret(try await account.recoveryPhrase(flags: 1))
            world.folder.empty()
            try await eventually("the device has noticed") {
                await errorName { try await account.syncNow() } == "RemoteReset"
            }
            try await store(device).set("later", "kept")
            Self.plant(key, in: world)
            #expect(await errorName { try await account.resolve(side) } == "KeyNeeded")
            #expect(try await account.state() == "paused")
            // The error stays until the phrase is given, in this process and after a restart.
            for _ in 0..<2 {
                let account = try self.account(device)
                for _ in 0..<2 { #expect(await errorName { try await account.syncNow() } == "KeyNeeded") }
                #expect(try await account.lastError() == "KeyNeeded")
                try await device.restart()
            }
            let again = try self.account(device)
            try await again.unlock(words)
            try await again.syncNow()
            #expect(try await again.lastError() == "")
            #expect(try await again.recoveryPhrase() == words)
            #expect(try await store(device).everything() == ["colour": "red", "later": "kept"])
        }
    }

    @Test(arguments: ["local", "remote"])
    func `a device whose remote is emptied while its account moves goes on as its user says`(side: String)
        async throws
    {
        try await withDevice { device, world in
            let (account, hasBegun) = (try self.account(device), Once())
            // Other devices learn of the move, and the former form can't be read.
            world.onRequest { request in
                if request.path.contains("/dav/a/"), !["PROPFIND", "GET"].contains(request.method) { hasBegun.note() }
                return hasBegun.isSo && request.path.hasSuffix("/dav/h/") ? ServerAnswer(503) : nil
            }
            #expect(await errorName { try await account.encrypt() } != "")
            try #require(hasBegun.isSo)
            world.folder.empty()
            world.onRequest { _ in nil }
            try await eventually("the device has noticed") {
                await errorName { try await account.syncNow() } == "RemoteReset"
            }
            try await account.resolve(side)
            try await account.encrypt()
            device.keepSecret(try await account.recoveryPhrase(flags: 1))
            try await account.syncNow()
            #expect(try await account.lastError() == "")
            #expect(try await store(device).everything() == (side == "local" ? ["colour": "red"] : [:]))
        }
    }

    @Test func `a device that waits for another key's words goes on under its own if its user says so`() async throws {
        let key = try Self.smallKey()
        try await withDevice { device, world in
            let account = try self.account(device)
            try await account.encrypt()
            let words = try await account.recoveryPhrase(flags: 1)
            device.keepSecret(words)
            world.folder.empty()
            Self.plant(key, in: world)
            try await eventually("the device has noticed") {
                await errorName { try await account.syncNow() } == "RemoteReset"
            }
            #expect(await errorName { try await account.resolve("remote") } == "KeyNeeded")
            #expect(await errorName { try await account.syncNow() } == "KeyNeeded")
            try await account.resolve("local")
            try await account.syncNow()
            #expect(try await account.lastError() == "")
            #expect(try await account.recoveryPhrase() == words)
            #expect(try await store(device).everything() == ["colour": "red"])
            // If the remote is emptied once more, the account counts as gone, and not as another key's.
            world.folder.empty()
            Self.plant(key, in: world)
            try await eventually("the device has noticed again") {
                await errorName { try await account.syncNow() } == "RemoteReset"
            }
        }
    }
}
