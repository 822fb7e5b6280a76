// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Replication
import Testing

@testable import StoreEngine

@Suite struct HistoryTests {
    let device: Device

    init() throws { device = try Device() }

    private func history(_ name: String = "k", in identifier: String = "app") throws -> [FormerValue] {
        try device.database.history.values(of: key(name), in: device.store(identifier))
    }

    /// Makes enough changes for a trim.
    private func provokeTrim(local: [String] = []) throws {
        let before = try rows
        try withExtendedLifetime(device.store(local: local)) { _ in
            for index in 0..<1200 { try device.write([("churn", .integer(Int64(index)))]) }
        }
        #expect(try rows < before + 1200)
    }

    private var rows: Int {
        get throws { Int(try device.sql("SELECT count(*) FROM change")[0][0]) ?? -1 }
    }

    @Test func `a value that is replaced or removed is told with the time and the reason, newest first`() throws {
        try device.write([("k", .integer(1)), ("other", .integer(7))])
        let origin = device.database.origin
        device.clock.time += 10
        try device.write([("k", .integer(2))])
        let replaced = device.clock.time
        device.clock.time += 10
        try device.write(removing: ["k"])
        let removed = device.clock.time
        device.clock.time += 10
        try device.write([("k", .integer(3))])
        let expected = [
            Former(.integer(2), removed, origin, .removed), Former(.integer(1), replaced, origin, .replaced),
        ]
        #expect(try history().map(Former.init) == expected)
        try device.reopen()
        #expect(try history().map(Former.init) == expected)
        #expect(try history("other").isEmpty && history("absent").isEmpty)
    }

    @Test func `a store that is removed everywhere leaves a tombstone for each key, or everything if the disk is full`()
        throws
    {
        let store = try device.store(local: ["local"])
        for round in 0..<3 {
            for name in ["k", "local", "gone"] { try device.write([(name, .integer(Int64(round)))]) }
        }
        try device.write(removing: ["gone"])
        let before = try rows
        var reverted = 0
        device.database.onRevert = { _ in reverted += 1 }
        try device.sql("CREATE TRIGGER full BEFORE DELETE ON change BEGIN SELECT RAISE(ABORT, 'full'); END")
        #expect(throws: EngineError.self) { try device.database.removeEverything(in: "app") }
        #expect(try rows == before && store.values.count == 2 && reverted == 1)
        try device.sql("DROP TRIGGER full")
        #expect(try device.database.removeEverything(in: "app")?.map(\.string) == ["k", "local"])
        #expect(try rows == 3 && store.values.isEmpty)
        for name in ["k", "local", "gone"] { #expect(try history(name).isEmpty) }
        try device.reopen()
        #expect(try device.store(local: ["local"]).values.isEmpty)
        #expect(try device.database.removeEverything(in: "app") == nil)
    }

    @Test func `a clock that was wrong changes nothing in the order, and its times are told`() throws {
        let right = device.clock.time
        let times = [right, right + 3650 * Clock.day, right + 10, right - Clock.day, right + 20]
        for (number, time) in times.enumerated() {
            device.clock.time = time
            try device.write([("k", .integer(Int64(number)))])
        }
        #expect(try history().map(\.value) == [3, 2, 1, 0].map(Value.integer))
        #expect(try history().map(\.time) == [right + 20, right - Clock.day, right + 10, right + 3650 * Clock.day])
        try device.reopen()
        #expect(try history().map(\.value) == [3, 2, 1, 0].map(Value.integer))
    }

    @Test func `a clock that was wrong puts neither an account that was left first nor a key that was local`() throws {
        let right = device.clock.time
        try withExtendedLifetime(device.store(local: ["k"])) { _ in
            try device.write([("k", .string("local"))])
            device.clock.time = right + 3650 * Clock.day
            try device.write([("k", .string("local still"))])
        }
        try enter("A")
        try device.write([("k", .string("A"))])
        try enter("B")
        device.clock.time = right
        for value in ["B", "B again", "B at last"] { try device.write([("k", .string(Text(value)))]) }
        #expect(try history().map(\.value) == ["B again", "B", "A", "local"].map { .string($0) })
    }

    @Test func `what another device replaces or drops went in a merge`() throws {
        let store = try device.store()
        try device.write([("k", .integer(1)), ("dropped", .integer(1))])
        var stranger = Stranger()
        try device.join(stranger.plan(["k": stranger.entry(.integer(2))], dropping: ["dropped"], in: store))
        try device.write([("k", .integer(3))])
        #expect(try history().map(\.why) == [.replaced, .merge])
        #expect(try history().map(\.origin) == [stranger.origin, device.database.origin])
        #expect(try history("dropped").map(\.why) == [.merge])
    }

    @Test func `a value that gave way to the first download is kept`() throws {
        _ = try device.database.enter(account: "A", bringingValues: false)
        let store = try device.store()
        try device.write([("k", .integer(1))])
        var stranger = Stranger()
        try device.join(stranger.plan(["k": stranger.entry(.integer(2))], in: store), cause: .downloaded)
        #expect(try history().map(\.value) == [.integer(1)])
        #expect(try history().map(\.why) == [.initialSync])
    }

    @Test func `history from before the sign-in keeps its reasons`() throws {
        try device.write([("k", .integer(1))])
        try device.write([("k", .integer(2))])
        _ = try device.database.enter(account: "A", bringingValues: false)
        #expect(try history().map(\.value) == [.integer(1)])
        #expect(try history().map(\.why) == [.replaced])
    }

    @Test func `sixteen values of a key are kept, before and after the rest is removed`() throws {
        for index in 0..<40 { try device.write([("k", .integer(Int64(index)))]) }
        let newest = (23..<39).reversed().map { Value.integer(Int64($0)) }
        #expect(try history().map(\.value) == newest)
        try provokeTrim()
        #expect(try history().map(\.value) == newest)
        #expect(Int(try device.sql("SELECT count(*) FROM change WHERE key = CAST('k' AS BLOB)")[0][0]) == 17)
    }

    @Test func `what is kept stays among what goes`() throws {
        for round in 0..<3 {
            for index in 0..<60 { try device.write([("churn", .integer(Int64(60 * round + index)))]) }
            try device.write([("k", .integer(Int64(round)))])
        }
        try provokeTrim()
        #expect(Int(try device.sql("SELECT count(*) FROM change WHERE sequence < 150")[0][0]) == 2)
        #expect(try history().map(\.value) == [.integer(1), .integer(0)])
        try device.reopen()
        #expect(try device.store().value(for: key("k")) == .integer(2))
    }

    @Test func `what was replaced more than ninety days ago is not told, and goes`() throws {
        try device.write([("k", .integer(1))])
        try device.write([("k", .integer(2))])
        device.clock.time += 89 * Clock.day
        try device.write([("k", .integer(3))])
        #expect(try history().map(\.value) == [.integer(2), .integer(1)])
        device.clock.time += 2 * Clock.day
        #expect(try history().map(\.value) == [.integer(2)])
        try provokeTrim()
        #expect(try history().map(\.value) == [.integer(2)])
        #expect(Int(try device.sql("SELECT count(*) FROM change WHERE key = CAST('k' AS BLOB)")[0][0]) == 2)
    }

    @Test func `one mebibyte of a store's history is kept, the newest`() throws {
        try device.write([("old", .integer(1))])
        try device.write([("old", .integer(2))])
        func value(_ index: Int) -> Value { .data([UInt8](repeating: UInt8(index), count: 200_000)) }
        for index in 0..<7 { try device.write([("k", value(index))]) }
        #expect(try history().map(\.value) == [5, 4, 3, 2, 1].map(value))
        for index in 7..<20 { try device.write([("k", value(index))]) }
        #expect(try history("old").isEmpty)
        let bytes = Int(try device.sql("SELECT sum(length(value)) FROM change")[0][0]) ?? 0
        #expect(bytes < 3 << 20)
        #expect(try history().map(\.value) == [18, 17, 16, 15, 14].map(value))
    }

    @Test func `the largest value that a store may have is kept, and nothing beside it`() throws {
        let largest = Value.data([UInt8](repeating: 1, count: 1 << 20))
        try device.write([("other", .boolean(true))])
        try device.write([("other", .boolean(false))])
        try device.write(removing: ["other"])
        for _ in 0..<2 {
            try device.write([("k", largest)])
            try device.write(removing: ["k"])
        }
        #expect(try history().map(\.value) == [largest])
        #expect(try history("other").isEmpty)
    }

    // MARK: Accounts that were left

    /// Enters an account, and completes its download.
    private func enter(_ account: String) throws {
        device.clock.time += 1
        _ = try device.database.enter(account: account, bringingValues: false)
        try device.database.progress.completeDownload(cursor: [1])
        while try device.database.leftovers.removeSome() {}
    }

    /// Writes values of 150,000 bytes to a key, of which all but the last become its history.
    private func writePieces(_ indexes: ClosedRange<Int>) throws {
        for index in indexes {
            device.clock.time += 1
            try device.write([("k", piece(index))])
        }
    }

    private func piece(_ index: some BinaryInteger) -> Value { .data([UInt8](repeating: UInt8(index), count: 150_000)) }

    /// The indexes of the pieces that the key's history contains.
    private var told: [UInt8?] {
        get throws {
            try history().map { former in
                guard case .data(let bytes) = former.value else { return nil }
                return bytes.first
            }
        }
    }

    /// Returns how many pieces the database has for an account.
    private func pieces(in account: String) throws -> Int {
        let rows = try device.sql(
            """
            SELECT count(*) FROM change JOIN replica ON replica.id = replica JOIN account ON account.id = account
            WHERE account.identifier = '\(account)' AND length(value) > 150000
            """)
        return Int(rows[0][0]) ?? -1
    }

    @Test func `a store keeps a mebibyte in all accounts together, of those that were left last`() throws {
        for account in ["A", "B", "C"] {
            try enter(account)
            try writePieces(1...4)
        }
        try enter("D")
        // Six pieces are less than a mebibyte, and each account has its current value besides.
        #expect(try ["A", "B", "C"].map(pieces) == [1, 4, 4])
        #expect(try told == [4, 4, 4])
        // Writes don't touch it. When accounts are switched, the history of the one just left counts first.
        try writePieces(1...3)
        #expect(try ["A", "B", "C", "D"].map(pieces) == [1, 4, 4, 3])
        try enter("A")
        #expect(try ["A", "B", "C", "D"].map(pieces) == [1, 2, 4, 3])
        try enter("B")
        #expect(try ["A", "B", "C", "D"].map(pieces) == [1, 2, 4, 3])
        #expect(try told == [4, 3, 4, 3])
        try writePieces(5...9)
        try enter("A")
        #expect(try ["A", "B", "C", "D"].map(pieces) == [1, 7, 1, 1])
    }

    @Test func `of many accounts, those that were left last are told`() throws {
        for number: UInt8 in 1...40 {
            try enter("A\(number)")
            try device.write(number % 8 == 0 ? [] : [("k", piece(number))], removing: number % 8 == 0 ? ["k"] : [])
        }
        try enter("B")
        #expect(try told == [39, 38, 37, 36, 35, 34])
    }

    @Test func `what an account keeps of the past goes while it is not in use, and nothing else`() throws {
        try enter("A")
        let store = try device.store()
        // One row is the only trace of a dot of this device, another the only one with the last number.
        try device.write([("k", .integer(1)), ("gone", .integer(1))])
        let own = device.database.origin
        var stranger = Stranger()
        try device.join(stranger.plan(["k": stranger.entry(.integer(2))], in: store))
        try device.write([("pending", .integer(1))])
        try device.join(stranger.plan(dropping: ["pending"], in: store))
        let (before, vector) = (Picture(store), store.vector)
        let rows = try rows
        try enter("B")
        #expect(try self.rows == rows)
        device.clock.time += 91 * Clock.day
        try enter("C")
        #expect(try self.rows == rows - 3)
        try enter("A")
        let after = Picture(try device.store())
        #expect(after.values == before.values && after.state == before.state && after.sequence == before.sequence)
        #expect(after.pending == before.pending && after.usage == before.usage)
        #expect(try device.store().vector == vector && vector.contains(Dot(origin: own, n: 3)))
    }

    @Test func `trimming changes nothing but the history`() throws {
        _ = try device.database.enter(account: "A", bringingValues: false)
        try device.database.progress.completeDownload(cursor: [1])
        let store = try device.store()
        try device.write((0..<50).map { ("k\($0)", .integer(1)) })
        try device.database.progress.markPublished(["app": store.snapshot().sequence], under: device.database.origin)
        var stranger = Stranger()
        try device.join(stranger.plan(["theirs": stranger.entry(.integer(1))], in: store))
        try device.write(removing: ["k1"])
        let generation = store.generation
        try provokeTrim()
        try device.write([("last", .integer(1))])
        let before = (Picture(store), store.vector)
        try device.reopen()
        let again = try device.store()
        #expect(Picture(again) == before.0)
        #expect(again.vector == before.1)
        #expect(again.vector[stranger.origin] == 1)
        #expect(again.knowsChanges(since: generation))
        #expect(Set(again.changes(since: generation).keys) == [key("churn"), key("last")])
        #expect(again.values.count == 52)
    }

    @Test func `what is known of own dots outlives their rows`() throws {
        // A row of an origin that is no longer in use, and whose value another device then replaces.
        try device.write([("k", .integer(1))])
        let former = device.database.origin
        try device.reopen(runtime: false)
        let store = try device.store()
        try device.write([("x", .integer(1))])
        var stranger = Stranger()
        try device.join(stranger.plan(["k": stranger.entry(.integer(2))], in: store))
        device.clock.time += 91 * Clock.day
        try provokeTrim()
        #expect(try device.sql("SELECT 1 FROM change WHERE origin = \(Int64(bitPattern: former.bits))").isEmpty)
        let vector = store.vector
        try device.reopen()
        #expect(try device.store().vector == vector)
        #expect(vector.contains(Dot(origin: former, n: 1)))
    }

    @Test func `history that is all worth keeping is not gone through for every write`() throws {
        let keys = (0..<40).map { "k\($0)" }
        for round in 0..<17 { try device.write(keys.map { ($0, .integer(Int64(round))) }) }
        // 640 rows of history, none of which may be removed.
        for round in 17..<60 { try device.write(keys.map { ($0, .integer(Int64(round))) }) }
        let count = try rows
        #expect(count <= 40 * 17 * 3)
        #expect(try history("k3").count == 16)
    }

    // MARK: Tombstones

    private func signIn() throws -> Store {
        _ = try device.database.enter(account: "A", bringingValues: false)
        try device.database.progress.completeDownload(cursor: [1])
        return try device.store()
    }

    @Test func `tombstones go after ninety days, once the remote has them, and do not come back`() throws {
        let store = try signIn()
        try device.write([("old", .integer(1)), ("pending", .integer(1))])
        try device.write(removing: ["old"])
        try device.database.progress.markPublished(["app": store.snapshot().sequence], under: device.database.origin)
        let generation = store.generation
        try device.write(removing: ["pending"])
        device.clock.time += 91 * Clock.day
        try device.write([("young", .integer(1))])
        try device.write(removing: ["young"])
        let vector = store.vector
        try provokeTombstoneTrim(store)
        #expect(store.entry(for: key("old")) == nil)
        #expect(store.entry(for: key("pending")) != nil)
        #expect(store.entry(for: key("young")) != nil)
        #expect(store.vector.isSuperset(of: vector))
        #expect(!store.knowsChanges(since: generation - 1))
        let before = Picture(store)
        try device.reopen()
        #expect(Picture(try device.store()) == before)
        #expect(try device.store().vector == store.vector)
        #expect(try device.store().value(for: key("old")) == nil)
    }

    @Test func `a clock that jumps makes no tombstone old: ninety days have to be seen to pass`() throws {
        let store = try signIn()
        try device.database.noteGarbageCollection()
        try device.write([("k", .integer(1))])
        try device.write(removing: ["k"])
        try device.database.progress.markPublished(["app": store.snapshot().sequence], under: device.database.origin)
        device.clock.time += 91 * Clock.day
        try device.database.noteGarbageCollection()
        try provokeTombstoneTrim(store)
        #expect(store.entry(for: key("k")) != nil)
        for _ in 0..<90 {
            device.clock.time += Clock.day
            try device.database.noteGarbageCollection()
        }
        try device.reopen()
        let again = try device.store()
        try provokeTombstoneTrim(again)
        #expect(again.entry(for: key("k")) == nil)
    }

    @Test func `a tombstone that was made while the clock was behind is as young as what it removed`() throws {
        let store = try signIn()
        try device.write([("k", .integer(1))])
        device.clock.time -= 3650 * Clock.day
        try device.write(removing: ["k"])
        try device.database.progress.markPublished(["app": store.snapshot().sequence], under: device.database.origin)
        device.clock.time += 3651 * Clock.day
        try provokeTombstoneTrim(store)
        #expect(store.entry(for: key("k")) != nil)
    }

    @Test func `a tombstone from the future stays`() throws {
        let store = try signIn()
        var stranger = Stranger()
        try device.join(stranger.plan(["k": stranger.entry(nil, wall: 4_070_908_800_000)], in: store))
        device.clock.time += 91 * Clock.day
        try provokeTombstoneTrim(store)
        #expect(store.entry(for: key("k")) != nil)
    }

    @Test func `keys that come and go do not pile up`() throws {
        let store = try signIn()
        for round in 0..<50 {
            let names = (0..<300).map { "k\(round)-\($0)" }
            device.clock.time += 1000
            try device.write(names.map { ($0, .boolean(true)) })
            device.clock.time += 1000
            try device.write(removing: names)
            try device.database.progress.markPublished(
                ["app": store.snapshot().sequence], under: device.database.origin)
        }
        #expect(store.keys.count <= 8192 + 300)
        #expect(try rows < 2 * 8800)
    }

    private func provokeTombstoneTrim(_ store: Store) throws {
        device.clock.time += 1000
        try provokeTrim()
    }
}

private struct Former: Equatable {
    let value: Value
    let time: UInt64
    let origin: Origin
    let why: FormerValue.Reason

    init(_ value: Value, _ time: UInt64, _ origin: Origin, _ why: FormerValue.Reason) {
        (self.value, self.time, self.origin, self.why) = (value, time, origin, why)
    }

    init(_ former: FormerValue) { self.init(former.value, former.time, former.origin, former.why) }
}
