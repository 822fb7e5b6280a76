// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Replication
import StoreEngine
import SyncEngine
import Testing

/// What an account does when its remote is slow, incomplete, or another account's.
@MainActor
struct AccountSyncTests {
    private let device = SyncDevice()

    @Test func `a pull that lacks something is no success, and says why`() async throws {
        let backend = ScriptedBackend()
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await device.syncNow()
        await backend.change { ($0.isComplete, $0.cursor) = (false, [2]) }
        #expect(await device.startSyncNow().value?.code == .unavailable)
        #expect(device.sync.state == .idle && device.sync.lastError?.code == .unavailable)
        await backend.change { $0.problems = ["The file s/1 is damaged."] }
        #expect(await device.startSyncNow().value == RemoteError(.damaged, "The file s/1 is damaged."))
        // A skipped file that is of no use to any device is reported, and the pull still counts as complete.
        await backend.change { ($0.isComplete, $0.cursor) = (true, [3]) }
        try await device.syncNow()
        #expect(device.sync.lastError?.code == .damaged)
        await backend.change { $0.problems = [] }
        try await device.syncNow()
        #expect(device.sync.lastError == nil)
    }

    @Test func `what this device has is in the remote, whatever else there can't be read`() async throws {
        let backend = ScriptedBackend()
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        for _ in 0..<2 { try await device.syncNow() }
        #expect(device.sync.isPublished && device.sync.hasReadAll)
        // As when another device has moved to another key, and its user has yet to enter this key's phrase.
        await backend.change { $0.problems = ["The file h/1 is not under the account's key and is skipped."] }
        try await device.syncNow()
        #expect(device.sync.isPublished && device.sync.hasReadAll && device.sync.hasUnread)
        await backend.change { $0.ownPublication = .missing }
        try await device.syncNow()
        #expect(!device.sync.isPublished)
    }

    @Test func `a pull says how often this device has begun to publish`() async throws {
        let backend = ScriptedBackend()
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await device.syncNow()
        try device.write("k", 1)
        try await device.syncNow()
        try await device.syncNow()
        #expect(await backend.counts == [0, 1, 2])
    }

    @Test func `a store of which a part has not arrived does not count as downloaded`() async throws {
        let backend = ScriptedBackend()
        await backend.change {
            $0.changes = ["app": arriving(["theirs": 1], isComplete: false)]
            $0.isComplete = false
        }
        try device.write("default", 7)
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        await #expect(throws: RemoteError.self) { try await device.syncNow() }
        #expect(try !device.store().isDownloaded && device.notices.isEmpty)
        #expect(device.sync.state == .initialSync && device.sync.lastError != nil)

        await backend.change {
            $0.changes = ["app": arriving(["default": 1, "theirs": 2])]
            $0.isComplete = true
        }
        try await device.syncNow()
        #expect(try device.store().isDownloaded)
        #expect(try device.value("default") == 1)
        #expect(device.notices == ["initialSyncChange default theirs"])
    }

    @Test func `a store that is taken into use again during a cycle is downloaded with the next one`() async throws {
        let backend = ScriptedBackend()
        await backend.change { $0.changes = ["app": arriving(["k": 1]), "other": arriving(["k": 2])] }
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await device.syncNow()
        _ = try device.database.forget(store: "app")

        await backend.hold()
        device.sync.noteHint()
        let cycle = device.startCycle()
        await backend.someoneWaits()
        let store = try device.store()
        try device.database.remember(store: store)
        await backend.letGo()
        await cycle.value
        try await device.syncNow()
        #expect(store.isDownloaded)
        #expect(try device.value("k") == 1)
    }

    @Test func `a store that is forgotten while a cycle brings news of it arrives with all that there is`() async throws
    {
        let backend = ScriptedBackend()
        await backend.change { $0.changes = ["app": arriving(["k": 1])] }
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await device.syncNow()

        await backend.change {
            $0.all = ["app": arriving(["k": 1, "later": 2])]
        }
        await backend.hold()
        device.sync.noteHint()
        let cycle = device.startCycle()
        await backend.someoneWaits()
        let store = try device.store()
        _ = try device.database.forget(store: "app")
        try device.database.remember(store: store)
        await backend.letGo()
        await cycle.value
        try await device.syncNow()
        #expect(store.isDownloaded)
        #expect(device.notices == ["initialSyncChange k", "initialSyncChange k later"])
    }

    @Test func `signing out does not wait for a backend that hangs, and the next account begins at once`() async throws
    {
        let hanging = ScriptedBackend()
        await hanging.change { $0.changes = ["app": arriving(["k": 1])] }
        await hanging.hold()
        try device.sync.signIn(to: hanging, as: RemoteAccount(identifier: "A"), bringingValues: false)
        let waiting = device.startSyncNow()
        await hanging.someoneWaits()
        try device.sync.signOut(keepingValues: true)
        #expect(await waiting.value != nil)
        #expect(device.sync.state == .signedOut)

        let next = ScriptedBackend()
        await next.change {
            $0.account = RemoteAccount(identifier: "B")
            $0.changes = ["app": arriving(["k": 2])]
        }
        try device.sync.signIn(to: next, as: RemoteAccount(identifier: "B"), bringingValues: false)
        try await device.syncNow()
        #expect(try device.value("k") == 2)

        await hanging.letGo()
        try await device.syncNow()
        #expect(try device.value("k") == 2)
        #expect(device.sync.state == .idle)
    }

    @Test func `whoever asks while a cycle pauses the account is told why`() async throws {
        let backend = ScriptedBackend()
        await backend.change { $0.changes = ["app": arriving(["k": 1])] }
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await device.syncNow()
        await backend.change { $0.account = RemoteAccount(identifier: "another") }
        let (first, second) = (device.startSyncNow(), device.startSyncNow())
        #expect(await first.value?.code == .reset)
        #expect(await second.value?.code == .reset)
        #expect(device.sync.state == .paused)
        #expect(await device.startSyncNow().value?.code == .reset)
        #expect(try device.value("k") == 1)
    }

    /// As after a machine was cloned: the clone's write had the same dot, and the device that replaced it claims to
    /// have replaced this one's too.
    @Test func `a write that others believe to have replaced by less is kept, and uploaded under another origin`()
        async throws
    {
        let backend = ScriptedBackend()
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await device.syncNow()
        try device.write("k", 1)
        try await device.syncNow()
        let (origin, stamp) = (device.database.origin, try device.store().version(of: Key(unchecked: "k")))
        var state = arriving(["k": 2]).states.state
        state.vector.insert(Dot(origin: origin, n: try #require(stamp).n))
        await backend.change { [state] in $0.changes = ["app": RemoteChange(state: state, isComplete: true)] }
        try await device.syncNow()
        #expect(try device.value("k") == 1)
        #expect(device.database.origin != origin)
        let uploaded = await backend.uploads["app"]?.entries[Key(unchecked: "k")]
        #expect(uploaded?.stamp.origin == device.database.origin)
        #expect(uploaded?.value == Value.integer(1).encoded())
    }

    @Test func `what was removed here takes nothing along of what arrives with it`() async throws {
        let backend = ScriptedBackend()
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        let (stranger, late) = (Origin(bits: 99), Origin(bits: 7))
        func state(_ origin: Origin, wall: UInt64, value: Int64) -> StoreState {
            let stamp = Stamp(isProvisional: false, wall: wall, counter: 0, origin: origin)
            let entry = Entry(stamp: stamp, n: 1, value: Value.integer(value).encoded())
            return StoreState(entries: [Key(unchecked: "k"): entry], vector: VersionVector([origin: 1]))
        }
        // This device knows that the stranger's first write is gone, but not what replaced it.
        let forgetful = StoreState(vector: VersionVector([stranger: 2]))
        await backend.change { $0.changes = ["app": RemoteChange(state: forgetful, isComplete: true)] }
        try await device.syncNow()
        var states = JoinedStates(state(stranger, wall: 20, value: 1))
        states.join(state(late, wall: 10, value: 2))
        await backend.change { [states] in $0.changes = ["app": RemoteChange(states, isComplete: true)] }
        try await device.syncNow()
        #expect(try device.value("k") == 2)
    }

    @Test func `whoever begins to listen does not wait for a look that was put off while nobody did`() async throws {
        let backend = ScriptedBackend(givesHints: false)
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await device.syncNow()
        let before = try #require(device.sync.nextCycle)
        device.sync.hasSubscribers = true
        #expect(try #require(device.sync.nextCycle) < before)
    }

    @Test(arguments: [false, true])
    func `a device with something to upload says so while its look takes long, unless it is offline`(
        isOffline: Bool
    ) async throws {
        let backend = ScriptedBackend()
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await device.syncNow()
        if isOffline {
            await backend.change { $0.failure = RemoteError(.unavailable, "It is off.") }
            await #expect(throws: RemoteError.self) { try await device.syncNow() }
        }
        try device.write("k", 1)
        await backend.change { $0.holdsPull = true }
        await backend.hold()
        let upload = device.startSyncNow()
        await backend.someoneWaits()
        #expect(device.sync.state == (isOffline ? .offline : .syncing))
        await backend.change { $0.failure = nil }
        await backend.letGo()
        #expect(await upload.value == nil)
        #expect(device.sync.state == .idle)
    }

    @Test func `a write during an upload stays pending, and goes with the next one`() async throws {
        let backend = ScriptedBackend()
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await device.syncNow()
        try device.write("k", 1)
        await backend.hold()
        let upload = device.startSyncNow()
        await backend.someoneWaits()
        try device.write("k", 2)
        await backend.letGo()
        #expect(await upload.value == nil)
        #expect(try device.store().pendingChanges == 1)
        try await device.syncNow()
        #expect(try device.store().pendingChanges == 0)
        #expect(await backend.uploads["app"]?.entries[Key(unchecked: "k")]?.value == Value.integer(2).encoded())
    }

    /// Returns what a clone that shares an origin wrote under its first dot.
    private func change(byCloneOf origin: Origin) -> RemoteChange {
        var clone = StoreState()
        let stamp = Stamp(isProvisional: false, wall: 5, counter: 0, origin: origin)
        clone.entries[Key(unchecked: "theirs")] = Entry(stamp: stamp, n: 1, value: Value.integer(2).encoded())
        clone.vector.insert(Dot(origin: origin, n: 1))
        return RemoteChange(state: clone, isComplete: true)
    }

    @Test func `what was written under an origin that somebody else has as well takes fresh dots`() async throws {
        let backend = ScriptedBackend()
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await device.syncNow()
        try device.write("mine", 1)
        try await device.syncNow()
        let shared = device.database.origin
        // The clone has used the same dot for another key.
        let change = change(byCloneOf: shared)
        await backend.change {
            $0.ownPublication = .foreign
            $0.changes = ["app": change]
        }
        try await device.syncNow()
        #expect(device.database.origin != shared)
        #expect(try device.value("mine") == 1)
        #expect(try device.store().entry(for: Key(unchecked: "mine"))?.stamp.origin == device.database.origin)
    }

    @Test func `a default that a clone has used the dot of before the account arrived is not taken for removed`()
        async throws
    {
        let backend = ScriptedBackend()
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try device.write("mine", 1)
        let shared = device.database.origin
        let change = change(byCloneOf: shared)
        await backend.change { $0.changes = ["app": change] }
        try await device.syncNow()
        #expect(device.database.origin != shared)
        #expect(try device.value("mine") == 1)
        #expect(try device.value("theirs") == 2)
    }

    @Test func `whoever waits for an upload that a forgotten store interrupts waits until what is pending is uploaded`()
        async throws
    {
        let backend = ScriptedBackend()
        await backend.change { $0.holdsPush = true }
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await device.syncNow()
        try device.database.store("other").stage(setting: [(Key(unchecked: "x"), .integer(1))], removing: [])
        try device.database.commit()
        try device.write("k", 1)
        await backend.hold()
        let upload = device.startSyncNow()
        await backend.someoneWaits()
        _ = try device.database.forget(store: "other")
        await backend.letGo()
        #expect(await upload.value == nil)
        #expect(try device.store().pendingChanges == 0)
        #expect(await backend.uploads["app"]?.entries[Key(unchecked: "k")]?.value == Value.integer(1).encoded())
    }

    @Test func `a device that was forgotten, and of which nothing is left, has no entry after the next upload`()
        async throws
    {
        let backend = ScriptedBackend()
        await backend.change { $0.changes = ["@devices": listed(["B": 5])] }
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await device.syncNow()
        #expect(Set(try device.sync.listDevices().map(\.identifier)) == ["B", "d"])
        #expect(try device.sync.forget(device: "B"))
        try await device.syncNow()
        #expect(try device.sync.listDevices().map(\.identifier) == ["d"])
        #expect(try device.database.store("@devices").values.map(\.key.string) == ["d"])
    }

    /// Signs in to an account in which the device B has written under an origin.
    private func signIn(to backend: ScriptedBackend, besides origin: Origin) async throws {
        await backend.change {
            $0.changes = ["@devices": listed(["B": 5])]
            $0.devices = [origin: RemoteDevice(identifier: "B", name: "B")]
        }
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await device.syncNow()
    }

    @Test func `the entry of a device that was forgotten goes after what it left, without a restart`() async throws {
        let (backend, origin) = (ScriptedBackend(), Origin(bits: 98))
        try await signIn(to: backend, besides: origin)
        #expect(try device.sync.forget(device: "B"))
        try await device.syncNow()
        #expect(Set(try device.database.store("@devices").values.map(\.key.string)) == ["B", "d"])
        await backend.change { ($0.changes, $0.devices) = ([:], [:]) }
        try device.write("k", 1)
        try await device.syncNow()
        #expect(try device.database.store("@devices").values.map(\.key.string) == ["d"])
        #expect(device.sync.devices.identifier(of: origin) == "B", "what it wrote is still there")
    }

    @Test func `what this device wrote under an earlier origin is known as its own`() throws {
        try device.write("k", 1)
        try device.database.origins.willPublish()
        let origin = device.database.origin
        #expect(try device.database.leaveOrigins(among: [origin]))
        #expect(device.database.origin != origin && device.sync.devices.identifier(of: origin) == "d")
        #expect(device.sync.devices.identifier(of: Origin(bits: 5)) == nil)
    }

    @Test func `parts that only a device lacks are an error until it is removed from the list`() async throws {
        let (backend, origin) = (ScriptedBackend(), Origin(bits: 98))
        try await signIn(to: backend, besides: origin)
        await backend.change { ($0.isComplete, $0.lackingOrigins) = (false, [origin]) }
        await #expect(throws: RemoteError.self) { try await device.syncNow() }
        #expect(device.sync.lastError?.code == .unavailable && device.sync.state == .idle)
        #expect(try device.sync.forget(device: "B"))
        try await device.syncNow()
        #expect(device.sync.lastError == nil && !device.sync.hasReadAll)
        await backend.change { $0.lackingOrigins = [origin, Origin(bits: 97)] }
        await #expect(throws: RemoteError.self) { try await device.syncNow() }
    }

    @Test func `where there are more devices than a store has keys the one that was away for longest is not listed`()
        async throws
    {
        let backend = ScriptedBackend()
        let others = Dictionary(uniqueKeysWithValues: (1...1024).map { ("device \($0)", Int64($0)) })
        await backend.change { $0.changes = ["@devices": listed(others)] }
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await device.syncNow()
        let store = try device.database.store("@devices")
        #expect(store.values.count == 1024)
        #expect(store.value(for: Key(unchecked: "d")) != nil)
        #expect(store.value(for: Key(unchecked: "device 1")) == nil)
    }
}

/// Returns a change of the device list, with the times when the devices were last seen.
private func listed(_ devices: [String: Int64]) -> RemoteChange {
    var state = StoreState()
    for (index, (name, time)) in devices.sorted(by: { $0.key < $1.key }).enumerated() {
        let stamp = Stamp(isProvisional: false, wall: 1, counter: 0, origin: Origin(bits: 98))
        let value = Value.dictionary(["name": .string(Text(name)), "last-seen": .integer(time)])
        state.entries[Key(unchecked: name)] = Entry(stamp: stamp, n: UInt64(index + 1), value: value.encoded())
        state.vector.insert(Dot(origin: Origin(bits: 98), n: UInt64(index + 1)))
    }
    return RemoteChange(state: state, isComplete: true)
}
