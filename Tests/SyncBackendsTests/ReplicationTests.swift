// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import Replication
import Sealing
import SeededRandom
import StoreEngine
import SyncEngine
import Testing

/// Devices that each have a folder of their own, and a sync tool that carries files between the folders: one at a time,
/// in any order, late, torn, and deletions last. That is what a user of Syncthing has.
@Suite struct ReplicationTests {
    @MainActor private final class World {
        var random: SplitMix
        var places: [Place] = []
        var devices: [Device] = []
        /// By name of a head, the device whose folder has the right version.
        var owners: [String: Int] = [:]
        /// Keys that are written only once. They have to be everywhere in the end.
        var unique: Set<String> = []
        let store = "org.example.Notes"

        init(seed: UInt64, _ protection: Protection) async throws {
            random = SplitMix(seed: seed)
            for number in 0..<3 {
                let place = try Place()
                let device = try Device(place.path, name: "\(number)", seed: random.next(), protection: protection)
                places.append(place)
                devices.append(device)
            }
            try await devices[0].signIn()
            try await devices[0].sync()
            owners[devices[0].headName] = 0
            for number in 1...2 {
                try carryEverything()
                try await devices[number].signIn(creating: false)
            }
        }

        func step() async throws {
            let number = Int.random(in: 0..<3, using: &random)
            let device = devices[number]
            owners[device.headName] = number
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<5: try write(device)
            case 5..<9: try await attempt { try await device.sync() }
            case 9..<18: try carry()
            case 18: try await device.restart(machine: Bool.random(using: &random))
            default:
                device.storage.fail(["s/", "h/"].randomElement(using: &random))
                try await attempt { try await device.sync() }
                device.storage.fail(nil)
            }
            owners[device.headName] = number
        }

        private func attempt(_ body: () async throws -> Void) async throws {
            do { try await body() } catch let error as RemoteError {
                // Errors that a cycle may meet while files are on their way.
                #expect([.unavailable, .damaged, .reset].contains(error.code))
            }
        }

        private func write(_ device: Device) throws {
            let key = "key \(Int.random(in: 0..<20, using: &random))"
            switch Int.random(in: 0..<5, using: &random) {
            case 0: try device.remove(store, key)
            case 1:
                let key = "unique \(unique.count)"
                try device.set(store, key, .integer(Int64(unique.count)))
                unique.insert(key)
            case 2:
                try device.set(store, key, .data([UInt8](repeating: 1, count: .random(in: 0..<3000, using: &random))))
            default: try device.set(store, key, .integer(.random(in: 0..<1000, using: &random)))
            }
        }

        private func carry() throws {
            let (from, to) = (Int.random(in: 0..<3, using: &random), Int.random(in: 0..<3, using: &random))
            for name in files(places[from]).shuffled(using: &random).prefix(4) where from != to {
                try carry(name, from, to, torn: Int.random(in: 0..<10, using: &random) == 0)
            }
            if let name = files(places[to]).randomElement(using: &random) { try carryDeletion(of: name, to) }
        }

        private func files(_ place: Place) -> [String] {
            ["a", "h", "s"].flatMap { folder in place.names(folder).map { "\(folder)/\($0)" } }
        }

        private func carry(_ name: String, _ from: Int, _ to: Int, torn: Bool) throws {
            if name.hasPrefix("h/") {
                guard owners[name] == from else { return }
            } else if places[to].names(String(name.prefix(1))).contains(String(name.dropFirst(2))), !isTorn(name, to) {
                return
            }
            _ = try places[to].sub(String(name.prefix(1)))
            let bytes = try places[from].read(name)
            if !torn, isTorn(name, from) { return }
            try places[to].write(name, torn ? Array(bytes.dropLast(bytes.count / 3)) : bytes)
            if torn { self.torn.insert("\(to) \(name)") } else { self.torn.remove("\(to) \(name)") }
        }

        private var torn: Set<String> = []
        private func isTorn(_ name: String, _ place: Int) -> Bool { torn.contains("\(place) \(name)") }

        private func carryDeletion(of name: String, _ to: Int) throws {
            guard name.hasPrefix("h/"), let owner = owners[name], owner != to,
                !places[owner].names("h").contains(String(name.dropFirst(2)))
            else { return }
            try places[to].remove(name)
        }

        func carryEverything() throws {
            for from in 0..<3 {
                for to in 0..<3 where to != from {
                    for name in files(places[from]) { try carry(name, from, to, torn: false) }
                    for name in files(places[to]) { try carryDeletion(of: name, to) }
                }
            }
        }

        func settle() async throws {
            for _ in 0..<4 {
                for number in 0..<3 {
                    // A marker may still be on its way.
                    try await attempt { try await devices[number].sync() }
                    owners[devices[number].headName] = number
                    try carryEverything()
                }
            }
        }
    }

    @Test(arguments: 1...12) @MainActor
    func `whatever a sync tool does, all devices come to hold the same, and nothing that was written is lost`(
        seed: UInt64
    ) async throws { try await run(seed, .none) }

    @Test(arguments: 13...18) @MainActor
    func `the same of an account that is encrypted`(seed: UInt64) async throws { try await run(seed, .testKey) }

    @MainActor private func run(_ seed: UInt64, _ protection: Protection) async throws {
        let world = try await World(seed: seed, protection)
        for _ in 0..<250 { try await world.step() }
        try await world.settle()
        // Version vectors may differ: only its own device knows a write that gave way before it was published.
        let states = try world.devices.map { try $0.database.store(world.store).snapshot().state.entries }
        for (number, state) in states.enumerated() {
            let isEqual = state == states[0]
            #expect(isEqual, "device \(number): \(Set(state.keys.filter { state[$0] != states[0][$0] }))")
            #expect(state.count == states[0].count)
        }
        for device in world.devices {
            let values = try device.values(world.store)
            #expect(world.unique.isSubset(of: values.keys))
            #expect(try await device.pull().isComplete)
        }
        // After that no device writes anything.
        for device in world.devices {
            device.storage.clear()
            try await device.sync()
            #expect(device.storage.actions.isEmpty)
        }
    }
}
