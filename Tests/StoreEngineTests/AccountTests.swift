// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Replication
import StoreEngine
import Testing

@Suite struct AccountTests {
    let device: Device
    var database: UserDatabase { device.database }

    init() throws { device = try Device() }

    @discardableResult
    private func enter(_ account: String, bringing: Bool = false) throws -> [String: [String]] {
        let changes = try database.enter(account: account, bringingValues: bringing)
        return Dictionary(uniqueKeysWithValues: changes.map { ($0.store.identifier, $0.keys.map(\.string)) })
    }

    /// Joins entries and completes the first download, as the sync engine does.
    @discardableResult
    private func arrive(_ entries: [String: Entry] = [:], cursor: UInt8 = 1) throws -> VisibleChange {
        let change = try device.join(Stranger().plan(entries, in: device.store()), cause: .downloaded)
        try database.progress.completeDownload(cursor: [cursor])
        return change
    }

    private func visible(_ identifier: String = "app") throws -> [String: Value] {
        let values = try device.store(identifier).values
        return Dictionary(uniqueKeysWithValues: values.map { ($0.key.string, $0.value) })
    }

    // MARK: The first sign-in

    @Test func `what was written before the first sign-in becomes provisional, with fresh dots and no tombstones`()
        throws
    {
        try device.write([("kept", .integer(1)), ("removed", .integer(1))])
        try device.write(removing: ["removed"])
        let first = database.origin
        try device.reopen(runtime: false)
        try device.write([("later", .integer(2))])
        let store = try device.store()
        #expect(!database.hasAccount && !store.isDownloaded)
        #expect(try enter("A") == ["app": []])
        #expect(try visible() == ["kept": .integer(1), "later": .integer(2)])
        let origin = database.origin

        // The origin was not recorded, so a restart takes another one, under which go the writes not yet uploaded.
        let reopened = try reopenedStore()
        for (store, origin) in [(store, origin), (reopened, database.origin)] {
            let state = store.snapshot().state
            #expect(Set(state.entries.keys) == [key("kept"), key("later")])
            for (key, entry) in state.entries {
                #expect(entry.stamp.isProvisional && entry.stamp.origin == origin)
                #expect(store.isProvisionalHere(key))
                #expect(state.vector.contains(entry.dot))
            }
            #expect(state.vector[first] == 0)
            #expect(Set(state.entries.values.map(\.n)).count == 2)
            #expect(store.pendingChanges == 2)
        }
        #expect(try database.summaries.pendingChanges() == 2)
    }

    private func reopenedStore() throws -> Store {
        try device.reopen()
        return try device.store()
    }

    @Test func `the local values never travel`() throws {
        let store = try device.store(local: ["local"])
        try device.write([("local", .integer(1)), ("k", .integer(1))])
        try enter("A")
        #expect(store.value(for: key("local")) == .integer(1))
        try enter("B")
        try database.progress.completeDownload(cursor: [1])
        #expect(try database.clearAccount().first?.keys == [])
        #expect(store.value(for: key("local")) == .integer(1))
        #expect(store.snapshot().state.entries[key("local")] == nil)
    }

    @Test func `identifiers that mean this device's own values are no accounts`() throws {
        let store = try device.store(local: ["local"])
        try device.write([("local", .integer(1))])
        #expect(throws: EngineError.self) { try enter("device") }
        #expect(!database.hasAccount)
        try enter("A")
        #expect(throws: EngineError.self) { try database.rename(accountTo: "device") }
        #expect(throws: EngineError.self) { try database.rename(accountTo: "") }
        #expect(throws: EngineError.self) { try enter("") }
        #expect(database.account.identifier == "A")
        #expect(store.snapshot().state.entries.isEmpty)
    }

    @Test func `entering the account that is current changes nothing`() throws {
        try enter("A")
        try device.write([("k", .integer(1))])
        let before = Picture(try device.store())
        #expect(try enter("A").isEmpty)
        #expect(Picture(try device.store()) == before)
    }

    @Test func `after the first download the account's value wins and the rest goes up`() throws {
        let store = try device.store()
        try device.write([("both", .integer(1)), ("deleted", .integer(1)), ("mine", .integer(1))])
        try enter("A")
        var stranger = Stranger()
        let change = try arrive(["both": stranger.entry(.integer(2), wall: 1), "deleted": stranger.entry(nil, wall: 1)])
        #expect(change.keys == [key("both"), key("deleted")])
        #expect(change.origins == [stranger.origin])
        #expect(try visible() == ["both": .integer(2), "mine": .integer(1)])
        #expect(store.isDownloaded && store.pendingChanges == 1)
    }

    // MARK: Another account

    @Test func `a value that is still shown of the account before is written, too`() throws {
        let store = try device.store()
        try enter("A")
        try device.write([("same", .integer(1)), ("other", .integer(1))])
        try arrive()
        try enter("B")
        let changed = try store.stage(
            setting: [(key("same"), .integer(1)), (key("other"), .integer(2))], removing: [])
        try device.database.commit()
        #expect(changed == [key("other")])
        #expect(try store.stage(setting: [(key("same"), .integer(1))], removing: []).isEmpty)
        try arrive()
        #expect(try visible() == ["same": .integer(1), "other": .integer(2)])
    }

    @Test func `the values of the account before are shown until those of the new one have arrived`() throws {
        let store = try device.store()
        try enter("A")
        try device.write([("a", .integer(1)), ("both", .integer(1))])
        try arrive()
        #expect(try enter("B") == ["app": []])
        #expect(store.hasPreviousValues && !store.isDownloaded)
        #expect(try visible() == ["a": .integer(1), "both": .integer(1)])
        #expect(store.usage.keys == 0 && store.snapshot().state == StoreState())

        try device.write([("written", .integer(2))], removing: ["a"])
        #expect(try visible() == ["both": .integer(1), "written": .integer(2)])
        #expect(Set(store.snapshot().state.entries.keys) == [key("written"), key("a")])
        try device.reopen()
        #expect(try visible() == ["both": .integer(1), "written": .integer(2)])

        let again = try device.store()
        let generation = again.generation
        var stranger = Stranger()
        let change = try arrive(["new": stranger.entry(.integer(3))])
        #expect(change.keys == [key("both"), key("new")])
        #expect(try visible() == ["written": .integer(2), "new": .integer(3)])
        #expect(again.generation > generation && !again.knowsChanges(since: generation))
        #expect(!again.hasPreviousValues)
        let shown = again.generation
        try device.reopen()
        #expect(try visible() == ["written": .integer(2), "new": .integer(3)])
        #expect(try device.store().generation >= shown)
        #expect(try !device.store().knowsChanges(since: generation))
    }

    @Test func `a store that nobody opens while the account changes has a new generation all the same`() throws {
        try enter("A")
        try device.write([("k", .integer(1))])
        try arrive()
        let before = try device.store().generation
        try enter("B")
        let meanwhile = try device.store().generation
        #expect(try visible() == ["k": .integer(1)])
        #expect(database.loadedStore("app") == nil)
        try database.progress.completeDownload(cursor: [1])
        #expect(try visible().isEmpty)
        #expect(try device.store().generation > meanwhile && meanwhile > before)
        #expect(try !device.store().knowsChanges(since: meanwhile))
    }

    @Test func `writes to keys that stay on the device count when the account changes`() throws {
        try enter("A")
        try device.write([("shared", .integer(1))])
        try arrive()
        let store = try device.store(local: ["here"])
        for number in 0..<9 { try device.write([("here", .integer(Int64(number)))]) }
        let generation = store.generation
        try enter("B")
        try database.progress.completeDownload(cursor: [1])
        #expect(store.generation > generation && !store.knowsChanges(since: generation))
        _ = try database.clearAccount()
        #expect(!store.knowsChanges(since: generation))
    }

    @Test func `a store that is open when the download ends without a word of it has arrived`() throws {
        try enter("A")
        try device.write([("k", .integer(1))])
        try arrive()
        try enter("B")
        let store = try device.store()
        let generation = store.generation
        let changes = try database.progress.completeDownload(cursor: [1])
        #expect(changes.map(\.keys) == [[key("k")]])
        #expect(store.isDownloaded && !store.hasPreviousValues && store.values.isEmpty)
        #expect(store.generation > generation)
        try device.write([("k", .integer(2))])
        #expect(store.version(of: key("k"))?.stamp.isProvisional == false)
    }

    @Test func `back to an account, its pending writes are still pending`() throws {
        try enter("A")
        try device.write([("k", .integer(1))])
        try arrive()
        try database.progress.markPublished(["app": device.store().snapshot().sequence], under: database.origin)
        try device.write([("pending", .integer(1))])
        let state = try device.store().snapshot().state
        try enter("B")
        try arrive(cursor: 9)
        #expect(try database.summaries.pendingChanges() == 0)
        try device.reopen()
        let changes = try enter("A")
        #expect(changes.isEmpty)
        #expect(try device.store().snapshot().state == state)
        #expect(try device.store().pendingChanges == 1 && database.summaries.pendingChanges() == 1)
        #expect(database.account.cursor == [1])
        #expect(try device.store().isDownloaded)
        #expect(try visible() == ["k": .integer(1), "pending": .integer(1)])
    }

    @Test func `an acknowledgement counts for the current account only`() throws {
        try enter("A")
        try device.write([("k", .integer(1))])
        try enter("B")
        try database.progress.markPublished(["app": 100], under: database.origin)
        try enter("A")
        #expect(try database.summaries.pendingChanges() == 1)
    }

    @Test func `brought values are in the new account, and stay in the one before`() throws {
        let store = try device.store()
        try enter("A")
        var stranger = Stranger()
        try device.write([("k", .integer(1)), ("gone", .integer(1))])
        try arrive(["theirs": stranger.entry(.integer(2)), "invisible": stranger.entry(nil)])
        try device.write(removing: ["gone"])
        let vector = store.vector
        let state = store.snapshot().state
        #expect(try enter("B", bringing: true) == ["app": []])
        for store in [store, try reopenedStore()] {
            // This is a switch of accounts all the same, and is reported as one.
            #expect(store.hasPreviousValues)
            #expect(try visible() == ["k": .integer(1), "theirs": .integer(2)])
            let brought = store.snapshot().state
            #expect(Set(brought.entries.keys) == [key("k"), key("theirs")])
            #expect(brought.entries.values.allSatisfy { $0.stamp.origin == database.origin && $0.stamp.isProvisional })
            #expect(brought.vector[stranger.origin] == 0)
            #expect(store.pendingChanges == 2)
            #expect(store.usage.keys == 2)
        }
        try enter("A")
        #expect(try device.store().snapshot().state == state)
        #expect(try device.store().vector == vector)
    }

    @Test func `values are brought together with the sign-in or not at all`() throws {
        let store = try device.store()
        try enter("A")
        try device.write([("k", .integer(1))])
        try arrive()
        try device.sql("CREATE TRIGGER refusal BEFORE INSERT ON change BEGIN SELECT RAISE(ABORT, 'refused'); END")
        let before = Picture(store)
        #expect(throws: EngineError.self) { try enter("B", bringing: true) }
        #expect(database.account.identifier == "A")
        #expect(Picture(store) == before)
        try device.reopen()
        #expect(database.account.identifier == "A")
        #expect(Picture(try device.store()) == before)
    }

    @Test func `stores that are made after values were brought have replicas of their own`() throws {
        try enter("A")
        for name in ["one", "two"] { try device.write([("k", .string(Text(name)))], to: name) }
        try device.reopen()
        try enter("B", bringing: true)
        try device.write([("k", .string("three"))], to: "three")
        try device.write([("k", .string("four"))], to: "four")
        try device.reopen()
        for name in ["one", "two", "three", "four"] {
            #expect(try visible(name) == ["k": .string(Text(name))])
        }
    }

    @Test func `a store that stays here is not taken for downloaded where the account never saw it`() throws {
        try enter("B")
        try arrive()
        try device.write([("k", .integer(1))], to: "other")
        try enter("A")
        try arrive()
        try database.synchronize(store: "off", false)
        try device.write([("k", .integer(1))], to: "off")
        try enter("B")
        #expect(try visible("off") == ["k": .integer(1)])
        try database.synchronize(store: "off", true)
        #expect(try !device.store("off").isDownloaded)
        #expect(try database.progress.publishedStores().map(\.identifier) == ["app", "other"])
        // A write before the account's values have arrived gives way to them.
        try device.write([("k", .integer(2))], to: "off")
        #expect(try device.store("off").isProvisionalHere(key("k")))
    }

    @Test func `a store that is to stay here keeps what it shows of the account before`() throws {
        try enter("A")
        try device.write([("k", .integer(1)), ("gone", .integer(1))])
        try arrive()
        try enter("B")
        try device.write([("new", .integer(2))], removing: ["gone"])
        try database.synchronize(store: "app", false)
        try database.progress.completeDownload(cursor: [1])
        #expect(try visible() == ["k": .integer(1), "new": .integer(2)])
        try device.reopen()
        #expect(try visible() == ["k": .integer(1), "new": .integer(2)])
    }

    // MARK: Clearing

    @Test func `clearing forgets the account's values and history, and generations go on`() throws {
        let store = try device.store()
        try enter("A")
        try arrive()
        for value in 0..<20 { try device.write([("k", .integer(Int64(value)))]) }
        let (generation, origin) = (store.generation, database.origin)
        let changes = try database.clearAccount()
        #expect(changes.map(\.keys) == [[key("k")]])
        #expect(!database.hasAccount && database.origin != origin)
        #expect(store.values.isEmpty && store.snapshot().state == StoreState())
        #expect(try database.history.values(of: key("k"), in: store).isEmpty)
        #expect(store.generation > generation && !store.knowsChanges(since: generation))
        #expect(!store.knowsChanges(since: generation - 5))
        let cleared = store.generation
        try device.reopen()
        #expect(try device.store().generation == cleared)
        #expect(try !device.store().knowsChanges(since: generation))
        while try device.database.leftovers.removeSome() {}
        #expect(try device.sql("SELECT count(*) FROM change") == [["0"]])
        // When the account is entered again, it is downloaded again.
        try enter("A")
        #expect(!database.account.isDownloaded)
        #expect(try !device.store().isDownloaded)
    }

    @Test func `clearing leaves no history of other accounts, and what waits for them waits on`() throws {
        try enter("A")
        try arrive()
        try device.write([("k", .integer(1))])
        try enter("B")
        try arrive(cursor: 2)
        let store = try device.store()
        #expect(try database.history.values(of: key("k"), in: store).count == 1)
        _ = try database.clearAccount()
        #expect(try database.history.values(of: key("k"), in: store).isEmpty)
        try enter("A")
        #expect(try visible() == ["k": .integer(1)])
        #expect(try database.summaries.pendingChanges() == 1)
    }

    @Test func `what is written after clearing is offered to the next account`() throws {
        try enter("A")
        try arrive()
        try device.write([("k", .integer(1))])
        try enter("B")
        try arrive()
        _ = try database.clearAccount()
        try device.write([("k", .integer(2)), ("new", .integer(3))])
        let store = try device.store()
        try enter("A")
        // Account A has a value of its own for k, which counts, and none for the other key.
        #expect(try visible() == ["k": .integer(1), "new": .integer(3)])
        let entry = try #require(store.entry(for: key("new")))
        #expect(entry.stamp.isProvisional && entry.stamp.origin == database.origin)
        #expect(store.vector.contains(entry.dot))
        #expect(store.pendingChanges == 2)
        try device.reopen()
        #expect(try visible() == ["k": .integer(1), "new": .integer(3)])
    }

    @Test func `an account that could not be left or entered in the database is not left in memory`() throws {
        try enter("A")
        try arrive()
        try device.write([("k", .integer(1))])
        let store = try device.store()
        let before = Picture(store)
        try device.sql("CREATE TRIGGER refusal BEFORE INSERT ON property BEGIN SELECT RAISE(ABORT, 'refused'); END")
        #expect(throws: EngineError.self) { try enter("B") }
        #expect(throws: EngineError.self) { try database.clearAccount() }
        #expect(database.account.identifier == "A" && !store.hasPreviousValues)
        #expect(Picture(store) == before)
        try device.write([("l", .integer(1))])
        try device.reopen()
        #expect(try visible() == ["k": .integer(1), "l": .integer(1)])
    }

    // MARK: Names

    @Test func `an account goes on under its smaller identifier`() throws {
        try enter("B")
        try arrive()
        try device.write([("k", .integer(1))])
        let before = Picture(try device.store())
        try database.rename(accountTo: "A")
        #expect(database.account.identifier == "A" && database.account.cursor == [1])
        #expect(Picture(try device.store()) == before)
        try device.reopen()
        #expect(database.account.identifier == "A")
        #expect(Picture(try device.store()) == before)
    }

    @Test func `however many names a remote shows for an account, few are remembered, and the first ones`() throws {
        try enter("5")
        try arrive()
        for round in 0..<20 {
            try database.rename(accountTo: "5", aliases: Set((0..<100).map { "9-\(round)-\($0)" }))
        }
        try database.rename(accountTo: "4")
        #expect(try database.names.accounts(formerly: ["5"]) == ["4"], "the device's own")
        #expect(try database.names.accounts(formerly: ["9-0-7"]) == ["4"])
        #expect(try database.names.accounts(formerly: ["9-19-7"]) == [])
    }

    @Test func `an account is found by a name that only another device has given it`() throws {
        try enter("A")
        try database.rename(accountTo: "A", aliases: ["A", "B"])
        try device.reopen()
        try enter("C")
        #expect(try database.names.accounts(formerly: ["B"]) == ["A"])
    }

    @Test func `an account that was entered under both of its names is one, and nothing pending is lost`() throws {
        try enter("A")
        try arrive()
        try device.write([("published", .integer(1)), ("both", .integer(1))])
        try database.progress.markPublished(["app": device.store().snapshot().sequence], under: database.origin)
        try device.write([("pending", .integer(1)), ("both", .integer(2))])
        try enter("B")
        try arrive()
        try device.write([("both", .integer(3)), ("mine", .integer(1))])
        let store = try device.store()
        try database.rename(accountTo: "A")
        #expect(database.account.identifier == "A")
        #expect(try visible() == ["both": .integer(3), "mine": .integer(1), "pending": .integer(1)])
        #expect(store.pendingChanges == 3)
        try device.reopen()
        #expect(try visible() == ["both": .integer(3), "mine": .integer(1), "pending": .integer(1)])
        #expect(try device.sql("SELECT count(*) FROM account WHERE id > 0") == [["1"]])
    }

    // MARK: Forgetting a store

    @Test func `a forgotten store is empty, its generation goes on, and once remembered it is downloaded anew`() throws
    {
        try enter("A")
        try arrive()
        try device.write([("k", .integer(1))])
        try device.write([("k", .integer(1))], to: "other")
        try enter("B")
        try arrive(cursor: 2)
        let store = try device.store()
        try device.write([("k", .integer(2))])
        try device.write([("k", .integer(3))])
        let (generation, origin) = (store.generation, database.origin)
        #expect(try database.forget(store: "app") == [key("k")])
        #expect(store.values.isEmpty && store.generation > generation && !store.knowsChanges(since: generation))
        #expect(database.origin != origin)
        #expect(store.isForgotten && !store.isDownloaded && database.account.isDownloaded)
        try database.remember(store: store)
        #expect(!store.isForgotten && !store.isDownloaded)
        #expect(database.account.isDownloaded && database.account.beginsAnew)
        // A write now gives way to the account's values.
        try device.write([("k", .integer(9))])
        #expect(store.isProvisionalHere(key("k")))
        try device.reopen()
        #expect(database.account.beginsAnew)
        #expect(try device.store().generation > generation)
        #expect(try device.store().isProvisionalHere(key("k")))
        #expect(try database.progress.publishedStores().map(\.identifier) == [])
        try enter("A")
        #expect(database.account.beginsAnew)
        #expect(try !device.store().isDownloaded)
        #expect(try device.store("other").isDownloaded)
        #expect(try visible("other") == ["k": .integer(1)])
        #expect(try database.forget(store: "nothing") == nil)
    }

    @Test(arguments: ["forget", "synchronize", "enter", "rename"])
    func `stores that are open go on writing to rows of their own after another one got new rows`(change: String)
        throws
    {
        try enter("A")
        try arrive()
        let identifiers = ["a", "b", "c"]
        let stores = try identifiers.map { try device.store($0, local: ["local"]) }
        defer { withExtendedLifetime(stores) {} }
        for identifier in identifiers { try device.write([("k", .integer(1))], to: identifier) }
        switch change {
        case "forget":
            _ = try database.forget(store: "a", whileInUse: true)
        case "synchronize":
            let untouched = try device.store("d")
            for isOn in [false, true] { try database.synchronize(store: "d", isOn) }
            #expect(!untouched.isDownloaded)
        case "enter": try enter("B")
        default:
            try enter("B")
            try database.rename(accountTo: "0", aliases: ["A"])
        }
        for (number, identifier) in identifiers.enumerated().reversed() {
            try device.write([("local", .integer(Int64(number))), ("k", .integer(2))], to: identifier)
        }
        try device.reopen()
        for (number, identifier) in identifiers.enumerated() {
            let values = try device.store(identifier, local: ["local"]).values
            #expect(values == [key("k"): .integer(2), key("local"): .integer(Int64(number))])
        }
    }

    @Test func `a store that is forgotten while it is in use comes back into use, or nothing changes`() throws {
        try enter("A")
        try arrive()
        let store = try device.store()
        try device.write([("k", .integer(1))])
        let (generation, origin) = (store.generation, database.origin)
        try device.sql(
            """
            CREATE TRIGGER refusal BEFORE UPDATE OF cursor ON account BEGIN SELECT RAISE(ABORT, 'refused'); END
            """)
        #expect(throws: EngineError.self) { try database.forget(store: "app", whileInUse: true) }
        #expect(store.values == [key("k"): .integer(1)] && !store.isForgotten && database.origin == origin)
        try device.sql("DROP TRIGGER refusal")
        #expect(try database.forget(store: "app", whileInUse: true) == [key("k")])
        #expect(store.values.isEmpty && store.generation > generation && database.origin != origin)
        #expect(!store.isForgotten && !store.isDownloaded && database.account.beginsAnew)
        try device.write([("k", .integer(9))])
        #expect(store.isProvisionalHere(key("k")))
        try device.reopen()
        #expect(try database.account.beginsAnew && device.store().isProvisionalHere(key("k")))
    }

    @Test func `a write that waits for its commit when its store is forgotten is forgotten with it`() throws {
        let store = try device.store()
        try device.write([("k", .integer(1))])
        try store.stage(setting: [(key("late"), .integer(2))], removing: [])
        #expect(try database.forget(store: "app") == [key("k"), key("late")])
        try database.commit()
        try device.reopen()
        #expect(try visible().isEmpty)
        while try device.database.leftovers.removeSome() {}
        #expect(try device.sql("SELECT count(*) FROM change") == [["0"]])
    }

    // MARK: Crashes between the steps

    @Test func `a crash after the arrival and before its cursor leaves what the same steps complete`() throws {
        try device.write([("mine", .integer(1))])
        try enter("A")
        try device.reopen()
        #expect(try database.progress.storesAwaitingDownload() == ["app"])
        var stranger = Stranger()
        try device.join(stranger.plan(["theirs": stranger.entry(.integer(2))], in: device.store()), cause: .downloaded)
        try device.reopen()
        #expect(!database.account.isDownloaded)
        #expect(try device.store().isDownloaded)
        #expect(try database.progress.storesAwaitingDownload().isEmpty)
        #expect(try visible() == ["mine": .integer(1), "theirs": .integer(2)])
        try device.join(stranger.plan(in: device.store()), cause: .joined)
        try database.progress.completeDownload(cursor: [1])
        try device.reopen()
        #expect(database.account.isDownloaded)
        #expect(try visible() == ["mine": .integer(1), "theirs": .integer(2)])
        #expect(try database.summaries.pendingChanges() == 1)
    }

    @Test func `a crash after entering another account leaves the view of the one before`() throws {
        try enter("A")
        try device.write([("k", .integer(1))])
        try arrive()
        try enter("B")
        try device.reopen()
        #expect(database.account.identifier == "B")
        #expect(try visible() == ["k": .integer(1)])
        #expect(try device.store().hasPreviousValues)
        try database.progress.completeDownload(cursor: [1])
        try device.reopen()
        #expect(try visible().isEmpty)
        #expect(try !device.store().hasPreviousValues)
    }
}
