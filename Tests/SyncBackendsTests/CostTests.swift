// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import Foundation
import PropertyList
import Replication
import Sealing
import SeededRandom
import StoreEngine
import SyncEngine
import Synchronization
import Testing

@testable import Blobs

/// What sync costs, in requests and bytes. Times are measured in Benchmarks.
@Suite struct CostTests {
    private final class Clock: Sendable {
        private let mutex = Mutex<UInt64>(1_700_000_000_000_000)
        var time: UInt64 {
            get { mutex.withLock(\.self) }
            set { mutex.withLock { $0 = newValue } }
        }
    }

    /// Devices with one clock on one storage.
    private final class World {
        let storage = MemoryStorage()
        let clock = Clock()
        private let protection: Protection
        private var seed: UInt64 = 0

        init(_ protection: Protection = .none) { self.protection = protection }

        func device() -> BackendDevice {
            seed += 1
            return BackendDevice("\(seed)", seed: seed, backend: backend())
        }

        func backend() -> BlobBackend<MemoryStorage> {
            let random = Mutex(SplitMix(seed: seed &* 1000))
            return BlobBackend(
                storage: storage,
                environment: Environment(
                    time: { [clock] in clock.time },
                    random: { random.withLock { $0.next() } }
                ),
                protection: protection
            )
        }

        func pass(seconds: UInt64, _ devices: BackendDevice...) {
            clock.time += seconds * 1_000_000
            for device in devices { device.time = clock.time }
        }
    }

    private func text(_ length: Int, _ random: inout SplitMix) -> Value {
        .data((0..<length).map { _ in .random(in: 0...255, using: &random) })
    }

    private func fill(_ device: BackendDevice, stores: Int, keys: Int, bytes: Int, _ random: inout SplitMix) {
        for store in 0..<stores {
            for key in 0..<keys { device.set("org.example.app-\(store)", "setting.\(key)", text(bytes, &random)) }
        }
    }

    @Test(arguments: [Protection.none, .testKey])
    func `a look at an account of 200 stores in which nothing is new is one listing`(_ protection: Protection)
        async throws
    {
        let world = World(protection)
        var random = SplitMix(seed: 1)
        let devices = (0..<3).map { _ in world.device() }
        for (number, device) in devices.enumerated() {
            try await device.signIn(creating: number == 0)
            try await device.sync()
            fill(device, stores: 200, keys: 3, bytes: 20, &random)
            try await device.sync()
        }
        for device in devices { try await device.sync() }
        world.pass(seconds: 601, devices[0])
        try await devices[0].sync()
        world.storage.requests = []
        try await devices[0].sync()
        #expect(world.storage.requests.filter { $0.action != .check }.map(\.action) == [.list])
        // Now and then a pull does not trust the versions that the storage reports.
        var most = 0
        for _ in 0..<20 {
            world.storage.requests = []
            try await devices[0].sync()
            most = max(most, world.storage.requests.count)
        }
        #expect((5...10).contains(most))
    }

    @Test(arguments: [Protection.none, .testKey])
    func `a small change is a look and a head, for the writer and for each reader`(_ protection: Protection)
        async throws
    {
        let world = World(protection)
        var random = SplitMix(seed: 1)
        let devices = (0..<3).map { _ in world.device() }
        for (number, device) in devices.enumerated() {
            try await device.signIn(creating: number == 0)
            fill(device, stores: 20, keys: 3, bytes: 20, &random)
            try await device.sync()
        }
        for _ in 0..<2 { for device in devices { try await device.sync() } }
        world.pass(seconds: 601, devices[0], devices[1], devices[2])
        for device in devices { try await device.sync() }
        func requests(_ body: () async throws -> Void) async throws -> [MemoryStorage.Request.Action] {
            world.storage.requests = []
            try await body()
            return world.storage.requests.map(\.action).filter { $0 != .check }
        }
        devices[0].set("org.example.app-3", "setting.1", .boolean(true))
        #expect(try await requests { try await devices[0].sync() } == [.list, .put])
        for device in devices[1...] { #expect(try await requests { try await device.sync() } == [.list, .get]) }
        // The writer reads its own head back, and the readers check once that their own objects are still there.
        #expect(try await requests { try await devices[0].sync() } == [.list, .get])
        world.pass(seconds: 601, devices[0], devices[1], devices[2])
        for device in devices[1...] { #expect(try await requests { try await device.sync() } == [.list, .list]) }
        for device in devices[1...] { #expect(try await requests { try await device.sync() } == [.list]) }
    }

    @Test(arguments: [(3, 400), (40, 655)])
    func `a small change in an encrypted account is the same upload and little longer`(stores: Int, most: Int)
        async throws
    {
        var uploads: [[[Int]]] = []
        for protection in [Protection.none, .testKey] {
            let world = World(protection)
            var random = SplitMix(seed: 9)
            let device = world.device()
            try await device.signIn(creating: true)
            fill(device, stores: stores, keys: 3, bytes: 200, &random)
            try await device.sync()
            var lengths: [[Int]] = []
            for change in 0..<20 {
                world.pass(seconds: 15, device)
                device.set("org.example.app-1", "setting.\(change % 3)", .integer(Int64(change)))
                world.storage.requests = []
                try await device.sync()
                lengths.append(world.storage.requests.filter { $0.action == .put }.map(\.bytes))
            }
            uploads.append(lengths)
        }
        for (plain, sealed) in zip(uploads[0], uploads[1]) {
            #expect(plain.count == 1 && sealed.count == 1)
            #expect(sealed[0] - plain[0] <= (plain[0] > 8 << 10 ? most : 400), "\(plain) \(sealed)")
        }
        print(
            "changes of \(stores) stores: \(uploads[0].flatMap(\.self).max() ?? 0) bytes unencrypted, "
                + "\(uploads[1].flatMap(\.self).max() ?? 0) sealed")
    }

    @Test func `a first download of twenty small stores is few requests`() async throws {
        let world = World()
        var random = SplitMix(seed: 1)
        let devices = (0..<3).map { _ in world.device() }
        for (number, device) in devices.enumerated() {
            try await device.signIn(creating: number == 0)
            try await device.sync()
            fill(device, stores: 20, keys: 10, bytes: 30, &random)
            try await device.sync()
        }
        let late = world.device()
        world.storage.requests = []
        try await late.signIn(creating: false)
        #expect(try await late.sync())
        let requests = world.storage.requests.count
        print("first download of 20 small stores, three heads: \(requests) requests")
        #expect(requests <= 25)
        #expect(late.values("org.example.app-7").count == 10)
    }

    @Test(arguments: [(20, 4 << 10), (200, 16 << 10)])
    func `a small change in a store of a megabyte costs little`(stores: Int, most: Int) async throws {
        let world = World()
        var random = SplitMix(seed: 2)
        let (a, b) = (world.device(), world.device())
        try await a.signIn(creating: true)
        fill(a, stores: stores - 1, keys: 40, bytes: 80, &random)
        for key in 0..<1000 { a.set("big", "setting.\(key)", text(1000, &random)) }
        try await a.sync()
        // This nearly fills the tail, so that later changes write buckets.
        for key in 0..<130 { a.set("big", "setting.\(key)", text(100, &random)) }
        try await a.sync()
        var costs: [Int] = []
        for _ in 0..<100 {
            world.pass(seconds: 15, a)
            a.set("big", "setting.\(Int.random(in: 0..<1000, using: &random))", text(100, &random))
            world.storage.requests = []
            try await a.sync()
            costs.append(world.storage.bytesWritten)
        }
        costs.sort()
        print(
            "\(stores) stores, a change of 100 bytes in 1 MB: median \(costs[50]), 80 of 100 \(costs[80]), "
                + "90 of 100 \(costs[90]), most \(costs[99]), mean \(costs.reduce(0, +) / 100)"
        )
        #expect(costs[80] <= most)
        #expect(costs[99] <= 80 << 10)
        try await b.signIn(creating: false)
        #expect(try await b.sync())
        #expect(b.stores == a.stores)
    }

    @Test(arguments: [Protection.none, .testKey])
    func `at rest the remote is little larger than what is in it, and while it is written not three times`(
        _ protection: Protection
    ) async throws {
        let world = World(protection)
        var random = SplitMix(seed: 3)
        let devices = (0..<3).map { _ in world.device() }
        try await devices[0].signIn(creating: true)
        fill(devices[0], stores: 20, keys: 40, bytes: 80, &random)
        for key in 0..<300 { devices[0].set("big", "setting.\(key)", text(1000, &random)) }
        for device in devices {
            if device !== devices[0] { try await device.signIn(creating: false) }
            try await device.sync()
        }
        func live() -> Int {
            devices[0].stores.map { StateDigests(of: $0.value, store: $0.key).totalSize }.reduce(0, +)
        }
        // A value is written each second, and published every fifteen.
        var most = 0.0
        for _ in 0..<100 {
            world.pass(seconds: 15, devices[0], devices[1], devices[2])
            for _ in 0..<15 {
                devices[0].set("big", "setting.\(Int.random(in: 0..<300, using: &random))", text(1000, &random))
            }
            for device in devices.prefix(2) { try await device.sync() }
            most = max(most, Double(world.storage.totalBytes) / Double(live()))
        }
        print("written each second, with a reader: at most \(most) times what is in it")
        #expect(most <= 3)
        for device in devices {
            try await device.sync()
            device.set("org.example.app-\(device.name)", "setting.1", .integer(1))
            try await device.sync()
        }
        for _ in 0..<9 {
            world.pass(seconds: 86_400, devices[0], devices[1], devices[2])
            for device in devices {
                try await device.sync()
                try await device.collectGarbage()
            }
        }
        let ratio = Double(world.storage.totalBytes) / Double(live())
        print("at rest: \(ratio) times what is in it; \(world.storage.blobs.count) blobs")
        #expect(ratio <= 1.3)
        world.storage.requests = []
        for _ in 0..<3 {
            world.pass(seconds: 86_400, devices[0], devices[1], devices[2])
            for device in devices { try await device.sync() }
        }
        #expect(world.storage.bytesWritten == 0, "and nobody has anything to say any more")
        for device in devices { #expect(device.stores == devices[0].stores) }
    }

    @Test func `a vector of ten years is not in what is written often`() async throws {
        let world = World()
        var random = SplitMix(seed: 4)
        let a = world.device()
        try await a.signIn(creating: true)
        fill(a, stores: 20, keys: 10, bytes: 30, &random)
        try await a.sync()
        var figures: [String] = []
        for boot in 1...3000 {
            world.pass(seconds: 3 * 86_400 / 3, a)
            a.restart(with: a.backend)
            // A different number of writes each, because equal version vectors would share a segment.
            for store in 0..<20 {
                for _ in 0...Int.random(in: 0..<3, using: &random) {
                    a.set("org.example.app-\(store)", "setting.1", .integer(Int64(boot)))
                }
            }
            guard boot % 100 == 0 else { continue }
            try await a.sync()
            guard boot == 300 || boot == 3000 else { continue }
            // The first change may have to write an index.
            var costs: [Int] = []
            for change in 0..<5 {
                world.pass(seconds: 300, a)
                world.storage.requests = []
                a.set("org.example.app-3", "setting.2", .integer(Int64(change)))
                try await a.sync()
                costs.append(world.storage.bytesWritten)
            }
            figures.append("\(boot) origins: changes write \(costs), the remote has \(world.storage.totalBytes)")
            #expect(costs.sorted()[2] <= 4 << 10 && costs[0] <= 80 << 10)
        }
        print(figures.joined(separator: "\n"))
        let b = world.device()
        try await b.signIn(creating: false)
        #expect(try await b.sync())
        #expect(b.stores == a.stores)
    }
}
