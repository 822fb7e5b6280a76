// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import Testing
import UbiquitousStoreTesting

@testable import UbiquitousStore

private struct Window: Codable, Equatable, Sendable {
    var title: String
    var frame: [Double]
    var isOpen: Bool
    var visits: Int
    var opened: Date?
}

extension UbiquitousStore.Key<Int> {
    fileprivate static var count: Self { Self("count") }
}
extension UbiquitousStore.Key<Window> {
    fileprivate static var mainWindow: Self { Self("window") }
}
extension UbiquitousStore.Key<String> {
    fileprivate static var name: Self { Self("name") }
}
extension UbiquitousStore.Key<Data> {
    fileprivate static var blob: Self { Self("blob") }
}

@Suite(.serialized, .timeLimit(.minutes(30)))
struct UbiquitousStoreTests {
    @Test func `typed keys are written, read and removed, in memory and in the service`() async throws {
        try await Desk.with { desk in
            let store = try await desk.open()
            try await store.set(5, for: .count)
            #expect(store[.count] == 5)
            #expect(try await store.value(for: .count) == 5)
            let window = Window(
                title: "Main", frame: [0, 0.5], isOpen: true, visits: 3, opened: Date(timeIntervalSinceReferenceDate: 9)
            )
            store[.mainWindow] = window
            #expect(store[.mainWindow] == window)
            #expect(try await store.value(for: .mainWindow) == window)
            let raw = try await desk.otherProcess().value("window")
            #expect(
                raw
                    == .dictionary([
                        "title": "Main", "frame": .array([.real(0), .real(0.5)]), "isOpen": true, "visits": 3,
                        "opened": .date(9),
                    ]))
            #expect(store.keys == ["count", "window"] && store.identifier == notes)
            try await store.remove(.count)
            store[.mainWindow] = nil
            #expect(store[.count, default: 7] == 7)
            #expect(try await store.value(for: .mainWindow) == nil)
        }
    }

    @Test func `simple values keep their type on the bus, and come back`() throws {
        #expect(try UbiquitousStore.Key<Int>("k").encode(1) == 1)
        #expect(try UbiquitousStore.Key<Double>("k").encode(1) == .real(1))
        #expect(try UbiquitousStore.Key<Bool>("k").encode(true) == true)
        #expect(try UbiquitousStore.Key<[Double]>("k").encode([1]) == .array([.real(1)]))
        #expect(try UbiquitousStore.Key<[String: Bool]>("k").encode(["a": true]) == .dictionary(["a": true]))
        #expect(try UbiquitousStore.Key<Float>("k").encode(0.5) == .real(0.5))
        #expect(try UbiquitousStore.Key<[Bool]>("k").decode(.array([true, false])) == [true, false])
        #expect(try UbiquitousStore.Key<Int8>("k").decode(5) == 5)
        #expect(try UbiquitousStore.Key<Double>("k").decode(5) == 5)
        #expect(
            try UbiquitousStore.Key<[Date]>("k").decode(.array([.date(1)])) == [Date(timeIntervalSinceReferenceDate: 1)]
        )
    }

    @Test func `a value of another type is an error when it is asked for, and nil in the copy`() async throws {
        try await Desk.with { desk in
            let store = try await desk.open()
            try await desk.otherProcess().set("count", "five")
            #expect(await code { _ = try await store.value(for: .count) } == .typeMismatch)
            #expect(store[.count] == nil)
        }
    }

    @Test func `what can't be is thrown, and changes nothing`() async throws {
        try await Desk.with { desk in
            let store = try await desk.open()
            try await store.set("kept", for: .name)
            #expect(await code { try await store.set(1, for: .init("")) } == .invalidKey)
            #expect(
                await code { try await store.set(1, for: .init(String(repeating: "k", count: 129))) } == .keyTooLong)
            #expect(await code { try await store.set(Data(count: 1_048_577), for: .blob) } == .quotaExceeded)
            #expect(await code { try await store.set("a\0b", for: .name) } == .invalidValue)
            try await store.set(Data(count: 1_048_000), for: .blob)
            #expect(
                await code { try await store.set(String(repeating: "x", count: 1000), for: .name) } == .quotaExceeded)
            #expect(store[.name] == "kept")
            #expect(await code { _ = try await desk.open("org.example.Other") } == .notEntitled)
            let nowhere = await code {
                _ = try await UbiquitousStore.open(identifier: notes, on: .address("unix:path=/x"))
            }
            #expect(nowhere == .serviceUnavailable)
        }
    }

    @Test func `an update is all or nothing, and others see it at once`() async throws {
        try await Desk.with { desk in
            let store = try await desk.open()
            let other = try await desk.open(asOtherProcess: true)
            var changes = other.changes.makeAsyncIterator()
            try await store.update {
                try $0.set(1, for: .count)
                try $0.set("one", for: .name)
            }
            let change = try #require(await changes.next())
            #expect(change.reason == .otherProcess && change.keys == ["count", "name"])
            let code = await code {
                try await store.update {
                    $0.remove(.count)
                    try $0.set(Data(count: 1_048_577), for: .blob)
                }
            }
            #expect(code == .quotaExceeded && store[.count] == 1)
            #expect(try await store.value(for: .count) == 1)
        }
    }

    @Test func `a change says why, and what was there before and after`() async throws {
        try await Desk.with { desk in
            let store = try await desk.open()
            try await store.set(1, for: .count)
            var changes = store.changes.makeAsyncIterator()
            let other = try await desk.otherProcess()
            try await other.set("count", 2)
            let first = try #require(await changes.next())
            let values = (try first.oldValue(for: .count), try first.newValue(for: .count))
            #expect(values == (1, 2) && first.reason == .otherProcess)
            #expect(try first.newValue(for: .name) == nil)
            try await other.remove("count")
            let second = try #require(await changes.next())
            #expect(try second.newValue(for: .count) == nil)
            store[.init(String(repeating: "k", count: 129))] = 1
            let third = try #require(await changes.next())
            #expect(third.reason == .invalidWrite && third.error?.code == .keyTooLong)
        }
    }

    @Test func `a change from another device names it`() async throws {
        try await Desk.with { desk in
            let folder = try desk.device.directory.makeDirectory("shared")
            try await Desk.with { laptop in
                for device in [desk, laptop] { try await device.join(folder) }
                let (store, there) = (try await desk.open(), try await laptop.open())
                var changes = store.changes.makeAsyncIterator()
                try await there.set(3, for: .count)
                let change = try #require(await changes.next())
                let device = try await laptop.connect().account().properties().deviceIdentifier
                #expect(change.reason == .server && change.originDevice == device && store[.count] == 3)
            }
        }
    }

    @Test func `the account's state is told, and each that follows, over a restart of the service`() async throws {
        try await Desk.with { desk in
            let store = try await desk.open()
            var states = store.account.makeAsyncIterator()
            #expect(await states.next()?.status == .signedOut)
            let folder = try desk.device.directory.makeDirectory("shared")
            try await desk.join(folder)
            while let state = await states.next(), state.status != .idle {}
            desk.device.kill()
            while let state = await states.next(), state.status != .unavailable {}
            try await desk.device.restart()
            while let state = await states.next(), state.status != .idle {}
            try await desk.connect().account().signOut()
            while let state = await states.next(), state.status != .signedOut {}
        }
    }

    @Test func `without a service the account's state says so, and later what it is`() async throws {
        try await Desk.with(started: false) { desk in
            let store = SharedStore(StorePlace(identifier: notes, bus: desk.bus.address))
            var states = store.accountStates().makeAsyncIterator()
            let state = try #require(await states.next())
            #expect(state.status == .unavailable && state.lastError?.code == .serviceUnavailable)
            try await desk.device.start()
            #expect(await states.next()?.status == .signedOut)
        }
    }

    @Test func `earlier values are there with their time`() async throws {
        try await Desk.with { desk in
            let store = try await desk.open()
            for count in 1...3 { try await store.set(count, for: .count) }
            let history = try await store.history(of: .count)
            #expect(history.map(\.value) == [2, 1] && history.allSatisfy { $0.why == "replaced" })
            #expect(history.allSatisfy { abs($0.date.timeIntervalSinceNow) < 3600 })
        }
    }

    @Test func `an app in a home declares its store itself`() async throws {
        try await Desk.with(manifests: []) { desk in
            let bus = UbiquitousStore.Bus.address(desk.bus.address)
            let refused = await code { _ = try await desk.open() }
            #expect(refused == .notEntitled)
            let manifest = Data(ManifestText(notes).xml.utf8)
            let declared = try await UbiquitousStore.register(manifest: manifest, on: bus)
            #expect(declared == [notes])
            let store = try await desk.open()
            try await store.set(1, for: .count)
            let broken = await code { _ = try await UbiquitousStore.register(manifest: Data("{".utf8), on: bus) }
            #expect(broken == .invalidArguments)
        }
    }

    @Test func `a store that was refused is there once the app's manifest is`() async throws {
        try await Desk.with(manifests: []) { desk in
            let store = desk.keyValueStore()
            store.set("text", forKey: "key")
            #expect(!store.synchronize())
            let manifest = Data(ManifestText(notes).xml.utf8)
            _ = try await UbiquitousStore.register(manifest: manifest, on: .address(desk.bus.address))
            // The library tries again after a minute.
            let other = try await desk.otherProcess()
            try await eventually("the value is stored", within: .seconds(600)) {
                try await other.value("key") == "text"
            }
        }
    }

    @Test func `synchronize says whether anything leaves the device`() async throws {
        try await Desk.with { desk in
            let store = try await desk.open()
            try await store.set(1, for: .count)
            #expect(try await store.synchronize() == false)
            #expect(await code { try await store.synchronize(waitingForRemote: true) } == .notSignedIn)
            try await desk.join(try desk.device.directory.makeDirectory("shared"))
            #expect(try await store.synchronize(waitingForRemote: true))
        }
    }

    @Test func `a write waits for a service that is stopped, until the task is cancelled`() async throws {
        try await Desk.with { desk in
            let store = try await desk.open()
            desk.device.signal(SIGSTOP)
            let task = Task { try await store.set(1, for: .count) }
            try await eventually("it is in the copy") { store[.count] == 1 }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            desk.device.signal(SIGCONT)
            #expect(try await store.value(for: .count) == 1)
        }
    }
}

extension Desk {
    /// Opens the usual store.
    ///
    /// - Parameter other: whether to open it as another process would, without a shared copy.
    func open(_ identifier: String = notes, asOtherProcess other: Bool = false) async throws -> UbiquitousStore {
        // Another address of the same bus makes another copy.
        let address = other ? bus.address.replacing("unix:path=/", with: "unix:path=//") : bus.address
        return try await UbiquitousStore.open(identifier: identifier, on: .address(address))
    }

    /// Signs in to a folder, and waits for the first download.
    func join(_ folder: String) async throws {
        let account = try await connect().account()
        _ = try await account.signIn("folder://\(folder)", SignInOptions(), timeout: .seconds(60))
        try await eventually("the first download") { try await account.properties().isInitialSyncDone }
    }
}
