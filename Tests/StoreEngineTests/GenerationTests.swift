// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Replication
import StoreEngine
import Testing

@Suite struct GenerationTests {
    @Test func `an untouched store is at the time at which the database was made, over restarts`() throws {
        let device = try Device()
        let made = device.clock.time
        #expect(try device.store().generation == made)
        device.clock.time += 1_000_000
        try device.reopen()
        #expect(try device.store().generation == made)
        try device.write([("k", .integer(1))])
        #expect(try device.store().generation == made + 1)
    }

    @Test func `nobody knows what changed since zero, the future, or before the database`() throws {
        let device = try Device()
        try device.write([("k", .integer(1))])
        let store = try device.store()
        #expect(!store.knowsChanges(since: 0))
        #expect(!store.knowsChanges(since: store.generation + 1))
        #expect(!store.knowsChanges(since: store.generation - 2))
        #expect(store.knowsChanges(since: store.generation))
        #expect(store.changes(since: store.generation).isEmpty)
        #expect(store.changes(since: store.generation - 1) == [key("k"): Value?.some(.integer(1))])
    }

    @Test func `a join that changes nothing visible takes no generation, and does not touch when keys changed`() throws
    {
        let device = try Device()
        let store = try device.store()
        try device.write([("k", .integer(1))])
        let generation = store.generation
        var stranger = Stranger()
        let change = try device.join(
            stranger.plan(["k": stranger.entry(.integer(1)), "absent": stranger.entry(nil)], in: store)
        )
        #expect(change.keys.isEmpty && change.origins.isEmpty)
        #expect(store.generation == generation)
        try device.reopen()
        #expect(try device.store().generation == generation)
        #expect(try device.store().changes(since: generation).isEmpty)
        #expect(try device.store().changes(since: generation - 1).count == 1)
    }

    @Test func `a join that changes something takes one`() throws {
        let device = try Device()
        let store = try device.store()
        try device.write([("k", .integer(1)), ("same", .integer(1)), ("dropped", .integer(1))])
        let generation = store.generation
        var stranger = Stranger()
        let entries = [
            "k": stranger.entry(.integer(2)), "same": stranger.entry(.integer(1)), "new": stranger.entry(.integer(1)),
        ]
        let change = try device.join(stranger.plan(entries, dropping: ["dropped"], in: store))
        #expect(change.keys == [key("dropped"), key("k"), key("new")])
        #expect(change.origins == [stranger.origin])
        #expect(store.generation == generation + 1)
        let changes = store.changes(since: generation)
        #expect(
            changes == [
                key("k"): Value?.some(.integer(2)), key("new"): Value?.some(.integer(1)), key("dropped"): Value?.none,
            ]
        )
        try device.reopen()
        #expect(try device.store().changes(since: generation) == changes)
    }

    @Test func `a database that was set aside leaves no generation that means something else`() throws {
        let device = try Device()
        for value in 0..<5 { try device.write([("k", .integer(Int64(value)))]) }
        let generation = try device.store().generation
        device.close()
        device.clock.time += 1
        _ = try ClosedDatabase(in: device.directory).setAside(at: device.clock.time)
        try device.reopen()
        #expect(try device.store().generation > generation)
        #expect(try !device.store().knowsChanges(since: generation))
    }

    @Test(arguments: 0..<60)
    func `what is told to have changed is exactly what did, whatever happens`(seed: UInt64) throws {
        var run = try Run(seed: seed)
        for _ in 0..<120 { try run.step() }
        #expect(run.checks > 50)
    }
}

/// Changes a store at random, and compares the changes that it reports with the views that readers have seen.
private struct Run {
    let device: Device
    var choices: Choices
    var store: Store
    var stranger = Stranger()
    let seed: UInt64
    /// The views that readers have seen, and the keys that each step has changed, by the generation after it.
    var seen: [(generation: UInt64, view: [Key: Value])] = []
    var touched: [(generation: UInt64, keys: Set<Key>)] = []
    var localKeys = LocalKeys.none
    /// The keys of the step's write. A value that was shown of another account may be written without a visible change.
    var written: Set<Key> = []
    var checks = 0

    init(seed: UInt64) throws {
        self.seed = seed
        choices = Choices(seed: seed)
        device = try Device(limits: Limits(keys: 6))
        store = try device.store()
        seen = [(store.generation, store.values)]
    }

    mutating func step() throws {
        let before = (store.generation, store.values)
        written = []
        let name = try act()
        let after = store.values
        let comment = "seed \(seed): \(name)"
        let changed = Set(before.1.keys).union(after.keys).filter { before.1[$0] != after[$0] }
        if changed.isEmpty {
            #expect(store.generation >= before.0, "\(comment)")
        } else {
            #expect(store.generation > before.0, "\(comment)")
        }
        touched.append((store.generation, written.union(changed)))
        compare(comment)
        seen.append((store.generation, after))
    }

    private mutating func compare(_ comment: String) {
        for reader in seen.suffix(40) where store.knowsChanges(since: reader.generation) {
            checks += 1
            let changes = store.changes(since: reader.generation)
            var view = reader.view
            for (key, value) in changes { view[key] = value }
            #expect(view == store.values, "\(comment), since \(reader.generation)")
            let expected = touched.filter { $0.generation > reader.generation }.reduce(Set<Key>()) { $0.union($1.keys) }
            #expect(Set(changes.keys).isSubset(of: expected), "\(comment), since \(reader.generation)")
        }
    }

    private mutating func act() throws -> String {
        device.clock.time += UInt64.random(in: 0...2_000_000, using: &choices)
        let name = "k\(Int.random(in: 0..<8, using: &choices))"
        let value = Value.integer(Int64.random(in: 0..<3, using: &choices))
        switch Int.random(in: 0..<100, using: &choices) {
        case 0..<40:
            let other = "k\(Int.random(in: 0..<8, using: &choices))"
            if store.hasPreviousValues { written = [key(name)] }
            _ = try? device.write([(name, value)], removing: other == name ? [] : [other])
            return "write"
        case 40..<65:
            let entry = stranger.entry(Bool.random(using: &choices) ? value : nil)
            let dropped = store.keys.filter { $0 != key(name) && Int.random(in: 0..<6, using: &choices) == 0 }
            let plan = stranger.plan([name: entry], dropping: dropped.map(\.string), in: store)
            try device.join(plan, cause: store.isDownloaded || !device.database.hasAccount ? .joined : .downloaded)
            return "join"
        case 65..<77:
            try device.reopen()
            store = try device.database.store("app", localKeys: localKeys)
            return "reopen"
        case 77..<84:
            _ = try device.database.enter(
                account: ["A", "B", "C"].randomElement(using: &choices) ?? "",
                bringingValues: Bool.random(using: &choices)
            )
            return "enter"
        case 84..<90:
            if device.database.hasAccount { try device.database.progress.completeDownload(cursor: [1]) }
            return "complete"
        case 90..<92:
            _ = try device.database.clearAccount()
            return "clear"
        case 92..<94:
            _ = try device.database.forget(store: "app")
            return "forget"
        case 94..<96:
            device.close()
            device.clock.time += 1
            _ = try ClosedDatabase(in: device.directory).setAside(at: device.clock.time)
            try device.reopen()
            store = try device.database.store("app", localKeys: localKeys)
            return "set aside"
        default:
            localKeys = LocalKeys(Bool.random(using: &choices) ? [name] : [])
            _ = try store.replaceLocalKeys(localKeys)
            return "local keys"
        }
    }
}
