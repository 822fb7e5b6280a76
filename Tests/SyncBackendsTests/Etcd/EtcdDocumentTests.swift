// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Replication
import StoreEngine
import SyncEngine
import Testing

@testable import Etcd

/// The rows of docs/remote-format.md.
@Suite struct EtcdDocumentTests {
    private static let store = "org.example.A/b%"
    private static let (a, b) = (Origin(bits: 0x0102_0304_0506_0708), Origin(bits: 0x1112_1314_1516_1718))
    private static let layout = EtcdLayout(Array("p".utf8))

    private static let account: EtcdAccount = {
        var account = EtcdAccount([Bits128(high: 0, low: 1), Bits128(high: 0, low: 2)], token: a.bits)
        account.add(b.bits, keeping: 128)
        return account
    }()
    private static let color = Entry(
        stamp: Stamp(isProvisional: true, wall: 1001, counter: 0, origin: a), n: 1,
        value: Value.string("red").encoded())
    private static let gone = Entry(
        stamp: Stamp(isProvisional: false, wall: 1002, counter: 3, origin: b), n: 300, value: nil)
    private static let large = EtcdEntry(
        Entry(
            stamp: Stamp(isProvisional: false, wall: 1003, counter: 0, origin: a), n: 3,
            value: [UInt8](repeating: 7, count: 1_200_004)))
    private static let device = EtcdDevice(
        RemoteDevice(identifier: "d1", name: "Ada"), publication: 0x2122_2324_2526_2728, count: 3)

    private static let rows: [(key: [UInt8], value: [UInt8])] = [
        (layout.account, account.encoded),
        (layout.entry(store, Key(unchecked: "k/é")), EtcdEntry(color).encoded),
        (layout.entry(store, Key(unchecked: "gone")), EtcdEntry(gone).encoded),
        (layout.entry(store, Key(unchecked: "large")), large.encoded),
        (layout.vector(store, a), Array("3".utf8)),
        (layout.store(store), []), (layout.gone(store), []),
        (layout.device(b), device.encoded),
    ]

    @Test func `the document's rows are what is written`() throws {
        let document = try FormatDocument().table("### Vectors of rows")
        try #require(document.count == Self.rows.count)
        for (row, written) in zip(document, Self.rows) {
            #expect(Array(row[0].utf8) == written.key, "\(row[0])")
            #expect(try octets(row[1]) == written.value, "\(row[0])")
        }
        let last = String(decoding: Self.layout.part(Self.store, Dot(origin: Self.a, n: 3), 2), as: UTF8.self)
        #expect(Self.large.parts.count == 3)
        #expect(try FormatDocument().text.contains("The last part of the large value is in `\(last)`."), "\(last)")
    }

    @Test func `what is read in the document's rows is what they are said to hold`() throws {
        let values = try FormatDocument().table("### Vectors of rows").map { try octets($0[1]) }
        #expect(try EtcdAccount(decoding: values[0]) == Self.account)
        #expect(try EtcdEntry(decoding: values[1]).entry == Self.color)
        #expect(try EtcdEntry(decoding: values[2]).entry == Self.gone)
        #expect(try EtcdEntry(decoding: values[3]).partedBytes == 1_200_004)
        #expect(try EtcdDevice(decoding: values[7]) == Self.device)
    }
}
