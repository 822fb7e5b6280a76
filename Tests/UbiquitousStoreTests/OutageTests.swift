// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Foundation
import Glibc
import PropertyList
import SDBus
import Testing
import UbiquitousStoreTesting

@testable import UbiquitousStore

/// What an app sees while the service is absent, goes away, or doesn't answer.
@Suite(.serialized, .timeLimit(.minutes(30)))
struct OutageTests {
    @Test func `without a bus an app has its own writes, and synchronize says no`() {
        let store = NSUbiquitousKeyValueStore(StorePlace(identifier: notes, bus: "unix:path=/nonexistent/bus"))
        #expect(store.object(forKey: "a") == nil)
        store.set("mine", forKey: "a")
        #expect(store.string(forKey: "a") == "mine" && !store.synchronize())
        #expect(store.dictionaryRepresentation.count == 1)
    }

    @Test func `writes made before the service starts get there when it does`() async throws {
        try await Desk.with(started: false) { desk in
            let store = desk.keyValueStore()
            store.set("early", forKey: "a")
            #expect(store.string(forKey: "a") == "early" && !store.synchronize())
            try await desk.device.start()
            let other = try await desk.otherProcess()
            try await eventually("it gets there") { try await other.value("a") == "early" }
            try await store.waitForAnswer()
        }
    }

    @Test func `values that come after somebody has read are announced`() async throws {
        try await Desk.with { desk in
            try await desk.otherProcess().set("a", "stored")
            desk.device.kill()
            _ = try? await desk.device.finish()
            let store = desk.keyValueStore()
            let told = Told(store)
            #expect(store.object(forKey: "a") == nil)
            try await desk.device.start()
            try await eventually("it is announced") { !told.all.isEmpty }
            #expect(told.all == [.init(reason: 0, keys: ["a"])] && store.string(forKey: "a") == "stored")
        }
    }

    @Test func `after the service was killed and is back, both know everything`() async throws {
        try await Desk.with { desk in
            let store = desk.keyValueStore()
            store.set("before", forKey: "mine")
            try await store.waitForAnswer()
            let told = Told(store)
            desk.device.kill()
            store.set("during", forKey: "mine")
            #expect(store.string(forKey: "mine") == "during")
            try await desk.device.start()
            let other = try await desk.otherProcess()
            try await other.set("theirs", 1)
            try await eventually("both know") {
                let mine = try await other.value("mine")
                return store.longLong(forKey: "theirs") == 1 && mine == "during"
            }
            try await eventually("it is announced") { !told.all.isEmpty }
            #expect(told.all == [.init(reason: 0, keys: ["theirs"])])
        }
    }

    @Test func `whenever an app looked for a service that was just starting, it finds it`() async throws {
        try await Desk.with { desk in
            try await desk.otherProcess().set("a", 1)
            desk.device.kill()
            let place = StorePlace(identifier: notes, bus: desk.bus.address)
            // Each store looks for the service once, and then waits for the bus's signal. One of them looks just while
            // the service takes its name. The service allows a user 256 subscriptions.
            let looking = Task {
                var stores: [SharedStore] = []
                while !Task.isCancelled {
                    stores = stores.suffix(200) + [SharedStore(place)]
                    // Not faster than the loop connects them: a service may take its time to start.
                    await EventLoop.task {}.value
                    try? await Task.sleep(for: .microseconds(200))
                }
                return stores
            }
            try await desk.device.start()
            looking.cancel()
            let stores = await looking.value
            try await eventually("all have the value") { stores.allSatisfy { $0.generation > 0 } }
        }
    }

    @Test func `stores that are dropped while they look for the service leave no connection`() async throws {
        try await Desk.with { desk in
            let connection = try await desk.connect()
            let connections = { () async throws -> Int in
                try await connection.bus.call(
                    "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "ListNames"
                ) {
                    try $0.readStrings().count { $0.hasPrefix(":") }
                }
            }
            let before = try await connections()
            let place = StorePlace(identifier: notes, bus: desk.bus.address)
            for number in 0..<100 {
                let store = SharedStore(place)
                // Each is dropped at another moment of its start.
                try await Task.sleep(for: .microseconds(number * 20))
                withExtendedLifetime(store) {}
            }
            try await eventually("they are gone") { try await connections() == before }
        }
    }

    @Test func `what others wrote while only this app was cut off is caught up with`() async throws {
        try await Desk.with { desk in
            let store = desk.keyValueStore()
            store.set(Int64(1), forKey: "a")
            try await store.waitForAnswer()
            let told = Told(store)
            for round in 2..<6 as Range<Int64> {
                try await desk.device.restart()
                try await desk.otherProcess().apply(["a": .integer(round), "b": .integer(round)])
                try await eventually("round \(round)") {
                    store.longLong(forKey: "a") == round && store.longLong(forKey: "b") == round
                }
            }
            #expect(told.all.allSatisfy { $0.reason == 0 && Set($0.keys).isSubset(of: ["a", "b"]) })
        }
    }

    @Test func `a stopped service holds up neither reads nor writes, and synchronize once`() async throws {
        try await Desk.with { desk in
            let store = desk.keyValueStore()
            store.set(Int64(1), forKey: "a")
            try await store.waitForAnswer()
            desk.device.signal(SIGSTOP)
            for number in 2..<1000 as Range<Int64> { store.set(number, forKey: "a") }
            #expect(store.longLong(forKey: "a") == 999)
            #expect(!store.synchronize())
            // After that timeout, these calls don't wait; a thousand seconds would exceed the test's limit.
            for _ in 0..<1000 { #expect(!store.synchronize()) }
            desk.device.signal(SIGCONT)
            try await eventually("it gets there") { store.synchronize() }
            #expect(try await desk.otherProcess().value("a") == 999)
        }
    }

    @Test func `the first read does not wait for ever for a stopped service`() async throws {
        try await Desk.with { desk in
            try await desk.otherProcess().set("a", 1)
            desk.device.signal(SIGSTOP)
            let store = desk.keyValueStore()
            let told = Told(store)
            #expect(store.object(forKey: "a") == nil)
            store.set(Int64(2), forKey: "b")
            desk.device.signal(SIGCONT)
            try await eventually("it is announced") { !told.all.isEmpty }
            #expect(store.longLong(forKey: "a") == 1 && store.longLong(forKey: "b") == 2)
        }
    }

    @Test func `a store that no manifest declares keeps what it is given, and says no`() async throws {
        try await Desk.with { desk in
            let store = desk.keyValueStore("org.example.Undeclared")
            store.set(Int64(1), forKey: "a")
            #expect(store.longLong(forKey: "a") == 1 && !store.synchronize())
            // The manifest is installed later.
            try desk.device.install(ManifestText("org.example.Undeclared").xml, as: "late.plist")
            desk.device.signal(SIGHUP)
            try await eventually("it is taken then") { store.synchronize() }
            #expect(try await desk.otherProcess("org.example.Undeclared").value("a") == 1)
        }
    }

    @Test func `many threads may read and write at once`() async throws {
        try await Desk.with { desk in
            let store = desk.keyValueStore()
            await withTaskGroup(of: Void.self) { group in
                for thread in 0..<8 as Range<Int64> {
                    group.addTask {
                        for number in 0..<300 as Range<Int64> {
                            store.set(number, forKey: "thread \(thread)")
                            store.set(number, forKey: "shared")
                            if store.longLong(forKey: "thread \(thread)") != number { Issue.record("lost") }
                        }
                    }
                }
            }
            try await store.waitForAnswer()
            let values = try await desk.otherProcess().snapshot().values
            #expect(values.count == 9 && values.values.allSatisfy { $0 == 299 })
            #expect(store.dictionaryRepresentation.count == 9)
        }
    }

    @Test func `a write outlives the store that it was made through`() async throws {
        try await Desk.with(started: false) { desk in
            desk.keyValueStore().set("left", forKey: "a")
            try await desk.device.start()
            let other = try await desk.otherProcess()
            try await eventually("it gets there") { try await other.value("a") == "left" }
        }
    }

    @Test func `the last write of an app that synchronizes and ends is there`() async throws {
        try await Desk.with { desk in
            do {
                let store = desk.keyValueStore()
                store.set("last", forKey: "a")
                try await store.waitForAnswer()
            }
            let value = try await desk.otherProcess().value("a")
            #expect(value == "last")
        }
    }
}
