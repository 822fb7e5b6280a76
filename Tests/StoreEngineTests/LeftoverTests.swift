// SPDX-License-Identifier: Apache-2.0

import PropertyList
import StoreEngine
import Testing

@Suite struct LeftoverTests {
    let device: Device

    init() throws { device = try Device() }

    private func count(_ table: String) throws -> Int {
        try device.sql("SELECT count(*) FROM \(table)").first?.first.flatMap { Int($0) } ?? -1
    }

    /// Writes keys of several stores, some with values of many pages.
    private func fill(_ stores: Int = 3) throws {
        for store in 0..<stores {
            let small = (0..<400).map { ("k\($0)", Value.integer($0)) }
            let large = (0..<4).map { ("large \($0)", Value.data([UInt8](repeating: 7, count: 120_000))) }
            try device.write(small + large, to: "s\(store)")
        }
    }

    @Test func `what an account leaves when it is cleared goes bit by bit, across restarts`() throws {
        _ = try device.database.enter(account: "A", bringingValues: false)
        try fill()
        let (rows, size) = (try count("change"), try device.database.space.size())
        _ = try device.database.clearAccount()
        #expect(try count("replica") == 0 && count("change") == rows)
        #expect(device.database.leftovers.exist)
        #expect(try device.store("s0").values.isEmpty)
        // New values never get into the rows that are to go.
        try device.write([("new", .integer(1))], to: "s0")
        #expect(try device.database.leftovers.removeSome())
        let left = try count("change")
        #expect(left < rows && left > rows / 2)
        try device.reopen()
        try device.write([("newer", .integer(2))], to: "s1")
        var steps = 0
        while try device.database.leftovers.removeSome() { steps += 1 }
        #expect(steps > 6 && steps < 100)
        #expect(try count("change") == 2 && count("leftover") == 0)
        #expect(try device.database.space.size() < size / 4)
        #expect(try device.store("s0").values == [key("new"): .integer(1)])
        #expect(try device.store("s1").values == [key("newer"): .integer(2)])
    }

    @Test func `whoever can remove something is told`() throws {
        var told = 0
        device.database.leftovers.onSome = { told += 1 }
        try fill(1)
        #expect(told == 0 && !device.database.leftovers.exist)
        _ = try device.database.forget(store: "s0")
        #expect(told == 1 && device.database.leftovers.exist)
    }

    @Test func `values have the room that what is left would take`() throws {
        _ = try device.database.enter(account: "A", bringingValues: false)
        try fill()
        let size = try device.database.space.size()
        _ = try device.database.clearAccount()
        try device.database.space.bound(fileSize: size + 20_000)
        try fill()
        #expect(try device.store("s2").values.count == 404)
    }
}
