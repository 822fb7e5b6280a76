// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import Foundation
import PropertyList
import Replication
import ServerTesting
import StoreEngine
import SyncEngine
import Synchronization

@testable import Simulation

/// Devices with the real engine on real servers. Their writes are in the simulation's ledger, and their apps are its
/// subscribers. Signals are judged at once, and values in the end.
final class JudgedDevices: @unchecked Sendable {
    // Safe because each device belongs to one task alone, until all tasks have ended.
    private(set) var devices: [EngineDevice] = []
    private let remote: EmptyRemote
    private let record = Record()
    private let count = Atomic<Int64>(0)
    private var deviceCount = 0

    private static let keys = 12

    /// The ledger, and the rules that were broken.
    private final class Record: Sendable {
        let ledger = Mutex(Ledger())
        let broken = Mutex<[String]>([])

        func note(_ violation: String?) {
            if let violation { broken.withLock { $0.append(violation) } }
        }
    }

    /// Makes devices that have signed in. The first one makes the account.
    init(_ count: Int, _ remote: EmptyRemote) async throws {
        self.remote = remote
        for number in 0..<count { devices.append(try await newDevice(creating: number == 0)) }
    }

    /// Makes a device that has signed in and downloaded the account.
    private func newDevice(creating: Bool = false) async throws -> EngineDevice {
        deviceCount += 1
        let device = try EngineDevice("\(deviceCount)", seed: UInt64(deviceCount)) { [record] in
            record.ledger.withLock(\.self)
        } report: { [record] in
            record.note($0)
        }
        try await device.signIn(to: try remote.makeBackend(), creating: creating)
        try await device.sync()
        return device
    }

    /// Lets a device set or remove one of a few keys.
    func write(_ index: Int, _ random: UInt64) throws {
        let key = Int(random / 8 % UInt64(Self.keys))
        let number = count.add(1, ordering: .relaxed).newValue
        guard let write = try devices[index].write(number, to: key, of: index, removes: random % 4 == 0) else { return }
        record.note(record.ledger.withLock { $0.add(write, to: Self.cell(key), isShared: false) })
    }

    private static func cell(_ key: Int) -> Cell { Cell(place: 0, store: 0, key: key) }

    /// Lets all devices write and sync during trouble with the server, and then until nothing is pending.
    func work(while trouble: () throws -> Void) async throws {
        let isOver = Flag()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for device in devices.indices {
                group.addTask {
                    try await self.work(device, Dice(seed: UInt64(device)), atLeast: 3) {
                        !isOver.value.load(ordering: .relaxed)
                    }
                }
            }
            usleep(300_000)
            try trouble()
            usleep(300_000)
            isOver.value.store(true, ordering: .relaxed)
            try await group.waitForAll()
        }
    }

    private final class Flag: Sendable {
        let value = Atomic(false)
    }

    /// Lets a device write and sync for as long as wanted, and then until nothing is pending.
    private func work(_ index: Int, _ dice: Dice, atLeast rounds: Int, while isWanted: () -> Bool) async throws {
        var done = 0
        while isWanted() || done < rounds || devices[index].hasPendingChanges {
            try write(index, dice.roll())
            do throws(RemoteError) { try await devices[index].sync() } catch {
                // A server that is stopped amid an upload may leave half of the file until the device uploads it again.
                guard [.unavailable, .damaged].contains(error.code) else { throw error }
                continue
            }
            done += 1
        }
    }

    /// Lets all devices write and sync at once, twenty times, while one request in four meets one of these faults. Each
    /// time one device is replaced for good, once it believes that the server has all its writes.
    func work(through proxy: FaultProxy, _ faults: [FaultProxy.Fault], _ dice: Dice) async throws {
        for round in 0..<20 {
            proxy.onRequest { _ in dice.roll() % 4 == 0 ? faults[Int(dice.roll() % UInt64(faults.count))] : nil }
            for device in devices.indices { try write(device, dice.roll()) }
            await syncAll()
            let lost = round % devices.count
            while devices[lost].hasPendingChanges {
                do throws(RemoteError) { try await devices[lost].sync() } catch {}
            }
            proxy.onRequest(nil)
            devices[lost] = try await newDevice()
        }
    }

    /// Lets all devices sync at once, and ignores failures.
    func syncAll() async {
        await withTaskGroup { group in
            for index in devices.indices {
                group.addTask { do { try await self.devices[index].sync() } catch {} }
            }
        }
    }

    /// Judges the devices, when all faults are over.
    /// - Returns: the rules that were broken.
    func judge() async throws -> [String] {
        for _ in 0..<4 {
            for device in devices { try await device.sync() }
        }
        let state = devices[0].state
        for (number, device) in devices.enumerated() {
            if device.hasPendingChanges { record.note("I10: device \(number) is not settled") }
            if device.state.entries != state.entries { record.note("I5: devices 0 and \(number) hold something else") }
        }
        let late = try await newDevice()
        if late.state.entries != state.entries { record.note("I11: a new device finds something else") }
        var ledger = record.ledger.withLock(\.self)
        record.note(ledger.verdict(on: state, place: 0, store: 0, keys: Self.keys))
        for key in 0..<Self.keys {
            record.note(ledger.judge(Self.cell(key), found: devices[0].number(key), keepsTombstones: true))
        }
        return record.broken.withLock(\.self)
    }
}
