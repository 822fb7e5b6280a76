// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import StoreEngine
import Synchronization
import Testing

@testable import SyncEngine

/// What another device has written to a store.
private func arriving(_ values: [String: Int64], isComplete: Bool = true) -> RemoteChange {
    let stranger = Origin(bits: 99)
    var state = StoreState()
    for (index, (name, value)) in values.sorted(by: { $0.key < $1.key }).enumerated() {
        let n = UInt64(index + 1)
        let stamp = Stamp(isProvisional: false, wall: 1, counter: UInt16(index), origin: stranger)
        state.entries[Key(unchecked: name)] = Entry(stamp: stamp, n: n, value: Value.integer(value).encoded())
        state.context.insert(Dot(origin: stranger, n: n))
    }
    return RemoteChange(state: state, isComplete: isComplete)
}

/// What an account does when its remote is slow, halfway there, or somebody else's.
@MainActor
struct AccountSyncTests {
    private let device = SyncDevice()

    @Test func `a store of which a part has not arrived does not count as downloaded`() async throws {
        let backend = ScriptedBackend()
        await backend.change {
            $0.changes = ["app": arriving(["theirs": 1], isComplete: false)]
            $0.isComplete = false
        }
        try device.write("default", 7)
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        await #expect(throws: RemoteError.self) { try await device.syncNow() }
        #expect(try !device.store().isDownloaded && device.notices.isEmpty)
        #expect(device.sync.state == .initialSync && device.sync.lastError != nil)

        await backend.change {
            $0.changes = ["app": arriving(["default": 1, "theirs": 2])]
            $0.isComplete = true
        }
        try await device.syncNow()
        #expect(try device.store().isDownloaded)
        #expect(try device.value("default") == 1)
        #expect(device.notices == ["1 default theirs"])
    }

    @Test func `a store that is taken into use again during a pass is downloaded with the next one`() async throws {
        let backend = ScriptedBackend()
        await backend.change { $0.changes = ["app": arriving(["k": 1]), "other": arriving(["k": 2])] }
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await device.syncNow()
        _ = try device.database.forget(store: "app")

        await backend.hold()
        device.sync.noteHint()
        let pass = device.startPass()
        await backend.someoneWaits()
        let store = try device.store()
        try device.database.remember(store: store)
        await backend.letGo()
        await pass.value
        try await device.syncNow()
        #expect(store.isDownloaded)
        #expect(try device.value("k") == 1)
    }

    @Test func `signing out does not wait for a backend that hangs, and the next account begins at once`() async throws
    {
        let hanging = ScriptedBackend()
        await hanging.change { $0.changes = ["app": arriving(["k": 1])] }
        await hanging.hold()
        try device.sync.signIn(to: hanging, as: RemoteAccount(identifier: "A"), bringingValues: false)
        let waiting = device.startSyncNow()
        await hanging.someoneWaits()
        try device.sync.signOut(keepingValues: true)
        #expect(await waiting.value != nil)
        #expect(device.sync.state == .signedOut)

        let next = ScriptedBackend()
        await next.change {
            $0.account = RemoteAccount(identifier: "B")
            $0.changes = ["app": arriving(["k": 2])]
        }
        try device.sync.signIn(to: next, as: RemoteAccount(identifier: "B"), bringingValues: false)
        try await device.syncNow()
        #expect(try device.value("k") == 2)

        await hanging.letGo()
        try await device.syncNow()
        #expect(try device.value("k") == 2)
        #expect(device.sync.state == .idle)
    }

    @Test func `whoever asks while a pass pauses the account is told why`() async throws {
        let backend = ScriptedBackend()
        await backend.change { $0.changes = ["app": arriving(["k": 1])] }
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await device.syncNow()
        await backend.change { $0.account = RemoteAccount(identifier: "another") }
        let (first, second) = (device.startSyncNow(), device.startSyncNow())
        #expect(await first.value?.code == .reset)
        #expect(await second.value?.code == .reset)
        #expect(device.sync.state == .paused)
        #expect(await device.startSyncNow().value?.code == .reset)
        #expect(try device.value("k") == 1)
    }

    @Test func `a write during an upload stays pending, and goes with the next one`() async throws {
        let backend = ScriptedBackend()
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await device.syncNow()
        try device.write("k", 1)
        await backend.hold()
        let upload = device.startSyncNow()
        await backend.someoneWaits()
        try device.write("k", 2)
        await backend.letGo()
        #expect(await upload.value == nil)
        #expect(try device.store().pendingChanges == 1)
        try await device.syncNow()
        #expect(try device.store().pendingChanges == 0)
        #expect(await backend.uploads["app"]?.entries[Key(unchecked: "k")]?.value == Value.integer(2).encoded())
    }

    @Test func `what was written under an origin that somebody else has as well takes fresh dots`() async throws {
        let backend = ScriptedBackend()
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await device.syncNow()
        try device.write("mine", 1)
        try await device.syncNow()
        let shared = device.database.origin
        // The other one has used the same dot for another key.
        var twin = StoreState()
        let stamp = Stamp(isProvisional: false, wall: 5, counter: 0, origin: shared)
        twin.entries[Key(unchecked: "theirs")] = Entry(stamp: stamp, n: 1, value: Value.integer(2).encoded())
        twin.context.insert(Dot(origin: shared, n: 1))
        let change = RemoteChange(state: twin, isComplete: true)
        await backend.change {
            $0.ownPublication = .foreign
            $0.changes = ["app": change]
        }
        try await device.syncNow()
        #expect(device.database.origin != shared)
        #expect(try device.value("mine") == 1)
        #expect(try device.store().entry(for: Key(unchecked: "mine"))?.stamp.origin == device.database.origin)
    }
}

/// A database with its account, and what its subscribers would be told.
@MainActor
final class SyncDevice {
    let database: UserDatabase
    let sync: AccountSync
    private(set) var notices: [String] = []
    private let directory = NSTemporaryDirectory() + "account-sync-" + UUID().uuidString

    init() {
        let numbers = Mutex(SystemRandomNumberGenerator())
        do {
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            database = try UserDatabase(
                in: directory, runtimeDirectory: directory,
                environment: Environment(
                    time: { UInt64(Date().timeIntervalSince1970 * 1e6) },
                    random: { numbers.withLock { $0.next() } }))
        } catch {
            preconditionFailure("a test needs its directory: \(error)")
        }
        sync = AccountSync(database, device: RemoteDevice(identifier: "d", name: "Device")) {
            DispatchTime.now().uptimeNanoseconds / 1000
        }
        sync.onLeave = { backend in Task { await backend.close() } }
        sync.onNotice = { [weak self] notice in
            let text = "\(notice.reason.rawValue) " + notice.keys.map(\.string).joined(separator: " ")
            MainActor.assumeIsolated { self?.notices.append(text) }
        }
    }

    isolated deinit {
        database.close()
        try? FileManager.default.removeItem(atPath: directory)
    }

    func store() throws -> Store { try database.store("app") }

    func write(_ key: String, _ value: Int64) throws {
        try store().stage(setting: [(Key(unchecked: key), .integer(value))], removing: [])
        try database.commit()
        sync.noteLocalChange()
    }

    func value(_ key: String) throws -> Int64? {
        if case .integer(let value) = try store().value(for: Key(unchecked: key)) { value } else { nil }
    }

    /// Makes the passes that are due, as a timer would.
    func startPass() -> Task<Void, Never> {
        Task { await sync.runDuePasses() }
    }

    /// Asks for a pass and makes it; comes to why it failed.
    func startSyncNow() -> Task<RemoteError?, Never> {
        let asked = Task { () -> RemoteError? in
            do {
                try await sync.syncNow()
                return nil
            } catch {
                return error as? RemoteError
            }
        }
        Task { await sync.runDuePasses() }
        return asked
    }

    func syncNow() async throws {
        if let error = await startSyncNow().value { throw error }
    }
}
