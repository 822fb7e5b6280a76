// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Replication
import StoreEngine
import Testing

/// Which stores hold values, and how much is pending, are asked of all stores at once and may not read them.
@Suite struct SummaryTests {
    private let device: Device
    private let names = ["a", "b", "e\u{301}", "@hidden", "!d/x"]
    private let keys = (0..<12).map { "k\($0)" } + ["local1", "local2"]
    private var database: UserDatabase { device.database }

    init() throws { device = try Device() }

    @Test(arguments: 1...20) func `what is counted is what the changes say, whatever happens`(seed: UInt64) throws {
        var choices = Choices(seed: seed)
        var held: [Store] = []
        for _ in 0..<80 {
            try act(&choices, &held)
            try compare()
        }
        held = []
        try compare()
        try device.reopen(runtime: seed.isMultiple(of: 2))
        try compare()
    }

    @Test func `lists of stores and counts read no changes once these were counted`() throws {
        try device.write([("k", .integer(1)), ("l", .integer(1))], to: "a")
        try device.write([("k", .integer(1))], to: "b")
        try device.write(removing: ["k"], to: "b")
        #expect(try database.summaries.storesWithValues() == ["a"] && database.summaries.pendingChanges() == 3)
        // The changes say something else now, under the same sequences.
        try device.sql("UPDATE change SET value = iif(value IS NULL, x'00', NULL), cause = 1")
        #expect(try database.summaries.storesWithValues() == ["a"] && database.summaries.pendingChanges() == 3)
        try device.reopen()
        #expect(try database.summaries.storesWithValues() == ["a"] && database.summaries.pendingChanges() == 3)
    }

    // MARK: What happens

    private func act(_ choices: inout Choices, _ held: inout [Store]) throws {
        let name = names.randomElement(using: &choices) ?? "a"
        let key = keys.randomElement(using: &choices) ?? "k"
        device.clock.time += UInt64.random(in: 0...2 * Clock.day, using: &choices)
        switch Int.random(in: 0..<22, using: &choices) {
        case 0...4: try write([(key, .integer(Int64.random(in: 0...3, using: &choices)))], [], name)
        case 5...7: try write([], keys.shuffled(using: &choices).prefix(5), name)
        case 8: try write(keys.map { ($0, .boolean(true)) }, [], name)
        case 9: held.append(try device.store(name, local: ["local*"]))
        case 10: held = []
        case 11, 12: try join(key, &choices, name)
        case 13: _ = try database.enter(account: key < "k5" ? "A" : "B", bringingValues: false)
        case 14: _ = try database.enter(account: "C", bringingValues: true)
        case 15 where database.hasAccount: try database.progress.completeDownload(cursor: [1])
        case 16 where database.hasAccount: try publish(&choices)
        case 17: _ = try database.clearAccount()
        case 18: _ = try database.removeEverything(in: name)
        case 19 where !name.hasPrefix("!"):
            try database.synchronize(store: name, Bool.random(using: &choices))
        case 20: try choices.next().isMultiple(of: 2) ? database.leaveOrigin() : device.clearHistory()
        case 21: try reopen(&choices, &held)
        default: _ = try database.forget(store: name)
        }
    }

    private func write(_ values: [(String, Value)], _ removed: some Sequence<String>, _ name: String) throws {
        let store = try device.store(name, local: ["local*"])
        _ = try store.stage(
            setting: values.map { (Key(unchecked: $0), $1) }, removing: removed.map { Key(unchecked: $0) })
        try database.commit()
    }

    private func join(_ key: String, _ choices: inout Choices, _ name: String) throws {
        guard database.hasAccount, !name.hasPrefix("!") else { return }
        let store = try device.store(name, local: ["local*"])
        var stranger = Stranger(UInt64.random(in: 1...1 << 40, using: &choices))
        let value: Value? = Bool.random(using: &choices) ? .integer(7) : nil
        let dropped = store.values.keys.map(\.string).filter { $0 != key }.prefix(1)
        let plan = stranger.plan(
            [key: stranger.entry(value)], dropping: choices.next().isMultiple(of: 3) ? Array(dropped) : [], in: store)
        try device.join(plan, to: name)
    }

    private func publish(_ choices: inout Choices) throws {
        let stores = try database.progress.publishedStores().shuffled(using: &choices).prefix(2)
        let sequences = stores.map { ($0.identifier, UInt64.random(in: 0...$0.sequence, using: &choices)) }
        try database.progress.markPublished(Dictionary(uniqueKeysWithValues: sequences), under: database.origin)
    }

    private func reopen(_ choices: inout Choices, _ held: inout [Store]) throws {
        held = []
        try device.reopen(runtime: Bool.random(using: &choices))
    }

    // MARK: What the changes say

    private func compare() throws {
        let stores = try device.sql(
            """
            SELECT DISTINCT identifier FROM (
                SELECT identifier, max(change.sequence), value IS NOT NULL AS is_value, cause
                FROM store JOIN replica ON replica.store = store.id JOIN change ON change.replica = replica.id
                GROUP BY replica.id, key)
            WHERE is_value AND cause <> 4 ORDER BY identifier
            """
        ).map { $0[0] }
        #expect(try database.summaries.storesWithValues() == stores)
        #expect(try database.summaries.pendingChanges() == pending("identifier NOT GLOB '@*'"))
        #expect(try database.summaries.hasUploads() == (pending("downloaded") > 0))
    }

    private func pending(_ condition: String) throws -> Int {
        let rows = try device.sql(
            """
            SELECT count(*) FROM (
                SELECT max(change.sequence), cause FROM replica JOIN store ON store.id = replica.store
                    JOIN change ON change.replica = replica.id
                WHERE account = (SELECT coalesce((SELECT value FROM property WHERE name = 'account'), 0))
                    AND change.sequence > published AND synchronized AND \(condition)
                GROUP BY replica.id, key)
            WHERE cause IN (0, 3)
            """)
        return Int(rows[0][0]) ?? -1
    }
}
