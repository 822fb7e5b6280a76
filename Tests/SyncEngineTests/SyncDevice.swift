// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import Replication
import StoreEngine
import Synchronization

@testable import SyncEngine

/// Returns what another device has written to a store.
func arriving(_ values: [String: Int64], isComplete: Bool = true) -> RemoteChange {
    let stranger = Origin(bits: 99)
    var state = StoreState()
    for (index, (name, value)) in values.sorted(by: { $0.key < $1.key }).enumerated() {
        let n = UInt64(index + 1)
        let stamp = Stamp(isProvisional: false, wall: 1, counter: UInt16(index), origin: stranger)
        state.entries[Key(unchecked: name)] = Entry(stamp: stamp, n: n, value: Value.integer(value).encoded())
        state.vector.insert(Dot(origin: stranger, n: n))
    }
    return RemoteChange(state: state, isComplete: isComplete)
}

/// A database with its account, and the changes that its subscribers would be notified of.
@MainActor
final class SyncDevice {
    private(set) var database: UserDatabase
    private(set) var sync: AccountSync
    private(set) var notices: [String] = []
    /// How far the device's clock has been advanced, in microseconds.
    let later = Later()
    private let directory = NSTemporaryDirectory() + "account-sync-" + UUID().uuidString

    init() {
        do {
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            database = try Self.open(directory, later)
        } catch {
            preconditionFailure("a test needs its directory: \(error)")
        }
        sync = Self.account(database)
        listen()
    }

    /// Restarts the service. No store may be held.
    func restart(with backend: ScriptedBackend) throws {
        sync.close()
        database.close()
        database = try Self.open(directory, later)
        sync = Self.account(database)
        listen()
        sync.resume(with: backend)
    }

    private static func open(_ directory: String, _ later: Later) throws -> UserDatabase {
        let numbers = Mutex(SystemRandomNumberGenerator())
        return try UserDatabase(
            in: directory, runtimeDirectory: directory,
            environment: Environment(
                time: { UInt64(Date().timeIntervalSince1970 * 1e6) + later.microseconds },
                random: { numbers.withLock { $0.next() } }))
    }

    private static func account(_ database: UserDatabase) -> AccountSync {
        AccountSync(database, device: RemoteDevice(identifier: "d", name: "Device")) { monotonicTime }
    }

    private static var monotonicTime: UInt64 { DispatchTime.now().uptimeNanoseconds / 1000 }
    var monotonicTime: UInt64 { Self.monotonicTime }

    private func listen() {
        sync.host.onLeave = { backend in Task { await backend.close() } }
        sync.host.onNotice = { [weak self] notice in
            let text = "\(notice.reason) " + notice.keys.map(\.string).joined(separator: " ")
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

    /// Runs the cycles that are due, as a timer would.
    func startCycle() -> Task<Void, Never> {
        Task { await sync.runDueCycles() }
    }

    /// Signs in, writes a value, and begins its upload, which waits for ``ScriptedBackend/letGo()``.
    func startHeldUpload(to backend: ScriptedBackend) async throws -> Task<RemoteError?, Never> {
        try sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await syncNow()
        try write("k", 1)
        await backend.change { $0.holdsPush = true }
        await backend.hold()
        let upload = startSyncNow()
        await backend.someoneWaits()
        return upload
    }

    /// Requests a cycle, for a program or whatever was requested before, and runs it. The task returns its error; `nil`
    /// if it succeeded.
    func startSyncNow(for requester: AccountSync.Requester? = nil) -> Task<RemoteError?, Never> {
        let asked = Task { () -> RemoteError? in
            do {
                if let requester { try await sync.syncNow(for: requester) } else { try await sync.syncNow() }
                return nil
            } catch {
                return error as? RemoteError
            }
        }
        Task { await sync.runDueCycles() }
        return asked
    }

    /// Syncs and verifies, with the cycles that this requests.
    func syncAndVerify() async throws {
        sync.host.onScheduleChange = { [weak self] in MainActor.assumeIsolated { _ = self?.startCycle() } }
        defer { sync.host.onScheduleChange = nil }
        try await sync.syncAndVerify(for: .program)
    }

    func syncNow() async throws {
        if let error = await startSyncNow().value { throw error }
    }
}

/// How far a clock has been advanced.
final class Later: Sendable {
    private let sum = Atomic<UInt64>(0)

    var microseconds: UInt64 { sum.load(ordering: .relaxed) }

    func move(by microseconds: UInt64) { sum.add(microseconds, ordering: .relaxed) }
}
