// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Replication
import StoreEngine
import SyncEngine
import Testing

/// What an account does by itself, what it passes on, and how it reports problems.
@MainActor
struct AccountDailyTests {
    private let device = SyncDevice()
    private let backend = ScriptedBackend()
    private static let day: UInt64 = 86_400_000_000

    private func join() async throws {
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await device.syncNow()
    }

    /// Runs a cycle as after a hint.
    private func look() async {
        device.sync.noteHint()
        await device.startCycle().value
    }

    @Test func `what a device has only received is uploaded a day later, and not before`() async throws {
        try await join()
        let first = device.sync.lastPush
        #expect(first > 0)
        await backend.change { $0.changes = ["app": arriving(["theirs": 1])] }
        await look()
        #expect(try device.value("theirs") == 1)
        device.later.move(by: Self.day - 3_600_000_000)
        await look()
        #expect(device.sync.lastPush == first)
        #expect(await backend.uploads["app"] == nil)
        device.later.move(by: 3_600_000_000)
        await look()
        #expect(device.sync.lastPush > first)
        #expect(await backend.uploads["app"]?.entries.count == 1)
    }

    @Test func `garbage is collected once a day, and when a device was forgotten`() async throws {
        try await join()
        #expect(await backend.garbageCollections.count == 1)
        for _ in 0..<3 { try await device.syncNow() }
        #expect(await backend.garbageCollections.count == 1)
        device.later.move(by: Self.day)
        await look()
        #expect(await backend.garbageCollections.count == 2)
    }

    @Test func `what nobody may be shown is joined, told to nobody, and passed on as it came`() async throws {
        let (hidden, local, bad) = (Key(unchecked: "hidden"), Key(unchecked: "local"), Key(unchecked: "bad\u{0}key"))
        var state = arriving(["k": 1, "local": 2]).states.state
        for (n, key) in [(8, hidden), (9, bad)] {
            let stamp = Stamp(isProvisional: false, wall: 1, counter: 9, origin: Origin(bits: 99))
            state.entries[key] = Entry(stamp: stamp, n: UInt64(n), value: [0xFF, 0xFF])
            state.vector.insert(Dot(origin: stamp.origin, n: UInt64(n)))
        }
        let change = RemoteChange(state: state, isComplete: true)
        await backend.change { $0.changes = ["app": change] }
        device.sync.host.localKeys = { _ in LocalKeys(["local"]) }
        let store = try device.database.store("app", localKeys: LocalKeys(["local"]))
        try await join()
        #expect(device.notices == ["initialSyncChange k"])
        try device.write("mine", 1)
        try await device.syncNow()
        #expect(Set(store.values.keys.map(\.string)) == ["k", "mine"])
        let uploaded = await backend.uploads["app"]
        for key in [hidden, local, bad] { #expect(uploaded?.entries[key] == state.entries[key]) }
        #expect(uploaded?.vector.isSuperset(of: state.vector) == true)
    }

    @Test func `what a pull finds damaged as it reads a store is said, and goes once it is repaired`() async throws {
        try await join()
        await backend.change {
            $0.changes = ["app": arriving(["theirs": 1], isComplete: false), "other": arriving(["k": 1])]
            $0.flaws = ["app": "The file s/1 is damaged."]
            $0.isComplete = false
        }
        for _ in 0..<2 {
            await look()
            #expect(device.sync.state == .idle)
            #expect(device.sync.lastError == RemoteError(.damaged, "The file s/1 is damaged."))
        }
        #expect(try device.database.store("other").values.count == 1)
        await backend.change { $0.problems = ["The file h/1 is damaged."] }
        await look()
        #expect(device.sync.lastError?.message == "The file h/1 is damaged.", "what was found first is kept")
        await backend.change { ($0.problems, $0.flaws, $0.isComplete) = ([], [:], true) }
        await look()
        #expect(device.sync.state == .idle && device.sync.lastError == nil)
    }

    @Test func `entries that break the rules are named as long as they are there, after a restart as well`()
        async throws
    {
        func said(_ count: Int) -> RemoteError {
            RemoteError(
                .damaged,
                "The store app holds entries that break the rules for keys and values (\(count)). They are kept "
                    + "and passed on to other devices, but hidden from apps.")
        }
        var state = arriving(["k": 1]).states.state
        for n: UInt64 in [7, 8, 9] {
            let stamp = Stamp(isProvisional: false, wall: 1, counter: 9, origin: Origin(bits: 99))
            state.entries[Key(unchecked: n == 7 ? "" : "bad \(n)")] = Entry(stamp: stamp, n: n, value: [0xFF])
            state.vector.insert(Dot(origin: stamp.origin, n: n))
        }
        let change = RemoteChange(state: state, isComplete: true)
        await backend.change { $0.changes = ["app": change, "other": arriving(["k": 1])] }
        try await join()
        #expect(device.sync.state == .idle && device.sync.lastError == said(3))
        #expect(try device.database.store("other").isDownloaded)
        await backend.change { $0.changes = [:] }
        await look()
        #expect(device.sync.lastError == said(3), "nothing new has come, and they are still there")
        try device.restart(with: backend)
        await look()
        #expect(device.sync.lastError == said(3))
        try device.write("bad 8", 1)
        try await device.syncNow()
        #expect(device.sync.lastError == said(2), "one of them was replaced here")
        state.entries = state.entries.filter { $0.key.string == "k" }
        let rest = RemoteChange(state: state, isComplete: true)
        await backend.change { $0.changes = ["app": rest] }
        await look()
        #expect(device.sync.lastError == nil, "the others were removed elsewhere")
        #expect(try device.value("k") == 1)
    }

    @Test func `garbage is collected in the remote of another account without a day's wait`() async throws {
        try await join()
        let other = ScriptedBackend()
        await other.change { $0.account = RemoteAccount(identifier: "B") }
        try device.sync.signIn(to: other, as: RemoteAccount(identifier: "B"), bringingValues: false)
        try await device.syncNow()
        try await device.syncNow()
        #expect(await other.garbageCollections.count == 1)
    }

    @Test(arguments: [
        (RemoteError.Code.unauthorized, AccountSync.State.authFailed), (.denied, .error), (.full, .error),
        (.tooNew, .error), (.damaged, .error), (.unavailable, .offline),
    ])
    func `each failure has its state, is tried again, and is over with the next success`(
        code: RemoteError.Code, state: AccountSync.State
    ) async throws {
        try await join()
        let failure = RemoteError(code, "a sentence")
        await backend.change { $0.failure = failure }
        #expect(await device.startSyncNow().value == failure)
        #expect(device.sync.state == state && device.sync.lastError == failure)
        #expect(device.sync.nextAttempt != nil && !device.sync.isUploading)
        await backend.change { $0.failure = nil }
        try await device.syncNow()
        #expect(device.sync.state == .idle && device.sync.lastError == nil && device.sync.nextAttempt == nil)
    }

    @Test func `a refused password is tried again an hour later, or when somebody asks, and not before`() async throws {
        try await join()
        await backend.change { $0.failure = RemoteError(.unauthorized, "a sentence") }
        for attempt in 1...2 {
            let before = device.monotonicTime
            #expect(await device.startSyncNow().value?.code == .unauthorized)
            let pulls = await backend.counts.count
            device.sync.noteNetwork()
            device.sync.noteHint()
            device.sync.hasSubscribers = attempt == 1
            try device.write("k", Int64(attempt))
            device.sync.hasten()
            let next = try #require(device.sync.nextCycle)
            #expect(next >= before + 3_600_000_000 && next == device.sync.nextAttempt)
            await device.startCycle().value
            #expect(await backend.counts.count == pulls)
        }
        await backend.change { $0.failure = nil }
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        await device.startCycle().value
        #expect(device.sync.state == .idle)
    }

    @Test func `a refused password is tried at once for somebody who asks, once a minute, and never for an app`()
        async throws
    {
        try await join()
        let refusal = RemoteError(.unauthorized, "a sentence")
        await backend.change { $0.failure = refusal }
        #expect(await device.startSyncNow(for: .app).value == refusal, "it isn't known yet")
        let pulls = await backend.counts.count
        #expect(await device.startSyncNow(for: .app).value == refusal)
        #expect(await backend.counts.count == pulls)
        #expect(await device.startSyncNow(for: .program).value == refusal)
        #expect(await backend.counts.count == pulls + 1)
        for _ in 1...3 {
            #expect(await device.startSyncNow(for: .program).value == refusal)
            device.sync.setPaused(true)
            device.sync.setPaused(false)
            await device.startCycle().value
        }
        #expect(await backend.counts.count == pulls + 1)
        #expect(device.sync.state == .authFailed && device.sync.lastError == refusal)
        await backend.change { $0.failure = nil }
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        #expect(await device.startSyncNow(for: .app).value == nil)
    }
}
