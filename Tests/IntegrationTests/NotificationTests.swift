// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// What subscribers are told over a real bus: each change once, with its reason, in order.
@BusActor
@Suite(.timeLimit(.minutes(10)))
struct NotificationTests {
    /// Generations never go back, and no key is named twice in one signal.
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
            }
            let last = try await phone.generation()
            try await eventually("the last change is told") { phone.received.last?.generation == last }
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
            let watcher = try await Watcher.start(on: devices.phone.bus, phone.path)
            try await phone.subscribe()
            watcher.send(SIGSTOP)
            for round in 0..<20 {
                try await laptop.set("k\(round)", .integer(Int64(round)))
                if round % 5 == 4 { _ = try await devices.converge() }
            }
            _ = try await devices.converge()
            let last = try await phone.generation()
            try await eventually("the others are told") { phone.received.last?.generation == last }
            #expect(Set(phone.received.flatMap(\.keys)) == Set((0..<20).map { "k\($0)" }))
            watcher.send(SIGCONT)
            try await eventually("it hears the last one") { watcher.output.contains("generation \(last)") }
            for round in 0..<20 { #expect(watcher.output.contains("k\(round)")) }
            watcher.end()
        }
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

            // The same with a service that was killed: the subscription is gone, the generation is not.
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

    /// Starts it, and waits until it has subscribed.
    static func start(on bus: PrivateBus, _ path: String) async throws -> Watcher {
        let watcher = try Watcher(on: bus, path)
        try await eventually("the watcher has subscribed") { watcher.output.contains("subscribed") }
        return watcher
    }

    private init(on bus: PrivateBus, _ path: String) throws {
        directory = try TemporaryDirectory()
        let program = try Device.program().replacing("ubiquitous-stored", with: "watch-store")
        process = try ChildProcess(
            [program, bus.address, path], as: nil,
            environment: ["LD_LIBRARY_PATH": ProcessInfo.processInfo.environment["LD_LIBRARY_PATH"] ?? ""],
            output: (directory.path + "/output", directory.path + "/log"))
    }

    var output: String {
        String(decoding: FileManager.default.contents(atPath: directory.path + "/output") ?? Data(), as: UTF8.self)
    }

    func send(_ signal: Int32) { process.send(signal) }

    func end() { process.kill() }
}
