// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Replication
import Testing

@testable import StoreEngine

/// Trimming of the history, compared with a slow and obvious version of the rules.
@Suite struct TrimmingTests {
    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `what is kept stays, and what is not goes`(seed: UInt64) throws {
        var choices = Choices(seed: seed)
        let device = try Device()
        // Keeps the store in memory, so that it isn't read again for each write.
        var store = try device.store()
        var rows: [ChangeOutline] = []
        var trims = 0
        for _ in 0..<200 {
            device.clock.time = choices.moment(after: device.clock.time, steps: seed % 4)
            if Int.random(in: 0..<40, using: &choices) == 0 {
                try device.reopen()
                store = try device.store()
            }
            try write(to: device, large: seed % 2 == 0, &choices)

            let found = try device.changes
            // A row of this write is its key's last one, so it was not removed.
            let all = rows + found.filter { $0.sequence > rows.last?.sequence ?? 0 }
            rows = found
            if found.count == all.count { continue }
            trims += 1
            let kept = Set(found.map(\.sequence))
            #expect(kept.isSuperset(of: Rules(all, now: device.clock.time).kept(bytes: 1 << 20)))
            #expect(kept.isSubset(of: Rules(all, now: device.clock.time).kept(bytes: .max)))
            #expect(Rules(found, now: device.clock.time).historyBytes <= 2 << 20)
        }
        #expect(trims > 1)
        withExtendedLifetime(store) {}
    }

    @Test func `values of a byte don't fill the history with rows`() throws {
        let device = try Device()
        let store = try device.store()
        let keys = (0..<1000).map { "k\($0)" }
        for round in 0..<17 { try device.write(keys.map { ($0, .boolean(round % 2 == 0)) }) }
        let rows = try device.changes.count
        // 2 MiB of rows that count 128 bytes at least, and each key's last one.
        #expect(rows <= (2 << 20) / 128 + 1000, "\(rows)")
        withExtendedLifetime(store) {}
    }

    @Test func `a write that failed has nothing removed`() throws {
        let device = try Device()
        let store = try device.store()
        for index in 0..<17 { try device.write([("k", .integer(Int64(index)))]) }
        let history = try device.database.history.values(of: key("k"), in: store)
        #expect(history.count == 16)
        try device.sql("CREATE TRIGGER refusal BEFORE INSERT ON change BEGIN SELECT RAISE(ABORT, 'refused'); END")
        #expect(throws: EngineError.self) { try device.write([("k", .integer(17))]) }
        try device.sql("DROP TRIGGER refusal")
        for index in 0..<1200 { try device.write([("churn", .integer(Int64(index)))]) }
        #expect(try device.changes.count < 1200)
        #expect(try device.database.history.values(of: key("k"), in: store) == history)
    }

    @Test(arguments: [false, true])
    func `a state is never too large to be published, whatever was removed and not uploaded`(isUploaded: Bool) throws {
        let device = try Device()
        _ = try device.database.enter(account: "A", bringingValues: false)
        try device.database.progress.completeDownload(cursor: [1])
        let store = try device.store()
        try device.write((0..<900).map { ("live \($0)", .integer(1)) })
        for round in 0..<100 {
            let keys = (0..<100).map { "gone \(round) \($0)" }
            try device.write(keys.map { ($0, .integer(1)) })
            try device.write(removing: keys)
            if isUploaded {
                try device.database.progress.markPublished([store.identifier: .max], under: device.database.origin)
            }
            device.clock.time += 1_000_000
            let state = store.snapshot().state
            #expect(state.entries.count <= 8192)
            // The latest removals are there, and the vector tells of all.
            #expect(keys.allSatisfy { state.entries[key($0)].map { $0.value == nil } == true })
            #expect(state.vector[device.database.origin] == store.shared.sequence)
        }
        #expect(store.values.count == 900)
        let state = store.snapshot().state
        try device.reopen()
        #expect(try device.store().snapshot().state == state)
    }

    @Test func `a clock that was set back goes on between two looks at it`() throws {
        let device = try Device()
        _ = try device.database.enter(account: "A", bringingValues: false)
        try device.write([("k", .integer(1))])
        try device.database.noteGarbageCollection()
        device.clock.time -= 6 * Clock.day / 24
        device.clock.step = 1
        for index in 0..<1200 { try device.write([("k", .integer(Int64(index)))]) }
        #expect(try device.changes.count < 1200)
        _ = try device.database.enter(account: "B", bringingValues: true)
        let store = try device.store()
        #expect(store.values == [key("k"): .integer(1199)])
    }

    /// Sets and removes some of 40 keys, a few of them more often than the others.
    private func write(to device: Device, large: Bool, _ choices: inout Choices) throws {
        var names: Set<String> = []
        for _ in 0..<Int.random(in: 1...40, using: &choices) {
            names.insert("k\(min(Int.random(in: 0..<40, using: &choices), Int.random(in: 0..<40, using: &choices)))")
        }
        let sorted = names.sorted()
        let removed = sorted.filter { _ in Int.random(in: 0..<8, using: &choices) == 0 }
        let values = sorted.filter { !removed.contains($0) }.map { name in
            let size = large ? Int.random(in: 0..<4000, using: &choices) : 8
            return (name, Value.data((0..<size).map { _ in UInt8.random(in: 0...255, using: &choices) }))
        }
        try device.write(values, removing: removed)
    }
}

extension Choices {
    /// Returns the next moment: soon after, or days later. With one kind of steps, the clock is sometimes set back.
    fileprivate mutating func moment(after time: UInt64, steps: UInt64) -> UInt64 {
        switch steps {
        case 0: time + UInt64.random(in: 1...1_000_000, using: &self)
        case 1: time + UInt64.random(in: 0...2 * Clock.day, using: &self)
        case 2: time + UInt64.random(in: 0...20 * Clock.day, using: &self)
        default:
            Int.random(in: 0..<8, using: &self) == 0
                ? time - 60 * Clock.day : time + UInt64.random(in: 0...16 * Clock.day, using: &self)
        }
    }
}

/// The columns of a row of the change table that matter here.
private struct ChangeOutline {
    let sequence: Int
    let key: String
    let time: UInt64
    let wall: UInt64
    /// The length of the value, in bytes; `nil` for a tombstone.
    let length: Int?
}

extension Device {
    fileprivate var changes: [ChangeOutline] {
        get throws {
            try sql("SELECT sequence, hex(key), time, wall, length(value) FROM change ORDER BY sequence").map {
                ChangeOutline(
                    sequence: Int($0[0]) ?? -1, key: $0[1], time: UInt64($0[2]) ?? 0, wall: UInt64($0[3]) ?? 0,
                    length: Int($0[4]))
            }
        }
    }
}

/// The rules for what is kept of these changes, applied without remembering anything.
private struct Rules {
    let all: [ChangeOutline]
    let now: UInt64
    let byKey: [String: [ChangeOutline]]

    init(_ all: [ChangeOutline], now: UInt64) {
        self.all = all
        self.now = now
        byKey = Dictionary(grouping: all, by: \.key)
    }

    private var horizon: UInt64 { now - 90 * Clock.day }

    private func newer(than row: ChangeOutline) -> [ChangeOutline] {
        (byKey[row.key] ?? []).filter { $0.sequence > row.sequence }
    }

    /// The rows that are not their key's last one.
    private var history: [ChangeOutline] { all.filter { !newer(than: $0).isEmpty } }

    var historyBytes: Int { history.reduce(0) { $0 + Self.bytes(of: $1) } }

    private static func bytes(of row: ChangeOutline) -> Int { (row.length ?? 0) + 128 }

    func kept(bytes: Int) -> Set<Int> {
        var sum = 0
        var tooOld: Set<Int> = []
        for row in history.reversed() {
            sum += Self.bytes(of: row)
            if sum > bytes { tooOld.insert(row.sequence) }
        }
        return Set(all.map(\.sequence).filter { !tooOld.contains($0) })
            .intersection(all.filter(isKept).map(\.sequence))
    }

    private func isKept(_ row: ChangeOutline) -> Bool {
        let newer = newer(than: row)
        let last = newer.last ?? row
        if last.length == nil, last.time < horizon, last.wall < now / 1000 { return false }
        guard let successor = newer.first else { return true }
        return newer.count <= 16 && successor.time >= horizon
    }
}
