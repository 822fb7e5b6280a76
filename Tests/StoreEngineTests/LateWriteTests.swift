// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Replication
import StoreEngine
import Testing

/// Writes that a program made while it could not reach the service.
@Suite struct LateWriteTests {
    private let layer = DomainLayer(of: "org.example.Notes", isHost: false).identifier
    private let late = ["changed", "removed", "same"].map { (key($0), Value.integer(3)) }

    /// Sets three keys, and then changes and removes two of them.
    /// - Returns: the layer, and its generation in between.
    private func change(_ device: Device) throws -> (store: Store, base: UInt64) {
        try device.write(["changed", "removed", "same"].map { ($0, .integer(1)) }, to: layer)
        let base = try device.store(layer).generation
        try device.write([("changed", .integer(2))], to: layer)
        let store = try device.store(layer)
        try store.stage(setting: [], removing: [key("removed")])
        try device.database.commit()
        return (store, base)
    }

    @Test func `a late write loses to what changed since, and is in the history after a restart as well`() throws {
        let device = try Device()
        let (store, base) = try change(device)
        #expect(try store.stage(setting: late, removing: [], unlessChangedSince: base) == [key("same")])
        try device.database.commit()
        let shown: [Key: Value] = [key("changed"): .integer(2), key("same"): .integer(3)]
        let generation = store.generation
        #expect(store.values == shown && store.usage.keys == 2)
        try device.reopen()
        let reopened = try device.store(layer)
        #expect(reopened.values == shown && reopened.usage.keys == 2 && reopened.generation == generation)
        for name in ["changed", "removed"] {
            let lost = try device.database.history.values(of: key(name), in: reopened)[0]
            #expect(lost.value == .integer(3) && lost.why == .merge, "\(name)")
        }
    }

    @Test func `a late write loses to later values, though removals since are forgotten`() throws {
        let device = try Device()
        let (store, base) = try change(device)
        device.clock.time += 400 * Clock.day
        // Enough rows to be trimmed.
        for round in 0..<20 {
            try device.write((0..<2000).map { ("\($0)", .integer(Int64(round))) }, to: layer)
            try store.stage(setting: [], removing: (0..<2000).map { key("\($0)") })
            try device.database.commit()
            if !store.knowsChanges(since: base) { break }
        }
        #expect(!store.knowsChanges(since: base))
        #expect(
            try store.stage(setting: late, removing: [], unlessChangedSince: base) == [key("removed"), key("same")])
        #expect(store.value(for: key("changed")) == .integer(2))
    }

    @Test func `a late write loses to a later one also after other keys have become local`() throws {
        let device = try Device()
        try device.write([("a", .integer(1))])
        let store = try device.store()
        let base = store.generation
        try device.write([("a", .integer(2))])
        _ = try store.replaceLocalKeys(LocalKeys(["other"]))
        #expect(
            try store.stage(setting: [(key("a"), .integer(3))], removing: [], unlessChangedSince: base, setAt: 1) == [])
        #expect(store.value(for: key("a")) == .integer(2))
    }

    @Test func `a late write wins over what a salvage has brought back`() throws {
        let device = try Device()
        try device.write([("a", .integer(1)), ("b", .integer(1))], to: layer)
        let base = try device.store(layer).generation
        device.close()
        _ = try ClosedDatabase(in: device.directory).setAside(at: device.clock.time)
        try device.reopen()
        try device.write([("b", .integer(2))], to: layer)
        let late = ["a", "b"].map { (key($0), Value.integer(3)) }
        let store = try device.store(layer)
        #expect(try store.stage(setting: late, removing: [], unlessChangedSince: base) == [key("a")])
        #expect(store.values == [key("a"): .integer(3), key("b"): .integer(2)])
    }

    @Test func `a late write that can't be stored is refused, and nothing of the others is`() throws {
        let device = try Device()
        try device.write([("a", .integer(1))], to: layer)
        let base = try device.store(layer).generation
        try device.write([("a", .integer(2))], to: layer)
        let store = try device.store(layer)
        let tooLarge = Value.data([UInt8](repeating: 1, count: (1 << 20) + 1))
        #expect(throws: EngineError.self) {
            try store.stage(
                setting: [(key("a"), tooLarge), (key("b"), .integer(1))], removing: [], unlessChangedSince: base)
        }
        #expect(store.values == [key("a"): .integer(2)])
        #expect(try device.database.history.values(of: key("a"), in: store).map(\.value) == [.integer(1)])
    }

    // MARK: In a store

    /// Makes a device that is signed in, and has a value of the key `k`.
    private func signedInDevice() throws -> Device {
        let device = try Device()
        _ = try device.database.enter(account: "A", bringingValues: false)
        try device.database.progress.completeDownload(cursor: [1])
        try device.write([("k", .integer(1))])
        return device
    }

    @Test(arguments: [false, true])
    func `of a late write and another device's that has arrived since, the later one wins`(isEarlier: Bool) throws {
        let device = try signedInDevice()
        let store = try device.store()
        let base = store.generation
        var stranger = Stranger()
        let theirs = stranger.entry(.integer(2), wall: device.clock.time / 1000 + 1000)
        try device.join(stranger.plan(["k": theirs], in: store))
        let time = device.clock.time + (isEarlier ? 500_000 : 2_000_000)
        device.clock.time += 60_000_000
        let changed = try store.stage(
            setting: [(key("k"), .integer(3))], removing: [], unlessChangedSince: base, setAt: time)
        try device.database.commit()
        #expect(changed == (isEarlier ? [] : [key("k")]))
        for _ in 0..<2 {
            let store = try device.store()
            #expect(store.value(for: key("k")) == .integer(isEarlier ? 2 : 3))
            let lost = try device.database.history.values(of: key("k"), in: store)[0]
            #expect(lost.value == .integer(isEarlier ? 3 : 2) && lost.why == (isEarlier ? .merge : .replaced))
            // Nothing that others have is published anew.
            #expect(store.pendingChanges == (isEarlier ? 0 : 1))
            let entry = try #require(store.entry(for: key("k")))
            // It has the time at which it was set, so what others have set since wins over it.
            #expect(isEarlier ? entry == theirs : entry.stamp.wall == time / 1000)
            try device.reopen()
        }
    }

    @Test func `a late write wins over another device's that its program has seen, whatever has become local since`()
        throws
    {
        let device = try signedInDevice()
        let store = try device.store()
        var stranger = Stranger()
        let theirs = stranger.entry(.integer(2), wall: device.clock.time / 1000 + 60_000)
        try device.join(stranger.plan(["k": theirs], in: store))
        let base = store.generation
        try device.write([("another", .integer(1))])
        _ = try store.replaceLocalKeys(LocalKeys(["other"]))
        let late = [(key("k"), Value.integer(3))]
        #expect(
            try store.stage(setting: late, removing: [], unlessChangedSince: base, setAt: device.clock.time)
                == [key("k")])
    }

    /// Checks that a reopened device has the same entry, and that this device's own entries are in the vector.
    private func expectEntry(_ entry: Entry?, of name: String, on device: Device) throws {
        for _ in 0..<2 {
            let store = try device.store()
            #expect(store.entry(for: key(name)) == entry)
            if let entry { #expect(store.vector.contains(entry.dot)) }
            try device.reopen()
        }
    }

    @Test func `a late write that loses before the first sign-in leaves the value provisional`() throws {
        let device = try Device()
        try device.write([("k", .integer(1))])
        let base = try device.store().generation
        try device.write([("k", .integer(2))])
        let late = [(key("k"), Value.integer(3))]
        #expect(try device.store().stage(setting: late, removing: [], unlessChangedSince: base, setAt: 1) == [])
        try device.database.commit()
        _ = try device.database.enter(account: "A", bringingValues: true)
        let entry = try #require(try device.store().entry(for: key("k")))
        #expect(entry.stamp.isProvisional && entry.value == Value.integer(2).encoded())
        try expectEntry(entry, of: "k", on: device)
        #expect(try device.store().pendingChanges == 1)
    }

    @Test func `a late write that loses to a removal before the first sign-in removes nothing of the account`() throws {
        let device = try Device()
        try device.write([("k", .integer(1))])
        let base = try device.store().generation
        try device.write(removing: ["k"])
        _ = try device.database.enter(account: "A", bringingValues: true)
        try device.database.progress.completeDownload(cursor: [1])
        let late = [(key("k"), Value.integer(3))]
        _ = try device.store().stage(setting: late, removing: [], unlessChangedSince: base, setAt: 1)
        try device.database.commit()
        let entry = try device.store().entry(for: key("k"))
        #expect(entry?.value == nil || entry?.value == Value.integer(3).encoded())
        try expectEntry(entry, of: "k", on: device)
    }

    @Test(arguments: [false, true])
    func `a removal that wins over a late write is uploaded`(isPublished: Bool) throws {
        let device = try signedInDevice()
        let base = try device.store().generation
        try device.write(removing: ["k"])
        let store = try device.store()
        if isPublished {
            try device.database.progress.markPublished(
                ["app": store.snapshot().sequence], under: device.database.origin)
        }
        let late = [(key("k"), Value.integer(3))]
        #expect(try store.stage(setting: late, removing: [], unlessChangedSince: base, setAt: .max) == [])
        try device.database.commit()
        #expect(store.pendingChanges == 1)
        let entry = try #require(store.entry(for: key("k")))
        #expect(entry.value == nil)
        try expectEntry(entry, of: "k", on: device)
    }

    @Test func `a late write loses to what another program of this device set since, whatever its time`() throws {
        let device = try signedInDevice()
        let store = try device.store()
        let base = store.generation
        try device.write([("k", .integer(2))])
        let late = [(key("k"), Value.integer(3))]
        let future = device.clock.time + 1_000_000_000
        #expect(try store.stage(setting: late, removing: [], unlessChangedSince: base, setAt: future) == [])
        try device.database.commit()
        let own = device.database.origin
        for _ in 0..<2 {
            let store = try device.store()
            #expect(store.value(for: key("k")) == .integer(2))
            let history = try device.database.history.values(of: key("k"), in: store).map(\.value)
            #expect(history == [3, 2, 1].map { .integer($0) })
            // What wins is still to be uploaded, and the loser took no dot.
            #expect(store.pendingChanges == 1 && store.entry(for: key("k"))?.n == 2)
            #expect(store.vector.dots == [Dot(origin: own, n: 2)])
            try device.reopen()
        }
        let present = try device.store()
        #expect(
            try present.stage(setting: late, removing: [], unlessChangedSince: present.generation, setAt: future)
                == [key("k")])
    }
}
