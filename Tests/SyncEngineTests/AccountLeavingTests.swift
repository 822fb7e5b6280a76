// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Replication
import StoreEngine
import SyncEngine
import Testing

/// Leaving and pausing accounts and stores, and accounts that turn out to be others.
@MainActor
struct AccountLeavingTests {
    private let device = SyncDevice()

    @Test(arguments: ["forgotten", "off"])
    func `a store that leaves the sync while an upload begins stays in the remote as it was`(how: String) async throws {
        let backend = ScriptedBackend()
        let upload = try await device.startHeldUpload(to: backend)
        if how == "off" {
            try device.database.synchronize(store: "app", false)
            try device.write("k", 2)
        } else {
            _ = try device.database.forget(store: "app")
        }
        await backend.letGo()
        _ = await upload.value
        #expect(await backend.uploads["app"] == nil)
    }

    @Test(arguments: ["written here", "received"])
    func `a store that takes part in the sync again is published where the account was published without it`(
        values: String
    ) async throws {
        let former = ScriptedBackend()
        try device.sync.signIn(to: former, as: RemoteAccount(identifier: "A"), bringingValues: false)
        if values == "received" { await former.change { $0.changes = ["app": arriving(["k": 1])] } }
        try await device.syncNow()
        if values == "written here" { try device.write("k", 1) }
        try await device.syncNow()
        try device.database.synchronize(store: "app", false)
        // As after a move to another key, under which nothing is published yet.
        let backend = ScriptedBackend()
        await backend.change { $0.account = RemoteAccount(identifier: "B", aliases: ["A"]) }
        try device.sync.signIn(to: backend, asRestored: RemoteAccount(identifier: "B", aliases: ["A"]))
        try await device.syncNow()
        #expect(await backend.uploads["app"] == nil)
        try device.database.synchronize(store: "app", true)
        try await device.syncNow()
        #expect(await backend.uploads["app"]?.entries.count == 1)
    }

    @Test(arguments: [true, false])
    func `that what was uploaded is gone from the remote is known to the next process`(isReset: Bool) async throws {
        let backend = ScriptedBackend()
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try device.write("k", 1)
        try await device.syncNow()
        #expect(try device.database.summaries.pendingChanges() == 0 && device.sync.lastPush > 0)
        let failure = isReset ? RemoteError(.reset, "The account is gone.") : RemoteError(.full, "No space is left.")
        await backend.change {
            $0.ownPublication = .missing
            if isReset { $0.failure = failure } else { $0.pushFailure = failure }
        }
        await #expect(throws: failure) { try await device.syncNow() }
        try device.restart(with: ScriptedBackend())
        #expect(try device.database.summaries.pendingChanges() == 1 && device.sync.lastPush == 0)
        try await device.syncNow()
        #expect(try device.database.summaries.pendingChanges() == 0 && device.sync.lastPush > 0)
    }

    @Test func `an upload that the remote does not keep counts as pending`() async throws {
        let backend = ScriptedBackend()
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try device.write("k", 1)
        try await device.syncAndVerify()
        #expect(try device.database.summaries.pendingChanges() == 0 && device.sync.lastPush > 0)
        await backend.change { $0.ownPublication = .missing }
        await #expect(throws: RemoteError.self) { try await device.syncAndVerify() }
        #expect(try device.database.summaries.pendingChanges() == 1 && device.sync.lastPush == 0)
    }

    @Test(arguments: [Set(["A"]), []])
    func `an account that was left under a key is found under another one that came after the same account`(
        formerNames: Set<String>
    ) async throws {
        try device.sync.signIn(to: ScriptedBackend(), as: RemoteAccount(identifier: "A"), bringingValues: false)
        try device.write("before", 1)
        try await device.syncNow()
        let own = ScriptedBackend()
        await own.change { $0.account = RemoteAccount(identifier: "K1", aliases: ["A"]) }
        try device.sync.signIn(to: own, asRestored: RemoteAccount(identifier: "K1", aliases: ["A"]))
        try device.write("published", 1)
        try await device.syncNow()
        try device.sync.signOut(keepingValues: true)
        try device.write("pending", 1)
        // Without proof it is another account, even if it has the identifier that this one had.
        let remote = RemoteAccount(identifier: formerNames.isEmpty ? "A" : "K2", formerNames: formerNames)
        let other = ScriptedBackend()
        await other.change { $0.account = remote }
        try device.sync.signIn(to: other, as: remote, bringingValues: false)
        try await device.syncNow()
        #expect(await other.uploads["app"]?.entries.count == (formerNames.isEmpty ? nil : 3))
        #expect(try device.value("pending") == (formerNames.isEmpty ? nil : 1))
    }

    /// Anybody who can write to a remote can put a marker without a key there, under any name.
    @Test func `what was under a key is not joined by its name in an account without one`() async throws {
        let sealed = RemoteAccount(encrypted: "K", aliases: [])
        let own = ScriptedBackend()
        await own.change { $0.account = sealed }
        try device.sync.signIn(to: own, as: sealed, bringingValues: false)
        try device.write("secret", 1)
        try await device.syncNow()
        let plain = ScriptedBackend()
        await plain.change { $0.account = RemoteAccount(identifier: "P") }
        try device.sync.signIn(to: plain, as: RemoteAccount(identifier: "P"), bringingValues: false)
        try await device.syncNow()
        await plain.change { $0.account = RemoteAccount(identifier: "K", aliases: ["P"]) }
        try await device.syncNow()
        #expect(await plain.uploads["app"] == nil)
        #expect(try device.database.account.identifier == "P" && device.value("secret") == nil)
        let error = #expect(throws: RemoteError.self) {
            try device.sync.signIn(to: plain, as: RemoteAccount(identifier: "K"), bringingValues: false)
        }
        #expect(error?.code == .unencrypted)
        let both = RemoteAccount(identifier: "K", aliases: ["P"])
        try device.sync.signIn(to: plain, as: both, bringingValues: false)
        #expect(try device.database.account.identifier == "P" && device.value("secret") == nil)
        try device.sync.signIn(to: own, as: sealed, bringingValues: false)
        try await device.syncNow()
        #expect(try device.value("secret") == 1)
    }

    /// Whoever has a stolen key can say that the account's present name was one from before it.
    @Test func `an account is no earlier form of a name that it has left`() async throws {
        let accounts = [("K2", Set(["K1"])), ("K1", ["K2"])].map { name, formerNames in
            var account = RemoteAccount(identifier: name, formerNames: formerNames)
            account.isEncrypted = true
            return account
        }
        let own = ScriptedBackend()
        await own.change { $0.account = accounts[0] }
        try device.sync.signIn(to: own, as: accounts[0], bringingValues: false)
        try await device.syncNow()
        try device.write("secret", 1)
        try device.sync.signOut(keepingValues: true)
        let stolen = ScriptedBackend()
        await stolen.change { $0.account = accounts[1] }
        try device.sync.signIn(to: stolen, as: accounts[1], bringingValues: false)
        try await device.syncNow()
        #expect(await stolen.uploads["app"] == nil)
        #expect(try device.value("secret") == nil)
    }

    @Test func `whoever waits is told at once that the account is paused, and nothing more happens`() async throws {
        let backend = ScriptedBackend()
        let waiting = try await device.startHeldUpload(to: backend)
        device.sync.setPaused(true)
        #expect(await waiting.value?.code == .unavailable)
        await backend.letGo()
        #expect(await device.startSyncNow().value?.code == .unavailable)
        #expect(device.sync.state == .paused && device.sync.nextCycle == nil)
        #expect(await backend.uploads["app"] == nil)
        device.sync.setPaused(false)
        try await device.syncNow()
        #expect(await backend.uploads["app"] != nil)
        #expect(try device.store().pendingChanges == 0)
    }

    @Test func `whoever hears that the account is signed out was told of each value that went with it`() async throws {
        let backend = ScriptedBackend()
        await backend.change { $0.changes = ["app": arriving(["k": 1])] }
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await device.syncNow()
        // Only a store that is in use reports changes.
        let store = try device.store()
        var toldBefore: [String] = []
        device.sync.host.onStateChange = { [device] in toldBefore = device.notices }
        try device.sync.signOut(keepingValues: false)
        #expect(store.values.isEmpty)
        #expect(toldBefore == ["initialSyncChange k", "accountChange k"])
    }

    @Test func `what this device has of an account under another name is no news of the remote before that arrives`()
        async throws
    {
        let store = try device.store()
        for (account, value) in [("A", Int64(1)), ("B", 2)] {
            let backend = ScriptedBackend()
            await backend.change {
                $0.account = RemoteAccount(identifier: account)
                $0.changes = ["app": arriving(["k": value])]
            }
            try device.sync.signIn(to: backend, as: RemoteAccount(identifier: account), bringingValues: false)
            try await device.syncNow()
        }
        let backend = ScriptedBackend()
        await backend.change {
            $0.account = RemoteAccount(identifier: "A", aliases: ["C"])
            $0.isComplete = false
        }
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "C"), bringingValues: false)
        await #expect(throws: RemoteError.self) { try await device.syncNow() }
        #expect(!store.isDownloaded)
        #expect(device.notices == ["initialSyncChange k", "accountChange k", "accountChange k"])
        #expect(try device.value("k") == 1)
    }

    @Test func `a remote that was reset is looked at again by whoever asks, and only then`() async throws {
        let backend = ScriptedBackend()
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await device.syncNow()
        await backend.change { $0.failure = RemoteError(.reset, "gone") }
        #expect(await device.startSyncNow().value?.code == .reset)
        #expect(device.sync.isReset && device.sync.nextCycle == nil)
        await backend.change { $0.failure = nil }
        device.sync.noteHint()
        await device.startCycle().value
        #expect(device.sync.isReset)
        try await device.syncNow()
        #expect(device.sync.state == .idle && device.sync.lastError == nil)
    }

    @Test func `values that are brought along are told as a switch of the account, once`() async throws {
        try device.sync.signIn(to: ScriptedBackend(), as: RemoteAccount(identifier: "A"), bringingValues: false)
        try await device.syncNow()
        try device.write("k", 1)
        let other = ScriptedBackend()
        await other.change { $0.account = RemoteAccount(identifier: "B") }
        let remote = RemoteAccount(identifier: "B", isNew: true)
        let told = device.notices.count
        try device.sync.signIn(to: other, as: remote, bringingValues: true)
        try await device.syncNow()
        #expect(device.notices.dropFirst(told) == ["accountChange "])
        #expect(try device.value("k") == 1)
    }

    /// Signs in to an account that is in a remote, and syncs.
    private func signIn(to account: String) async throws -> ScriptedBackend {
        let backend = ScriptedBackend()
        await backend.change { $0.account = RemoteAccount(identifier: account) }
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: account), bringingValues: false)
        try await device.syncNow()
        return backend
    }

    @Test func `what is pending in an excluded store outlasts the account's new name`() async throws {
        let backend = ScriptedBackend()
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try device.write("changed", 1)
        try device.write("removed", 1)
        try await device.syncNow()
        let published = try #require(await backend.uploads["app"])
        try device.database.synchronize(store: "app", false)
        try device.write("changed", 2)
        try device.store().stage(setting: [], removing: [Key(unchecked: "removed")])
        try device.database.commit()
        // While the user is in another account, another device gives this one a new name, as with a move to a key.
        _ = try await signIn(to: "B")
        let next = ScriptedBackend()
        let renamed = RemoteAccount(identifier: "K", aliases: ["A"])
        await next.change {
            ($0.account, $0.changes) = (renamed, ["app": RemoteChange(state: published, isComplete: true)])
        }
        try device.sync.signIn(to: next, as: renamed, bringingValues: false)
        try await device.syncNow()
        try device.database.synchronize(store: "app", true)
        try await device.syncNow()
        #expect(try device.store().values == [Key(unchecked: "changed"): .integer(2)])
        #expect(await next.uploads["app"]?.entries[Key(unchecked: "removed")].map { $0.value == nil } == true)
    }

    @Test func `what the remote has lost of an account that turns out to be this one is not lost here`() async throws {
        let backend = ScriptedBackend()
        try device.sync.signIn(to: backend, as: RemoteAccount(identifier: "A"), bringingValues: false)
        try device.write("published", 1)
        try device.write("removed", 1)
        try await device.syncNow()
        try device.write("pending", 1)
        try device.store().stage(setting: [], removing: [Key(unchecked: "removed")])
        try device.database.commit()
        // The user switches to the account in the remote, and another device restores the first account beside it.
        let next = try await signIn(to: "B")
        #expect(try device.store().values.isEmpty)
        await next.change { $0.account = RemoteAccount(identifier: "A", aliases: ["B"]) }
        try await device.syncNow()
        #expect(try device.value("published") == 1)
        #expect(try device.value("pending") == 1)
        #expect(device.notices.last == "serverChange pending published")
        let uploaded = await next.uploads["app"]
        #expect(uploaded?.entries[Key(unchecked: "removed")].map { $0.value == nil } == true)
        #expect(uploaded?.entries.count == 3)
        #expect(device.database.account.identifier == "A")
    }
}
