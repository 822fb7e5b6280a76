// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Replication
import StoreEngine
import Testing

@Suite struct LimitTests {
    private func device(keys: Int = 4, totalBytes: Int = 100, valueBytes: Int = 60) throws -> Device {
        try Device(limits: Limits(keys: keys, totalBytes: totalBytes, valueBytes: valueBytes))
    }

    private func data(_ count: Int) -> Value { .data([UInt8](repeating: 1, count: count)) }

    private func violation(_ body: () throws -> Void) -> QuotaViolation? {
        do {
            try body()
            return nil
        } catch EngineError.quota(let violation) {
            return violation
        } catch {
            Issue.record("\(error)")
            return nil
        }
    }

    @Test func `as many keys as the limit fit, and one more does not`() throws {
        let device = try device()
        let store = try device.store()
        try device.write((1...4).map { ("k\($0)", .boolean(true)) })
        let before = Picture(store)
        let violation = violation { try device.write([("k1", .boolean(false)), ("k5", .boolean(true))]) }
        #expect(violation?.limit == .keys)
        #expect((violation?.maximum, violation?.used, violation?.needed) == (4, 4, 5))
        #expect(violation?.keys == [key("k1"), key("k5")])
        #expect(violation?.available == 0)
        #expect(Picture(store) == before)
        try device.write([("k5", .boolean(true))], removing: ["k1"])
        #expect(store.countsRight)
    }

    @Test func `all bytes fit exactly, and one more does not`() throws {
        let device = try device()
        try device.write([("a", data(60)), ("b", data(40))])
        let violation = violation { try device.write([("c", .boolean(true))]) }
        #expect(violation?.limit == .totalBytes)
        #expect((violation?.maximum, violation?.used, violation?.needed) == (100, 100, 101))
        try device.write([("a", data(59)), ("c", .boolean(true))])
    }

    @Test func `a value of the limit fits, and one byte more does not`() throws {
        let device = try device()
        try device.write([("a", data(60))])
        let violation = violation { try device.write([("a", data(61)), ("b", data(1))]) }
        #expect(violation?.limit == .valueBytes)
        #expect((violation?.maximum, violation?.needed) == (60, 61))
        #expect(violation?.keys == [key("a"), key("b")])
    }

    @Test func `what was removed or hidden does not count`() throws {
        let device = try device()
        let store = try device.store()
        for index in 0..<20 {
            try device.write([("k\(index)", data(50))])
            try device.write(removing: ["k\(index)"])
        }
        var stranger = Stranger()
        let hidden = Entry(
            stamp: stranger.entry(nil).stamp,
            n: stranger.n,
            value: data(2000).encoded()
        )
        try device.join(stranger.plan(["hidden": hidden], in: store))
        #expect(store.usage.keys == 0 && store.usage.bytes == 0)
        try device.write([("a", data(60)), ("b", data(40))])
    }

    @Test func `over quota after a merge it may shrink or stay, and not grow`() throws {
        let device = try device()
        let store = try device.store()
        try device.write([("a", data(50)), ("b", data(40))])
        var stranger = Stranger()
        let taken = Dictionary(uniqueKeysWithValues: (1...4).map { ("s\($0)", stranger.entry(data(20))) })
        try device.join(stranger.plan(taken, in: store))
        #expect(store.usage.keys == 6 && store.usage.bytes == 170)
        #expect(store.isOverQuota)

        #expect(violation { try device.write([("a", data(51))]) }?.limit == .totalBytes)
        #expect(violation { try device.write([("new", .boolean(true))]) }?.limit == .keys)
        try device.write([("a", data(50).reversed)])
        try device.write([("a", data(30))])
        #expect(violation { try device.write([("a", data(31))]) }?.limit == .totalBytes)
        try device.write([("c", data(10))], removing: ["b"])
        try device.write(removing: ["s1", "s2"])
        try device.write(removing: ["s3"])
        #expect(!store.isOverQuota)
        try device.reopen()
        #expect(try device.store().countsRight)
        try device.write([("d", data(30))])
    }

    @Test func `the keys that do not fit are the newest, whoever asks`() throws {
        let device = try device(keys: 2)
        let store = try device.store()
        var stranger = Stranger()
        let taken = [
            "new": stranger.entry(data(1), wall: 30), "old": stranger.entry(data(1), wall: 10),
            "middle": stranger.entry(data(1), wall: 20), "gone": stranger.entry(nil, wall: 1),
        ]
        try device.join(stranger.plan(taken, in: store))
        #expect(store.overflow == [key("new")])
        try device.reopen()
        #expect(try device.store().overflow == [key("new")])
    }

    @Test func `local keys have limits of their own`() throws {
        let device = try device(keys: 2)
        let store = try device.store(local: ["local*"])
        try device.write([("a", data(1)), ("b", data(1)), ("local1", data(1)), ("local2", data(1))])
        #expect(store.usage.keys == 2)
        #expect(violation { try device.write([("local3", data(1))]) }?.limit == .keys)
        #expect(violation { try device.write([("c", data(1))]) }?.limit == .keys)
        try device.write(removing: ["local1"])
        #expect(violation { try device.write([("c", data(1))]) }?.limit == .keys)
        try device.write([("local3", data(1))])
    }

    @Test func `tombstones do not keep a store from being joined`() throws {
        let device = try device()
        let store = try device.store()
        var stranger = Stranger()
        let many = Dictionary(uniqueKeysWithValues: (0..<9000).map { ("k\($0)", stranger.entry(nil)) })
        try device.join(stranger.plan(many, in: store))
        #expect(store.canHold(stranger.plan(["v": stranger.entry(data(1))], in: store)))
        let values = Dictionary(uniqueKeysWithValues: (0..<8193).map { ("v\($0)", stranger.entry(.boolean(true))) })
        #expect(!store.canHold(stranger.plan(values, in: store)))
    }

    @Test func `a store that more devices have written to than any account has is not joined any further`() throws {
        let device = try device()
        let store = try device.store()
        func plan(_ origins: UInt64) -> JoinPlan {
            let seen = (1...origins).map { (Origin(bits: $0), UInt64(1)) }
            return JoinPlan(vector: VersionVector(Dictionary(uniqueKeysWithValues: seen)))
        }
        #expect(store.canHold(plan(65536)))
        #expect(!store.canHold(plan(65537)))
        // A store that already has more can still be joined, but with no further origins.
        try device.join(plan(65540))
        #expect(store.canHold(plan(65540)) && !store.canHold(plan(65541)))
    }
}

extension Store {
    /// Whether the usage is the sum over the shared values.
    fileprivate var countsRight: Bool {
        let values = snapshot().state.entries.values.compactMap { $0.value.flatMap { try? Value(encoded: $0) } }
        return usage.keys == values.count && usage.bytes == values.reduce(0) { $0 + $1.size }
    }
}

extension Value {
    fileprivate var reversed: Value {
        if case .data(let bytes) = self { .data(bytes.map { $0 ^ 0xFF }) } else { self }
    }
}
