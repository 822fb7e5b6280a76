// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import PropertyList
import Replication
import StoreEngine
import SyncEngine

@testable import Simulation

/// A device that runs the real engine on a database of its own, with one store and an app that believes its signals. A
/// sync takes an hour, and everything else takes no time.
final class EngineDevice {
    private let disk: Place
    private let database: UserDatabase
    private let store: Store
    private let account: AccountSync
    private let subscriber: Subscriber
    private let ticks = Clock()
    private let names = Names()
    private let report: (String) -> Void
    /// The origin under which the device entered the account.
    private var origin: Origin?

    /// Makes an empty device.
    /// - Parameters:
    ///   - ledger: all writes until now.
    ///   - report: called with a sentence for each broken rule.
    init(_ name: String, seed: UInt64, ledger: @escaping () -> Ledger, report: @escaping (String) -> Void) throws {
        let (clock, dice) = (Clock(), Dice(seed: seed))
        disk = try Place()
        database = try UserDatabase(
            in: disk.path, runtimeDirectory: disk.path,
            environment: Environment(time: { clock.next() }, random: { dice.roll() }))
        store = try database.store(Names.stores[0])
        account = AccountSync(database, device: RemoteDevice(identifier: name, name: name)) { [ticks] in
            ticks.next(after: 0)
        }
        self.report = { report("device \(name): \($0)") }
        subscriber = Subscriber(
            store, account: { [database] in database.account.identifier }, ledger: ledger, report: self.report)
        account.host.onNotice = { [subscriber] in subscriber.hear($0) }
    }

    deinit { database.close() }

    /// The state of the store.
    var state: StoreState { store.snapshot().state }

    /// Whether changes are pending.
    var hasPendingChanges: Bool { account.hasPendingChanges }

    /// The number that a key is set to; `nil` if there is none.
    func number(_ key: Int) -> Int64? {
        if case .integer(let number) = store.value(for: names.keys[key]) { number } else { nil }
    }

    func signIn(to backend: any RemoteBackend, creating: Bool) async throws {
        let remote = try await backend.open(creatingAccount: creating)
        try account.signIn(to: backend, as: remote, bringingValues: false)
        origin = database.origin
    }

    /// Sets a key to a number, or removes it.
    /// - Returns: the write; `nil` if there was nothing to remove.
    func write(_ number: Int64, to key: Int, of device: Int, removes: Bool) throws -> Write? {
        let (name, known, generation) = (names.keys[key], store.vector, store.generation)
        subscriber.verify()
        let changed = try store.stage(
            setting: removes ? [] : [(name, .integer(number))], removing: removes ? [name] : [])
        if changed.isEmpty { return nil }
        try database.commit()
        if store.generation <= generation { report("I14: a write without a generation") }
        subscriber.refresh()
        account.noteLocalChange()
        guard let entry = store.version(of: name) else {
            report("I7: the write \(number) was acknowledged and is not there")
            return nil
        }
        return Write(
            number: number, device: device, isRemoval: removes, stamp: entry.stamp,
            dot: Dot(origin: entry.stamp.origin, n: entry.n), known: known)
    }

    /// Runs the cycles that are due after an hour, whatever failed before.
    func sync() async throws(RemoteError) {
        _ = ticks.next(after: 3_600_000_000)
        account.noteHint()
        await account.runDueCycles()
        subscriber.verify()
        if database.origin != origin { report("a clone was seen where there is none") }
        if let error = account.lastError { throw error }
    }
}
