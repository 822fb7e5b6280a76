// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Replication
import StoreEngine
import Testing

@Suite struct LocalKeyTests {
    let device: Device

    init() throws {
        device = try Device()
        _ = try device.database.enter(account: "A", bringingValues: false)
        try device.database.progress.completeDownload(cursor: [1])
    }

    private func localKeys(_ patterns: String...) -> LocalKeys { LocalKeys(patterns) }

    @Test func `patterns match keys, and prefixes before a star`() {
        let keys = localKeys("exact", "pre.*")
        #expect(keys.contains(key("exact")) && keys.contains(key("pre.")) && keys.contains(key("pre.x")))
        #expect(!keys.contains(key("exact2")) && !keys.contains(key("pre")) && !keys.contains(key("xpre.")))
        #expect(localKeys("*").contains(key("anything")))
        #expect(!LocalKeys.none.contains(key("anything")) && LocalKeys.none.isEmpty)
        #expect(localKeys("e\u{301}").contains(key("\u{E9}")) == false)
    }

    @Test func `a local key is never in the state, in its vector, or pending`() throws {
        let store = try device.store(local: ["local"])
        try device.write([("local", .integer(1))])
        #expect(store.snapshot().state == StoreState())
        try device.write([("shared", .integer(1)), ("local", .integer(2))])
        try device.write(removing: ["local"])
        try device.write([("local", .integer(3))])
        let state = store.snapshot().state
        #expect(Array(state.entries.keys) == [key("shared")])
        #expect(state.vector.dots.map(\.n).max() == state.entries[key("shared")]?.n)
        #expect(store.pendingChanges == 1)
        #expect(try device.database.summaries.pendingChanges() == 1)
        #expect(store.usage.keys == 1)
        try device.reopen()
        #expect(try device.store(local: ["local"]).value(for: key("local")) == .integer(3))
        #expect(try device.store().snapshot().state == state)
    }

    @Test func `a record under a local key is kept, not shown, and passed on as it came`() throws {
        let store = try device.store(local: ["local"])
        try device.write([("local", .integer(1))])
        var stranger = Stranger()
        let entry = stranger.entry(.integer(99))
        let generation = store.generation
        #expect(try device.join(stranger.plan(["local": entry], in: store)).keys.isEmpty)
        #expect(store.generation == generation)
        #expect(store.value(for: key("local")) == .integer(1))
        #expect(store.snapshot().state.entries == [key("local"): entry])
        try device.write(removing: ["local"])
        #expect(store.value(for: key("local")) == nil)
        #expect(store.snapshot().state.entries == [key("local"): entry])
        try device.reopen()
        #expect(try device.store(local: ["local"]).values.isEmpty)
        #expect(try device.store().snapshot().state.entries == [key("local"): entry])
    }

    @Test(arguments: [[0xFF, 1, 2], []] as [[UInt8]])
    func `a value that makes no sense is hidden and passed on as it came, over a restart too`(bytes: [UInt8]) throws {
        let store = try device.store()
        try device.write([("k", .integer(1))])
        let stranger = Stranger()
        let stamp = Stamp(isProvisional: false, wall: 1 << 45, counter: 0, origin: stranger.origin)
        let entry = Entry(stamp: stamp, n: 1, value: bytes)
        #expect(try device.join(stranger.plan(["k": entry], in: store)).keys == [key("k")])
        #expect(store.value(for: key("k")) == nil)
        #expect(store.changes(since: store.generation - 1) == [key("k"): Value?.none])
        #expect(store.snapshot().state.entries[key("k")] == entry)
        try device.reopen()
        #expect(try device.store().snapshot().state.entries[key("k")] == entry)
        #expect(try device.write([("k", .integer(2))]) == ["k"])
        #expect(try #require(device.store().version(of: key("k"))?.stamp) > stamp)
    }

    @Test func `a key that breaks the rules is hidden and passed on`() throws {
        let store = try device.store()
        var stranger = Stranger()
        let long = String(repeating: "k", count: 200)
        let entries = [long: stranger.entry(.integer(1)), "": stranger.entry(.integer(1))]
        #expect(try device.join(stranger.plan(entries, in: store)).keys.isEmpty)
        #expect(store.values.isEmpty && store.usage.keys == 0)
        try device.reopen()
        #expect(try Set(device.store().snapshot().state.entries.keys) == [key(long), key("")])
    }

    // MARK: Manifests that change

    @Test func `a key that becomes local shows the device's value, and its record stays shared`() throws {
        let store = try device.store()
        try device.write([("k", .integer(1))])
        let state = store.snapshot().state
        let generation = store.generation
        #expect(try store.replaceLocalKeys(localKeys("k")) == [key("k")])
        #expect(store.value(for: key("k")) == nil)
        #expect(store.generation == generation + 1)
        #expect(!store.knowsChanges(since: generation))
        #expect(store.snapshot().state == state)
    }

    @Test func `a manifest that changes nothing visible takes no generation`() throws {
        let store = try device.store()
        try device.write([("k", .integer(1))])
        let generation = store.generation
        #expect(try store.replaceLocalKeys(localKeys("other")).isEmpty)
        #expect(store.generation == generation && store.knowsChanges(since: generation))
        #expect(store.localKeys.contains(key("other")))
        let untouched = try device.store("untouched")
        #expect(try untouched.replaceLocalKeys(localKeys("other")).isEmpty)
        #expect(untouched.generation == (try Device.generation(of: "untouched", after: device)))
    }

    @Test func `a key that stops being local goes to the account as an ordinary write`() throws {
        let store = try device.store(local: ["k", "stays"])
        try device.write([("k", .integer(1)), ("stays", .integer(2)), ("shared", .integer(3))])
        let sequence = store.snapshot().sequence
        let generation = store.generation
        #expect(try store.replaceLocalKeys(localKeys("stays")).isEmpty)
        #expect(store.generation == generation)
        #expect(store.value(for: key("k")) == .integer(1))
        let entry = try #require(store.entry(for: key("k")))
        #expect(entry.n > sequence)
        #expect(!entry.stamp.isProvisional)
        #expect(store.vector.contains(entry.dot))
        #expect(store.pendingChanges == 2)
        #expect(store.entry(for: key("stays")) == nil)

        try device.reopen()
        let again = try device.store(local: ["stays"])
        #expect(again.values == [key("k"): .integer(1), key("stays"): .integer(2), key("shared"): .integer(3)])
        #expect(try again.releaseLocalValues().isEmpty)
        #expect(again.entry(for: key("k")) == entry)
    }

    @Test func `where the account has the key, a key that stops being local takes its value`() throws {
        let store = try device.store(local: ["k", "deleted"])
        try device.write([("k", .integer(1)), ("deleted", .integer(1))])
        var stranger = Stranger()
        let entries = ["k": stranger.entry(.integer(99)), "deleted": stranger.entry(nil)]
        try device.join(stranger.plan(entries, in: store))
        let state = store.snapshot().state
        device.clock.time += 1000
        #expect(try store.replaceLocalKeys(.none) == [key("deleted"), key("k")])
        #expect(store.values == [key("k"): .integer(99)])
        #expect(store.snapshot().state == state)
        let history = try device.database.history.values(of: key("k"), in: store)
        #expect(history.map(\.value) == [.integer(1)])
        #expect(history.first?.time == device.clock.time)
        // The value isn't released a second time.
        try device.reopen()
        #expect(try device.store().releaseLocalValues().isEmpty)
        #expect(try device.store().values == [key("k"): .integer(99)])
    }

    @Test func `a store opened with fewer local keys keeps the values until they are released`() throws {
        try withExtendedLifetime(device.store(local: ["k"])) { _ in _ = try device.write([("k", .integer(1))]) }
        try device.reopen()
        let store = try device.store()
        #expect(store.snapshot().state.entries.isEmpty)
        #expect(try store.releaseLocalValues() == [key("k")])
        #expect(store.value(for: key("k")) == .integer(1))
        #expect(store.snapshot().state.entries.count == 1)
    }

    @Test func `a change of the local keys that can't be written is none`() throws {
        let store = try device.store(local: ["k"])
        try device.write([("k", .integer(1))])
        try device.sql("CREATE TRIGGER refusal BEFORE INSERT ON change BEGIN SELECT RAISE(ABORT, 'refused'); END")
        let before = Picture(store)
        #expect(throws: EngineError.self) { try store.replaceLocalKeys(.none) }
        #expect(Picture(store) == before)
        #expect(store.localKeys.contains(key("k")))
    }
}

extension Device {
    fileprivate static func generation(of identifier: String, after device: Device) throws -> UInt64 {
        try device.reopen()
        return try device.store(identifier).generation
    }
}
