// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import Foundation
import PropertyList
import Replication
import Sealing
import StoreEngine
import SyncEngine
import Testing

@testable import BackendSupport
@testable import Blobs

/// The blobs of docs/remote-format.md. The code must write these bytes, and read in them what the document says.
@Suite struct RemoteFormatDocumentTests {
    private static let store = "org.example.A"
    private static let account = Bits128(high: 0, low: 1)
    private static let (a, b) = (Origin(bits: 0x0102_0304_0506_0708), Origin(bits: 0x1112_1314_1516_1718))
    private static let (color, size, gone) = (Key(unchecked: "color"), Key(unchecked: "size"), Key(unchecked: "gone"))

    private static func entry(_ origin: Origin, _ n: UInt64, _ value: Value?, provisional: Bool = false) -> Entry {
        let stamp = Stamp(isProvisional: provisional, wall: 1000 + n, counter: 0, origin: origin)
        return Entry(stamp: stamp, n: n, value: value?.encoded())
    }

    /// The state that both devices publish.
    private static let state = StoreState(
        entries: [color: entry(b, 2, nil), size: entry(b, 1, .real(1.5))], vector: VersionVector([a: 2, b: 2]))

    /// The former entries, by key.
    private static let former = [
        color: entry(a, 1, .string("red"), provisional: true), gone: entry(a, 2, .integer(7)),
        size: entry(b, 1, .real(1.5)),
    ]

    private static func segment(_ bucket: Bucket, _ keys: Set<Key>) -> Segment {
        Segment(store: store, bucket: bucket, entries: former.filter { keys.contains($0.key) })
    }

    private static func part(
        _ state: StoreState, _ base: [BaseSegment], vector: Bits128 = .zero, tail: Set<Key>, removed: Set<Key>
    ) -> Head.Part {
        Head.Part(
            digest: StateDigests(of: state, store: store).state, vector: state.vector, vectorSegment: vector,
            base: base, tail: state.entries.filter { tail.contains($0.key) }, removed: removed)
    }

    private static func head(
        _ origin: Origin, sequence: UInt64, time: UInt64, _ device: RemoteDevice, index: Bits128 = .zero,
        _ part: WrittenPart
    ) -> [UInt8] {
        let head = Head(
            account: account, origin: origin, sequence: sequence, time: time, device: device, index: index, parts: [:])
        return WrittenHead(head: head, absent: [], parts: [store: part]).encoded()
    }

    /// What the first device writes: a base of one bucket, a tail over it in an index, and a head over that.
    private static func writtenOverIndex() throws -> [String: [UInt8]] {
        let segment = segment(.whole, [color, gone]).encoded()
        let contextBase = VersionVector([a: 2])
        let vector = VectorSegment.encode(contextBase)
        let base = [BaseSegment(bucket: .whole, name: Bits128(digestOf: segment))]
        let indexedState = StoreState(entries: former, vector: VersionVector([a: 2, b: 1]))
        let indexed = part(indexedState, base, vector: Bits128(digestOf: vector), tail: [size], removed: [])
        let index = Index.encode([store: indexed.written(over: contextBase)])
        let present = part(
            state, base, vector: Bits128(digestOf: vector), tail: [size, color], removed: [gone])
        let written = try #require(present.written(over: indexed, .plain))
        let head = head(
            b, sequence: 3, time: 77, RemoteDevice(identifier: "d1", name: "Ada"), index: Bits128(digestOf: index),
            written)
        return [
            "marker": AccountMarker(identifier: account, time: 77).encoded(), "bucket": segment, "context": vector,
            "index": index, "head": head,
        ]
    }

    /// What the second device writes: the same state over a base of several buckets.
    private static func writtenWhole() -> [String: [UInt8]] {
        let buckets = [
            segment(Bucket(depth: 3, prefix: 1), [gone]), segment(Bucket(depth: 2, prefix: 1), [color]),
            segment(Bucket(depth: 1, prefix: 1), [size]),
        ]
        let base =
            [BaseSegment(bucket: Bucket(depth: 3, prefix: 0), name: .zero)]
            + buckets.map { BaseSegment(bucket: $0.bucket, name: Bits128(digestOf: $0.encoded())) }
        let part = part(state, base, tail: [color], removed: [gone]).written(over: VersionVector())
        let head = head(
            Origin(bits: 0x2122_2324_2526_2728), sequence: 17, time: 88, RemoteDevice(identifier: "d2", name: "Bob"),
            part)
        return [
            "bucket 001": buckets[0].encoded(), "bucket 01": buckets[1].encoded(), "bucket 1": buckets[2].encoded(),
            "head of d2": head,
        ]
    }

    @Test func `the blobs in the document are what is written`() throws {
        var written = try Self.writtenOverIndex()
        written.merge(Self.writtenWhole()) { $1 }
        let rows = try FormatDocument().table("## Vectors of blobs")
        #expect(Set(rows.map { $0[0] }) == Set(written.keys))
        for row in rows {
            let bytes = try octets(row[1])
            #expect(written[row[0]] == bytes, "\(row[0])")
            let hasSum = row[0] == "marker" || row[0].hasPrefix("head")
            #expect((hasSum ? Head.digest(of: bytes) : Bits128(digestOf: bytes)).description == row[2], "\(row[0])")
        }
        let digest = "The digest of the state is `\(StateDigests(of: Self.state, store: Self.store).state)`"
        #expect(try FormatDocument().text.contains(digest), "\(digest)")
    }

    /// A storage with the document's blobs. Of the heads it has only these.
    private func place(_ heads: [String: String]) throws -> MemoryStorage {
        var blobs: [String: [UInt8]] = [:]
        for row in try FormatDocument().table("## Vectors of blobs") {
            if row[0] == "marker" {
                blobs["a/\(Self.account)"] = try octets(row[1])
            } else if let origin = heads[row[0]] {
                blobs["h/\(origin)"] = try octets(row[1])
            } else if !row[0].hasPrefix("head") {
                blobs["s/\(row[2])"] = try octets(row[1])
            }
        }
        let storage = MemoryStorage()
        storage.blobs = blobs
        return storage
    }

    @Test(arguments: [
        ["head": "1112131415161718"], ["head of d2": "2122232425262728"],
        ["head": "1112131415161718", "head of d2": "2122232425262728"],
    ])
    func `a device that finds the document's blobs has the state that they are said to hold`(
        heads: [String: String]
    ) async throws {
        let backend = try FaultConformance.remote(try place(heads)).makeBackend()
        let device = BackendDevice("late", seed: 9, backend: backend)
        try await device.signIn(creating: false)
        #expect(device.account == Self.account.description)
        #expect(try await device.pull())
        #expect(device.problems.isEmpty)
        #expect(device.stores == [Self.store: Self.state])
    }

    @Test func `who wrote the document's heads is read in them`() throws {
        let rows = try FormatDocument().table("## Vectors of blobs")
        let heads = try rows.filter { $0[0].hasPrefix("head") }.map { try WrittenHead(decoding: octets($0[1])).head }
        #expect(heads.map(\.device.identifier) == ["d1", "d2"] && heads.map(\.device.name) == ["Ada", "Bob"])
        #expect(heads.map(\.sequence) == [3, 17] && heads.map(\.time) == [77, 88])
        #expect(heads.allSatisfy { $0.account == Self.account })
        let marker = try #require(rows.first { $0[0] == "marker" })
        #expect(try AccountMarker(decoding: octets(marker[1])) == AccountMarker(identifier: Self.account, time: 77))
    }

    @Test func `a blob that the document refuses is refused, and for what it is`() throws {
        for row in try FormatDocument().table("### Refused blobs") {
            let (kind, bytes) = (row[0], try octets(row[1]))
            let flaw = #expect(throws: BlobFlaw.self, "\(row[3])") { try read(bytes, as: kind) }
            #expect(flaw?.wordInTheDocument == row[2], "\(row[3])")
        }
    }

    private func read(_ bytes: [UInt8], as kind: String) throws {
        switch kind {
        case "marker": _ = try AccountMarker(decoding: bytes)
        case "bucket": _ = try Segment(decoding: bytes, .plain)
        case "context": _ = try VectorSegment.decode(bytes)
        case "index": _ = try Index.decode(bytes)
        default: _ = try WrittenHead(decoding: bytes)
        }
    }
}

extension BlobFlaw {
    fileprivate var wordInTheDocument: String {
        switch self {
        case .foreign: "none of ours"
        case .tooNew: "newer"
        case .tooOld: "older"
        case .otherKey: "another account's"
        case .damaged: "damaged"
        }
    }
}
