// SPDX-License-Identifier: Apache-2.0

import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

@testable import UbiquitousStore

@BusActor
@Suite(.serialized, .timeLimit(.minutes(30)))
struct ServiceConnectionTests {
    @Test func `a store is written and read with the types of this library`() async throws {
        try await Desk.with { desk in
            let store = try await desk.otherProcess()
            let first = try await store.set("a", 1)
            #expect(try await store.value("a") == .integer(1))
            #expect(try await store.value("b") == nil)
            let second = try await store.apply(["a": nil, "b": "two", "c": .array([true, .date(1)])])
            #expect(second > first)
            #expect(try await store.values(["a", "b", "x"]) == ["b": "two"])
            let changes = try await store.snapshot(since: first)
            #expect(changes.generation == second && !changes.isComplete && changes.removed == ["a"])
            #expect(changes.values == ["b": "two", "c": .array([true, .date(1)])])
            #expect(try await store.snapshot().isComplete)
            #expect(try await store.remove("b") > second)
            #expect(try await store.history("b").map(\.value) == ["two"])
            #expect(try await store.synchronize() == false)
            let properties = try await store.properties()
            #expect(properties.identifier == notes && properties.keyCount == 1 && properties.limits == .standard)
        }
    }

    @Test func `errors of the service have the codes of this library`() async throws {
        try await Desk.with { desk in
            let connection = try await desk.connect()
            let store = try connection.store(notes)
            #expect(await code { try await store.set("", 1) } == .invalidKey)
            #expect(await code { try await store.set(String(repeating: "k", count: 129), 1) } == .keyTooLong)
            #expect(
                await code { try await store.set("k", .data([UInt8](repeating: 1, count: 1_048_577))) }
                    == .quotaExceeded)
            #expect(await code { try await store.apply(["k": 1], ifGeneration: 1) } == .conflict)
            #expect(await code { try await store.synchronize(waitingForRemote: true) } == .notSignedIn)
            #expect(await code { _ = try await connection.manager.openStore("org.example.Other") } == .notEntitled)
            #expect(await code { _ = try connection.store("a\0b") } == .invalidArguments)
            let other = try connection.store("org.example.Other")
            #expect(await code { _ = try await other.value("k") } == .unknownObject)
        }
    }

    @Test func `every error name of the interface has a code`() {
        for name in StoreErrorCode.allCases {
            let error = UbiquitousStoreError.mapping(BusError.store(name, "words"))
            #expect((error as? UbiquitousStoreError)?.code.description == "\(name)")
            #expect((error as? UbiquitousStoreError)?.message == "words")
        }
    }

    @Test func `the service says what it is and whom it takes the caller for`() async throws {
        try await Desk.with { desk in
            let manager = try await desk.connect().manager
            let opened = try await manager.openStore(notes)
            #expect(opened.identifier == notes && opened.path.hasSuffix("org_2eexample_2eNotes"))
            #expect(try await manager.stores() == [])
            try await desk.otherProcess().set("a", 1)
            #expect(try await manager.stores().map(\.path) == [opened.path])
            let identity = try await manager.identify()
            #expect(identity.engine == "host" && identity.entitled == [notes])
            #expect(try await manager.properties().features.contains("folder"))
            try await manager.removeStore(notes)
            #expect(await code { try await manager.removeStore(notes) } == .noSuchStore)
            let manifest = ManifestText("org.example.Own", application: "org.example.Own")
            #expect(try await manager.registerManifest(Array(manifest.xml.utf8)) == ["org.example.Own"])
        }
    }

    @Test func `an account is signed in to, looked at and left`() async throws {
        try await Desk.with { desk in
            let account = try await desk.connect().account()
            var states: [String] = []
            let match = try await account.onChange { states.append($0.rawValue) }
            try await account.subscribe()
            let folder = try desk.device.directory.makeDirectory("shared")
            #expect(await code { try await account.syncNow(timeout: .seconds(60)) } == .notSignedIn)
            var options = SignInOptions()
            options.deviceName = "desk"
            let identifier = try await account.signIn("folder://\(folder)", options, timeout: .seconds(60))
            try await eventually("the first download") { try await account.properties().isInitialSyncDone }
            try await account.syncNow(timeout: .seconds(60))
            let properties = try await account.properties()
            #expect(properties.accountIdentifier == identifier && properties.deviceName == "desk")
            #expect(properties.backend == "folder://\(folder)" && properties.lastError == nil)
            #expect(try await account.devices().map(\.isThisOne) == [true])
            let steps = try await account.check("folder://\(folder)", options, timeout: .seconds(60))
            #expect(!steps.isEmpty && steps.allSatisfy(\.isPassed))
            try await account.signOut()
            try await eventually("the states are told: \(states)") { states.last == "signed-out" }
            #expect(states.contains("idle"))
            withExtendedLifetime(match) {}
        }
    }

    @Test func `a signal that somebody else sends is not heard`() async throws {
        try await Desk.with { desk in
            let connection = try await desk.connect()
            let store = try connection.store(notes)
            var heard: [ExternalChange] = []
            let match = try await store.onChange { heard.append($0) }
            try await store.subscribe()
            let forger = try BusConnection.open(desk.bus.busAddress, description: "forger")
            let forged = try forger.newSignal(
                store.path, BusNames.storeInterface, "DidChangeExternally", to: try #require(connection.bus.uniqueName))
            try forged.append(0 as UInt32)
            try forged.append(strings: ["forged"])
            try forged.append(1 as UInt64)
            try forged.appendDictionary {}
            try forger.send(forged)
            forger.flush()
            try await desk.otherProcess().set("true", 1)
            try await eventually("the service's signal") { !heard.isEmpty }
            #expect(heard.flatMap(\.keys) == ["true"])
            withExtendedLifetime(match) {}
        }
    }

    @Test func `who forges a change of owner is not the owner`() async throws {
        try await Desk.with { desk in
            let connection = try await desk.connect()
            let owner = connection.owner
            let forger = try BusConnection.open(desk.bus.busAddress, description: "forger")
            let own = try #require(forger.uniqueName)
            let forged = try forger.newSignal(
                "/org/freedesktop/DBus", "org.freedesktop.DBus", "NameOwnerChanged",
                to: try #require(connection.bus.uniqueName))
            for text in [BusNames.service, owner ?? "", own] { try forged.append(text) }
            try forger.send(forged)
            forger.flush()
            // The bus keeps the order of messages to one connection, so the forged signals have arrived by now.
            _ = try await connection.manager.identify()
            #expect(owner != nil && connection.owner == owner)
        }
    }

    @Test func `a service that ends and one that starts are noticed`() async throws {
        try await Desk.with(started: false) { desk in
            let connection = try await desk.connect()
            var owners: [String?] = []
            connection.onOwnerChange = { _ in owners.append(connection.owner) }
            #expect(connection.owner == nil)
            #expect(await code { _ = try await connection.manager.identify() } == .serviceUnavailable)
            try await desk.device.start()
            try await eventually("it has started") { owners.count == 1 && connection.owner != nil }
            desk.device.kill()
            try await eventually("it has ended") { owners.count == 2 && connection.owner == nil }
        }
    }

    @Test(arguments: [
        ("ServiceUnknown", "The name is not activatable"),
        ("ServiceUnknown", "The name org.example.A was not provided by any .service files"),
        ("NameHasNoOwner", "The name does not have an owner"),
    ])
    func `a service that is not there is named in the same words, whatever the bus says`(_ word: String, _ said: String)
    {
        let name = "org.freedesktop.DBus.Error." + word
        let error = UbiquitousStoreError.mapping(BusError(name: name, message: said)) as? UbiquitousStoreError
        #expect(error?.code == .serviceUnavailable && error?.message.hasPrefix("The service isn't running") == true)
    }

    @Test func `a bus that is not there is an error that says so`() async throws {
        let error = await code {
            _ = try await ServiceConnection.open(.address("unix:path=/nonexistent/bus"), description: "test")
        }
        #expect(error == .serviceUnavailable)
    }

    @Test func `a call that a stopped service does not answer times out`() async throws {
        try await Desk.with { desk in
            let connection = try await desk.connect()
            let store = try connection.store(notes)
            desk.device.signal(19)
            let code = await code { _ = try await store.synchronize(timeout: .milliseconds(50)) }
            #expect(code == .timedOut)
        }
    }
}
