// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Replication
import StoreEngine
import SyncEngine
import Testing

@testable import Etcd

@Suite struct EtcdRowTests {
    private let stamp = Stamp(isProvisional: true, wall: 1_700_000_000_000, counter: 3, origin: Origin(bits: 7))

    @Test func `an entry's row is the entry, and nothing else is one`() throws {
        for value in [nil, [], [1, 2, 3], [UInt8](repeating: 1, count: EtcdEntry.mostBytes)] as [[UInt8]?] {
            let entry = Entry(stamp: stamp, n: 5, value: value)
            let row = EtcdEntry(entry).encoded
            #expect(try EtcdEntry(decoding: row).entry == entry)
            for end in 0..<min(row.count, 12) {
                #expect(throws: EtcdFlaw.self) { try EtcdEntry(decoding: Array(row[..<end])) }
            }
            #expect(throws: EtcdFlaw.self) { try EtcdEntry(decoding: [0xFF] + row.dropFirst()) }
        }
    }

    @Test func `a value too large for a row is in parts`() throws {
        let value = (0..<EtcdEntry.mostBytes + 1).map { UInt8(truncatingIfNeeded: $0) }
        let entry = EtcdEntry(Entry(stamp: stamp, n: 5, value: value))
        #expect(entry.parts.flatMap(\.self) == value && entry.encoded.count < 64)
        #expect(try EtcdEntry(decoding: entry.encoded).partedBytes == value.count)
    }

    @Test func `an account's row names the last transactions, the newest first`() throws {
        var account = EtcdAccount([Bits128(high: 1, low: 2)], token: 0)
        for token in 1...300 as ClosedRange<UInt64> { account.add(token, keeping: 128) }
        #expect(account.tokens.first == 300 && account.tokens.count == 128)
        #expect(try EtcdAccount(decoding: account.encoded) == account)
        #expect(throws: EtcdFlaw.self) { try EtcdAccount(decoding: account.encoded.dropLast()) }
        let error = try #require(throws: EtcdFlaw.self) {
            try EtcdAccount(decoding: [2] + account.encoded.dropFirst())
        }
        #expect(error.isTooNew)
    }

    @Test func `a cursor is read as it was written, and what is none is that of somebody who has seen nothing`() {
        var cursor = EtcdCursor(revision: 77, token: 5)
        (cursor.missing, cursor.needsRepublication) = (["a", "b"], true)
        #expect(EtcdCursor(decoding: cursor.encoded) == cursor)
        cursor.cluster = .max
        #expect(EtcdCursor(decoding: cursor.encoded) == cursor)
        #expect(EtcdCursor(decoding: []) == nil && EtcdCursor(decoding: [9] + cursor.encoded.dropFirst()) == nil)
    }

    @Test func `a store's rows are nobody else's`() {
        let layout = EtcdLayout(Array("p".utf8))
        let entries = layout.entries("a")
        #expect(!layout.entry("a/b", Key(unchecked: "c")).starts(with: entries))
        #expect(layout.entry("a", Key(unchecked: "b/c")).starts(with: entries))
        for store in ["a/b", "%2F", "@devices", "é"] {
            let row = EtcdRow(key: layout.store(store), value: [], modified: 1)
            #expect(layout.store(of: row, under: layout.stores) == store)
        }
    }
}
