// SPDX-License-Identifier: Apache-2.0

// The code of the articles in UbiquitousStore.docc. SnippetTests checks that this file contains each of their blocks.

import Foundation
import UbiquitousStore
import UbiquitousStoreTesting

// MARK: Keys

extension UbiquitousStore.Key<Int> {
    static var fontSize: Self { Self("fontSize") }
}

extension UbiquitousStore.Key<[String]> {
    static var recentFiles: Self { Self("recentFiles") }
}

struct WindowState: Codable, Sendable {
    var title: String
    var width: Double
    var height: Double
}

extension UbiquitousStore.Key<WindowState> {
    static var window: Self { Self("window") }
}

enum Snippets {
    // MARK: Reading and writing

    static func open() async throws -> UbiquitousStore {
        let store = try await UbiquitousStore.open()
        return store
    }

    static func openByName() async throws -> UbiquitousStore {
        let store = try await UbiquitousStore.open(identifier: "org.example.Notes")
        return store
    }

    static func memory(_ store: UbiquitousStore) {
        let size = store[.fontSize, default: 12]
        store[.fontSize] = size + 1
        store[.recentFiles] = nil
    }

    static func service(_ store: UbiquitousStore) async throws {
        try await store.set(14, for: .fontSize)
        let size = try await store.value(for: .fontSize) ?? 12
        try await store.remove(.recentFiles)
        print(size)
    }

    static func together(_ store: UbiquitousStore) async throws {
        try await store.update { changes in
            try changes.set(14, for: .fontSize)
            changes.remove(.recentFiles)
        }
    }

    static func codable(_ store: UbiquitousStore) async throws {
        try await store.set(WindowState(title: "Notes", width: 800, height: 600), for: .window)
    }

    static func history(_ store: UbiquitousStore) async throws {
        for former in try await store.history(of: .fontSize) {
            print("\(former.value) until \(former.date)")
        }
    }

    // MARK: Following changes

    @MainActor
    static func follow(_ store: UbiquitousStore, show: @escaping @MainActor (Int) -> Void) -> Task<Void, Never> {
        let following = Task { @MainActor in
            for await change in store.changes where change.keys.contains(UbiquitousStore.Key.fontSize.name) {
                show(store[.fontSize, default: 12])
            }
        }
        return following
    }

    static func whatChanged(_ change: UbiquitousStore.Change) throws {
        switch change.reason {
        case .quotaViolation:
            print("Not stored: \(change.error?.message ?? "the devices together exceed a limit")")
        case .invalidWrite:
            print("A store can't hold this: \(change.error?.message ?? "")")
        case .account:
            print("Another account: \(change.keys)")
        default:
            let before = try change.oldValue(for: .fontSize)
            let after = try change.newValue(for: .fontSize)
            print("\(before ?? 12) became \(after ?? 12), on \(change.originDevice ?? "this device")")
        }
    }

    static func account(_ store: UbiquitousStore) async {
        for await state in store.account {
            switch state.status {
            case .signedOut: print("Settings stay on this device.")
            case .offline: print("\(state.pendingChanges) changes wait for the network.")
            default: print(state.lastError?.message ?? "Settings are the same on all devices.")
            }
        }
    }

    // MARK: Errors

    static func errors(_ store: UbiquitousStore, _ files: [String]) async throws {
        do {
            try await store.set(files, for: .recentFiles)
        } catch let error as UbiquitousStoreError where error.code == .quotaExceeded {
            try await store.set(files.suffix(10), for: .recentFiles)
        }
    }

    // MARK: Apple's class

    static func apple() {
        let store = NSUbiquitousKeyValueStore.default
        store.set(14, forKey: "fontSize")
        let size = store.longLong(forKey: "fontSize")
        print(size)
    }

    static func observe() -> any NSObjectProtocol {
        let observer = NotificationCenter.default.addObserver(
            forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification,
            object: NSUbiquitousKeyValueStore.default, queue: .main
        ) { notification in
            let keys = notification.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String]
            print("changed: \(keys ?? [])")
        }
        NSUbiquitousKeyValueStore.default.synchronize()
        return observer
    }

    static func sequence() async throws {
        let store = try await UbiquitousStore.open()
        for await change in store.changes {
            print("changed: \(change.keys)")
        }
    }

    static func identity(_ store: UbiquitousStore) async {
        for await state in store.account {
            print(state.status == .signedOut ? "Settings stay on this device." : "Signed in.")
        }
    }

    static func name() {
        NSUbiquitousKeyValueStore.use(identifier: "org.example.Notes")
    }

    // MARK: Tests of an app

    static func test() async throws {
        let bus = try await PrivateBus.start()
        var options = Device.Options()
        options.manifests = [ManifestText("org.example.Notes")]
        let device = try await Device.start(on: bus, options)
        let store = try await UbiquitousStore.open(identifier: "org.example.Notes", on: .address(bus.address))
        try await store.set(14, for: .fontSize)
        device.kill()
        assert(store[.fontSize] == 14)
    }
}
