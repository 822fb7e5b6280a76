// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// What subscribers receive over a real bus: each change once, with its reason, in order.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct NotificationTests {
    /// Expects that generations never go back, and that no signal names a key twice.
    private func expectOrder(_ signals: [StoreSignal]) {
        for (signal, next) in zip(signals, signals.dropFirst()) { #expect(signal.generation <= next.generation) }
        for signal in signals { #expect(Set(signal.keys).count == signal.keys.count) }
    }

    @Test func `each change from elsewhere is told once, and nothing of what did not change`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            try await laptop.apply(["same": .integer(1), "gone": .integer(1)])
            _ = try await devices.converge()
            let start = try await phone.subscribe()
            try await laptop.set("same", .integer(1))
            try await laptop.set("same", .integer(2))
            try await laptop.set("same", .integer(1))
            try await laptop.remove("absent")
            _ = try await devices.converge()
            #expect(try await phone.generation() == start)
            for round in 0..<10 {
                try await laptop.apply(["k\(round % 3)": .integer(Int64(round))], removing: round == 5 ? ["gone"] : [])
                _ = try await devices.converge()
                // Changes that follow too soon are merged.
                let generation = try await phone.generation()
                try await eventually("the round is told") { phone.received.last?.generation == generation }
            }
            expectOrder(phone.received)
            #expect(phone.received.allSatisfy { $0.reason == 0 })
            let told = phone.received.flatMap(\.keys)
            #expect(Set(told) == ["k0", "k1", "k2", "gone"])
            #expect(told.count == 11)
            let news = try await phone.snapshot(since: start)
            #expect(!news.isComplete && news.removed == ["gone"] && news.values.count == 3)
        }
    }

    @Test func `a subscriber that stops for a while hears everything when it goes on, and holds up nobody`()
        async throws
    {
        try await withTwoDevices { devices in
            try await devices.join()
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            let writer = try devices.store(devices.phone)
            let watcher = try await Watcher.start(on: devices.phone.bus, phone.path)
            try await phone.subscribe(0x1)
            watcher.send(SIGSTOP)
            // Each round is two signals at once, as their reasons differ. The refusals fill the client's allowance.
            let refused = (0..<1100).map {
                (key: "refused\($0)" + String(repeating: "k", count: 110), value: Value.integer(1))
            }
            let rounds = 48
            for round in 0..<rounds {
                let name = await errorName { try await writer.apply(refused) { _ in } }
                #expect(name == "QuotaExceeded")
                try await writer.set("p\(round)", .integer(1))
                if round % 4 < 2 { try await laptop.set("l\(round)", .integer(1)) }
                if round % 4 == 3 { _ = try await devices.converge() }
            }
            let last = try await phone.generation()
            let everything = try await laptop.everything()
            try await eventually("the others are told") { phone.received.last?.generation == last }
            expectEachOnce(phone.received, everything)

            watcher.send(SIGCONT)
            try await eventually("it hears the last one") { watcher.output.contains("generation \(last)") }
            expectEachOnce(watcher.signals, everything)
            #expect(watcher.signals.count { $0.reason == 2 } < rounds, "not all of it was on its way at once")
            watcher.end()
        }
    }

    /// Expects that each key was signalled once, with the reason that its first letter stands for, in order.
    private func expectEachOnce(_ signals: [StoreSignal], _ values: [Text: Value]) {
        expectOrder(signals)
        func told(_ reason: UInt32) -> [String] { signals.filter { $0.reason == reason }.flatMap(\.keys).sorted() }
        let keys = values.keys.map(\.string).sorted()
        #expect(told(0) == keys.filter { $0.hasPrefix("l") })
        #expect(told(16) == keys.filter { $0.hasPrefix("p") })
        #expect(told(2).allSatisfy { $0.hasPrefix("refused") })
        #expect(signals.allSatisfy { [0, 2, 16].contains($0.reason) })
    }

    @Test func `one that vanishes and comes back finds by its generation what it has missed`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            var first: StoreClient? = try BusClient(devices.phone.bus).store(notes)
            let before = try await first?.subscribe() ?? 0
            first = nil
            try await laptop.set("missed", .integer(1))
            _ = try await devices.converge()
            let now = try await phone.subscribe()
            #expect(now > before)
            #expect(try await phone.snapshot(since: before).values == ["missed": .integer(1)])
            #expect(phone.received.isEmpty)

            // The same after the service was killed: the subscription is gone, the generation isn't.
            try await laptop.set("before", .integer(1))
            _ = try await devices.converge()
            devices.phone.kill()
            try await devices.phone.start()
            phone.forgetSignals()
            try await laptop.set("after", .integer(1))
            _ = try await devices.converge()
            let later = try await phone.subscribe()
            #expect(phone.received.isEmpty)
            let news = try await phone.snapshot(since: now)
            #expect(news.generation == later && !news.isComplete)
            #expect(news.values == ["before": .integer(1), "after": .integer(1)])
            try await laptop.set("last", .integer(1))
            _ = try await devices.converge()
            #expect(try await phone.signal("the next change") { $0.generation > later }.keys == ["last"])
        }
    }
}

/// `watch-store` on a bus: a subscriber that is a process of its own.
private final class Watcher {
    private let process: ChildProcess
    private let directory: TemporaryDirectory

    /// Starts the program, and waits until it has subscribed.
    static func start(on bus: PrivateBus, _ path: String) async throws -> Watcher {
        let watcher = try Watcher(on: bus, path)
        try await eventually("the watcher has subscribed") { watcher.output.contains("subscribed") }
        return watcher
    }

    private init(on bus: PrivateBus, _ path: String) throws {
        directory = try TemporaryDirectory()
        let program = try Device.program().replacing("ubiquitous-stored", with: "watch-store")
        process = try ChildProcess(
            [program, bus.address, path, "1"], as: nil,
            environment: ["LD_LIBRARY_PATH": ProcessInfo.processInfo.environment["LD_LIBRARY_PATH"] ?? ""],
            output: (directory.path + "/output", directory.path + "/log"))
    }

    var output: String {
        String(decoding: FileManager.default.contents(atPath: directory.path + "/output") ?? Data(), as: UTF8.self)
    }

    /// The signals that it has printed, one a line: `DidChangeExternally: server-change, keys a b, generation 7`.
    var signals: [StoreSignal] {
        output.split(separator: "\n").compactMap { line in
            let parts = line.dropFirst("DidChangeExternally: ".count).components(separatedBy: ", ")
            let reasons: [String: UInt32] = ["server-change": 0, "quota-violation": 2, "local-change": 16]
            guard parts.count >= 3, let reason = reasons[parts[0]] else { return nil }
            return StoreSignal(
                reason: reason, keys: parts[1].split(separator: " ").dropFirst().map(String.init),
                generation: UInt64(parts[2].dropFirst("generation ".count)) ?? 0)
        }
    }

    func send(_ signal: Int32) { process.send(signal) }

    func end() { process.kill() }
}
