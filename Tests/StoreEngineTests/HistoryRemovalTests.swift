// SPDX-License-Identifier: Apache-2.0

import PropertyList
import StoreEngine
import Testing

@Suite struct HistoryRemovalTests {
    let device: Device

    init() throws { device = try Device() }

    private let size = 3700

    /// Writes two keys of each of several stores in turn, at intervals of a second.
    private func fill(rounds: Int, stores: Int = 4) throws {
        for round in 0..<rounds {
            for store in 0..<stores {
                device.clock.time += 1_000_000
                let value = [UInt8](repeating: UInt8(round % 251), count: size)
                try device.write([("k", .data(value)), ("local", .data(value))], to: "s\(store)")
            }
        }
    }

    private func histories(_ stores: Int = 4) throws -> [FormerValue] {
        try (0..<stores).flatMap { number in
            let store = try device.store("s\(number)", local: ["local"])
            return try ["k", "local"].flatMap { try device.database.history.values(of: key($0), in: store) }
        }
    }

    @Test func `the values that were replaced first give way, of all stores, and nothing else`() throws {
        let stores = try (0..<4).map { try device.store("s\($0)", local: ["local"]) }
        try fill(rounds: 12)
        let before = try histories()
        let states = try (0..<4).map { try Picture(device.store("s\($0)", local: ["local"])) }
        let full = try device.database.space.size()
        #expect(try device.database.history.shrink(toSize: full * 2 / 3) <= full * 2 / 3)
        let after = try histories()
        #expect(after.count < before.count && after.count > before.count / 3)
        // The newest part of the history is left.
        let newest = before.map(\.time).sorted(by: >).prefix(after.count)
        #expect(after.map(\.time).sorted(by: >) == Array(newest))
        #expect(try (0..<4).map { try Picture(device.store("s\($0)", local: ["local"])) } == states)
        try device.reopen()
        #expect(try (0..<4).map { try Picture(device.store("s\($0)", local: ["local"])) } == states)
        #expect(try histories() == after)
        #expect(stores.count == 4)
    }

    @Test func `history that is removed is not counted, and writes go on as before`() throws {
        let stores = try (0..<4).map { try device.store("s\($0)", local: ["local"]) }
        try fill(rounds: 40)
        #expect(try device.historySize() > 40 * 4 * size)
        try device.clearHistory()
        #expect(try device.historySize() == 0)
        #expect(try histories().isEmpty)
        #expect(try device.database.space.size() < 200_000)
        try fill(rounds: 1100, stores: 1)
        #expect(try histories().count == 2 * 16)
        #expect(stores[0].values.count == 2)
        try device.reopen()
        #expect(try histories().count == 2 * 16)
    }

    @Test func `a write for which a file may not grow makes room, and only live values are refused`() throws {
        try device.database.space.bound(fileSize: 1 << 20)
        let stores = try (0..<4).map { try device.store("s\($0)", local: ["local"]) }
        try fill(rounds: 100)
        // Other devices' changes count as well.
        var stranger = Stranger()
        for round in 0..<600 {
            let entry = stranger.entry(.data([UInt8](repeating: UInt8(round % 251), count: size)))
            try device.join(stranger.plan(["k": entry], in: device.store("s0")), to: "s0")
        }
        var error: EngineError?
        var count = 0
        while error == nil {
            do {
                try device.store("live\(count / 100)").stage(
                    setting: [(key("\(count)"), .data([UInt8](repeating: 1, count: size)))], removing: [])
                try device.database.commit()
                count += 1
            } catch let failure as EngineError { error = failure }
        }
        #expect(error == .diskFull && count > 100, "\(count)")
        #expect(try device.historySize() == 0)
        #expect(stores[0].value(for: key("k")) == .data([UInt8](repeating: UInt8(599 % 251), count: size)))
    }

    @Test func `of a history that was taken from a key the rest is in order`() throws {
        var choices = Choices(seed: 7)
        for round in 0..<300 {
            device.clock.time += 1_000_000
            let name = "k\(Int.random(in: 0..<5, using: &choices))"
            try device.write([(name, .integer(Int64(round)))], to: "s\(Int.random(in: 0..<3, using: &choices))")
            if round % 37 == 0 {
                _ = try device.database.history.shrink(toSize: device.database.space.size() - 2048)
            }
        }
        for number in 0..<3 {
            let store = try device.store("s\(number)")
            for name in 0..<5 {
                let history = try device.database.history.values(of: key("k\(name)"), in: store)
                #expect(history.map(\.time) == history.map(\.time).sorted(by: >))
                #expect(history.count <= 16)
            }
        }
    }
}
