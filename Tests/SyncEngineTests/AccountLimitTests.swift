// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Replication
import StoreEngine
import SyncEngine
import Testing

/// A new device, and stores of its account that have grown too large to be joined.
@MainActor
struct AccountLimitTests {
    private let device = SyncDevice()
    private let backend = ScriptedBackend()
    private let problem = RemoteError(
        .damaged,
        "The store huge has grown too large to be joined any further. Remove keys that are no longer needed.")

    /// Returns a change with more keys than a store may have after a join.
    private func tooLarge() -> RemoteChange {
        arriving(Dictionary(uniqueKeysWithValues: (0...8192).map { ("key \($0)", 1) }))
    }

    private func write(_ key: String, _ value: Int64, to store: String) throws {
        try device.database.store(store).stage(setting: [(Key(unchecked: key), .integer(value))], removing: [])
        try device.database.commit()
        device.sync.noteLocalChange()
    }

    private func values(_ store: Store) -> [String: Value] {
        Dictionary(uniqueKeysWithValues: store.values.map { ($0.key.string, $0.value) })
    }

    private func expectWaiting(_ stores: [String], _ line: SourceLocation = #_sourceLocation) async throws {
        #expect(device.sync.state == .idle && device.sync.lastError == problem, sourceLocation: line)
        #expect(device.sync.lastPull == 0, "not all of it was looked at", sourceLocation: line)
        for identifier in stores {
            let store = try device.database.store(identifier)
            #expect(!store.isDownloaded && store.values.count <= 1, "\(identifier)", sourceLocation: line)
            #expect(await backend.uploads[identifier] == nil, "\(identifier)", sourceLocation: line)
        }
    }

    @Test func `they are left out and named, the others sync, and they arrive once they are smaller`() async throws {
        await backend.change { [change = tooLarge()] in
            $0.changes = ["huge": change, "huge too": change, "app": arriving(["theirs": 1])]
        }
        // A default was written to one of them, and this device doesn't know the other.
        try write("default", 7, to: "huge")
        try write("mine", 7, to: "app")
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await device.syncNow()
        try await expectWaiting(["huge", "huge too"])
        #expect(await backend.uploads["app"]?.entries.count == 2)

        try device.restart(with: backend)
        try write("more", 8, to: "app")
        try write("more", 8, to: "huge too")
        try await device.syncNow()
        try await expectWaiting(["huge", "huge too"])
        #expect(await backend.uploads["app"]?.entries.count == 3)

        // A pull that can't read everything doesn't mark them as downloaded.
        await backend.change { ($0.changes, $0.isComplete, $0.cursor) = ([:], false, [2]) }
        #expect(await device.startSyncNow().value?.code == .unavailable)
        #expect(try !device.database.store("huge").isDownloaded)

        await backend.change {
            $0.changes = ["huge": arriving(["default": 1, "theirs": 2]), "huge too": arriving(["theirs": 3])]
            ($0.isComplete, $0.cursor) = (true, [3])
        }
        try await device.syncNow()
        try await device.syncNow()
        #expect(device.sync.lastError == nil && device.sync.lastPull > 0)
        let (huge, other) = (try device.database.store("huge"), try device.database.store("huge too"))
        #expect(huge.isDownloaded && values(huge) == ["default": .integer(1), "theirs": .integer(2)])
        #expect(other.isDownloaded && values(other) == ["more": .integer(8), "theirs": .integer(3)])
        #expect(await backend.uploads["huge too"]?.entries.count == 2)
    }

    @Test func `what was shown of the account before goes with it, and is told`() async throws {
        let former = ScriptedBackend()
        await former.change { $0.changes = ["huge": arriving(["old": 1])] }
        try device.sync.signIn(to: former, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await device.syncNow()
        let store = try device.database.store("huge")
        #expect(store.values.count == 1)
        await backend.change { [change = tooLarge()] in
            $0.account = RemoteAccount(identifier: "B")
            $0.changes = ["huge": change]
        }
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "B"), bringingValues: false)
        try await device.syncNow()
        try await expectWaiting(["huge"])
        #expect(store.values.isEmpty)
        #expect(device.notices.last == "accountChange old")
    }
}
