// SPDX-License-Identifier: Apache-2.0

import Replication
import StoreEngine
import Testing

/// Who wrote to an account under which origins.
@Suite struct WriterTests {
    let device: Device
    var database: UserDatabase { device.database }

    init() throws {
        device = try Device()
        _ = try database.enter(account: "B", bringingValues: false)
    }

    private func writers(_ origins: UInt64...) throws -> [String?] {
        try origins.map { try database.writers.device(under: Origin(bits: $0)) }
    }

    @Test func `writers outlive the process, and belong to their account`() throws {
        try database.writers.note([Origin(bits: 1): "phone", Origin(bits: .max): "desk"])
        try database.writers.note([Origin(bits: 1): "tablet"])
        try device.reopen()
        #expect(try writers(1, .max, 2) == ["tablet", "desk", nil])
        _ = try database.enter(account: "A", bringingValues: false)
        #expect(try writers(1) == [nil])
        try database.writers.note([Origin(bits: 1): "phone", Origin(bits: 2): "phone"])
        // Both turn out to be one account.
        try database.rename(accountTo: "A", aliases: ["B"])
        #expect(try writers(1, 2, .max) == ["tablet", "phone", "desk"])
        _ = try database.clearAccount()
        _ = try database.enter(account: "A", bringingValues: false)
        #expect(try writers(1, 2, .max) == [nil, nil, nil])
    }

    @Test func `of more writers than are kept, those found first are forgotten`() throws {
        for origin in 1...1030 as ClosedRange<UInt64> { try database.writers.note([Origin(bits: origin): "phone"]) }
        #expect(try writers(1, 6, 7, 1030) == [nil, nil, "phone", "phone"])
    }
}
