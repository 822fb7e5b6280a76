// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Replication
import StoreEngine
import Testing

@Suite struct LayerTests {
    private let layer = DomainLayer(of: "org.example.Notes", isHost: false).identifier
    private let host = DomainLayer(of: "org.example.Notes", isHost: true).identifier

    @Test func `the layers of a domain are stores of names that no app's store has`() {
        #expect(DomainLayer(layer)?.domain == "org.example.Notes" && DomainLayer(layer)?.isHost == false)
        #expect(DomainLayer(host)?.domain == "org.example.Notes" && DomainLayer(host)?.isHost == true)
        #expect(layer != host && DomainLayer("org.example.Notes") == nil && DomainLayer("@devices") == nil)
    }

    @Test func `what is written to a layer is never pending, in a state, or in a vector`() throws {
        let device = try Device()
        _ = try device.database.enter(account: "A", bringingValues: false)
        try device.database.progress.completeDownload(cursor: [1])
        try device.write([("key", .integer(1))], to: layer)
        let store = try device.store(layer)
        #expect(store.value(for: key("key")) == .integer(1) && store.snapshot().state == StoreState())
        #expect(try device.database.summaries.pendingChanges() == 0 && store.pendingChanges == 0 && !store.isReplicated)
        #expect(store.usage.keys == 1 && store.usage.bytes == 8)
    }

    @Test func `the size of a layer is known without loading it`() throws {
        let device = try Device()
        for round in 0..<3 as Range<UInt8> {
            try device.write(
                [
                    ("integer", .integer(1)), ("removed", .string("value")),
                    ("data", .data([UInt8](repeating: round, count: 10_000 + Int(round)))),
                ], to: layer)
        }
        try device.store(layer).stage(setting: [], removing: [key("removed")])
        try device.database.commit()
        let exact = try device.store(layer).usage.bytes
        #expect(try (exact...exact + 100).contains(device.database.valueBytes(ofLayer: layer)))
        #expect(try device.database.valueBytes(ofLayer: host) == 0)
    }

    @Test func `signing in, switching and clearing an account leave a layer as it was`() throws {
        let device = try Device()
        try device.write([("key", .integer(1))], to: layer)
        let generation = try device.store(layer).generation
        for account in ["A", "B"] {
            _ = try device.database.enter(account: account, bringingValues: true)
            try device.database.progress.completeDownload(cursor: [1])
        }
        _ = try device.database.clearAccount()
        try device.reopen()
        let store = try device.store(layer)
        #expect(store.values == [key("key"): .integer(1)] && store.generation == generation)
        #expect(store.knowsChanges(since: generation))
    }

    @Test func `a layer holds 16384 keys of 512 code units, and an app's store none of these`() throws {
        let device = try Device()
        let long = String(repeating: "k", count: 512)
        #expect(throws: EngineError.self) { try device.write([(long, .integer(1))]) }
        #expect(throws: EngineError.self) { try device.write([(long + "k", .integer(1))], to: layer) }
        try device.write([(long, .integer(1))], to: layer)
        try device.write((1..<16_384).map { ("\($0)", .boolean(true)) }, to: layer)
        #expect(throws: EngineError.self) { try device.write([("one more", .boolean(true))], to: layer) }
        try device.reopen()
        #expect(try device.store(layer).values[key(long)] == .integer(1))
        #expect(try device.store(layer).usage.keys == 16_384)
    }

    @Test func `a layer holds 4 MiB, and not a byte more`() throws {
        let device = try Device()
        let mebibyte = Value.data([UInt8](repeating: 1, count: 1 << 20))
        for index in 0..<4 { try device.write([("\(index)", mebibyte)], to: layer) }
        #expect(throws: EngineError.self) { try device.write([("4", .boolean(true))], to: layer) }
        #expect(try device.store(layer).usage.bytes == 4 << 20)
    }

    @Test func `an earlier value of a layer is in its history`() throws {
        let device = try Device()
        try device.write([("key", .integer(1))], to: layer)
        try device.write([("key", .integer(2))], to: layer)
        #expect(
            try device.database.history.values(of: key("key"), in: device.store(layer)).map(\.value) == [.integer(1)])
        try device.reopen()
        #expect(
            try device.database.history.values(of: key("key"), in: device.store(layer)).map(\.value) == [.integer(1)])
    }

    @Test func `what a damaged database had of a layer is saved, long keys included`() throws {
        let device = try Device()
        let long = String(repeating: "k", count: 400)
        _ = try device.database.enter(account: "A", bringingValues: false)
        try device.database.progress.completeDownload(cursor: [1])
        try device.write([(long, .integer(1))], to: layer)
        try device.write([("key", .integer(1))], to: host)
        device.close()
        _ = try ClosedDatabase(in: device.directory).setAside(at: device.clock.time, account: "A")
        try device.reopen()
        #expect(try device.store(layer).values == [key(long): .integer(1)])
        #expect(try device.store(host).values == [key("key"): .integer(1)])
    }
}
