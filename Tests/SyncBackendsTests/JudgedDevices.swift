// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import PropertyList
import ServerTesting
import StoreEngine
import SyncEngine
import Synchronization

@testable import Simulation

/// Devices on real servers whose writes are in the simulation's ledger, and judged in the end as the simulation does.
final class JudgedDevices: @unchecked Sendable {
    // Because each device is one task's alone, until all tasks have ended.
    let devices: [BackendDevice]
    private let place: BackendPlace
    private let ledger = Mutex(Ledger())
    private let count = Atomic<Int64>(0)
    private let broken = Mutex<[String]>([])

    private static let store = "org.example.Notes"
    private static let keys = 12

    init(_ count: Int, _ place: BackendPlace) async throws {
        self.place = place
        devices = try await BackendConformance.devices(count, place)
    }

    /// A device writes one of a few keys, or removes it.
    func write(_ index: Int, _ random: UInt64) {
        let (device, key) = (devices[index], Int(random / 8 % UInt64(Self.keys)))
        let known = device.stores[Self.store]?.context ?? Context()
        let number = count.add(1, ordering: .relaxed).newValue
        let removes = random % 4 == 0 && device.values(Self.store)["k\(key)"] != nil
        device.set(Self.store, "k\(key)", removes ? nil : .integer(number))
        guard let entry = device.stores[Self.store]?.entries[Names.keys[key]] else { return }
        let write = Write(
            number: number, device: index, isRemoval: removes, stamp: entry.stamp, dot: entry.dot, known: known)
        note(ledger.withLock { $0.add(write, to: Cell(place: 0, store: 0, key: key), isTwin: false) })
    }

    /// A device writes and syncs as long as it is told to, and then until it has come through.
    func work(_ index: Int, _ dice: Dice, atLeast rounds: Int, while isWanted: () -> Bool) async throws {
        var done = 0
        while isWanted() || done < rounds || devices[index].hasPendingChanges {
            write(index, dice.roll())
            do throws(RemoteError) { try await devices[index].sync() } catch {
                if error.code != .unavailable { throw error }
                continue
            }
            done += 1
        }
    }

    /// All write and sync at once, twenty times, while a proxy does one of these faults to every fourth request.
    func work(through proxy: FaultProxy, _ faults: [FaultProxy.Fault], _ dice: Dice) async {
        proxy.onRequest { _ in dice.roll() % 4 == 0 ? faults[Int(dice.roll() % UInt64(faults.count))] : nil }
        for _ in 0..<20 {
            for device in devices.indices { write(device, dice.roll()) }
            await syncAll()
        }
        proxy.onRequest(nil)
    }

    /// All sync at once, and whatever comes of it is no matter.
    func syncAll() async {
        await withTaskGroup { group in
            for index in devices.indices {
                group.addTask { do { try await self.devices[index].sync() } catch {} }
            }
        }
    }

    /// Judges, once nothing goes wrong any more.
    /// - Returns: the rules that were broken.
    func judge() async throws -> [String] {
        try await BackendConformance.settle(devices)
        let late = BackendDevice("late", seed: 99, backend: try place.makeBackend())
        try await late.signIn(creating: false)
        try await late.sync()
        let state = devices[0].stores[Self.store] ?? StoreState()
        if late.stores[Self.store]?.entries != state.entries { note("I11: a new device finds something else") }
        note(ledger.withLock { $0.verdict(on: state, place: 0, store: 0, keys: Self.keys) })
        let values = devices[0].values(Self.store)
        for key in 0..<Self.keys {
            var found: Int64?
            if case .integer(let number) = values["k\(key)"] { found = number }
            let cell = Cell(place: 0, store: 0, key: key)
            note(ledger.withLock { $0.verdict(cell, found: found, keepsTombstones: true) })
        }
        return broken.withLock(\.self)
    }

    private func note(_ violation: String?) {
        if let violation { broken.withLock { $0.append(violation) } }
    }
}
