// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Replication
import Sealing
import SeededRandom
import StoreEngine
import SyncEngine
import Testing

@testable import BackendSupport
@testable import Blobs

@Suite struct HeadTests {
    static let stamp = Stamp(isProvisional: true, wall: 1 << 45, counter: 65535, origin: Origin(bits: 8))
    static let part = WrittenPart(
        digest: Bits128(high: 6, low: 7),
        vectorSegment: Bits128(high: 5, low: 5),
        vector: VersionVector([Origin(bits: 3): 9, Origin(bits: 8): 1]),
        form: .whole([
            BaseSegment(bucket: Bucket(depth: 1, prefix: 0), name: .zero),
            BaseSegment(bucket: Bucket(depth: 2, prefix: 2), name: Bits128(high: 1, low: 1)),
            BaseSegment(bucket: Bucket(depth: 2, prefix: 3), name: Bits128(high: 9, low: 9)),
        ]),
        tail: [
            Key(unchecked: "k"): Entry(stamp: stamp, n: 1, value: [1]),
            Key(unchecked: String(repeating: "x", count: 300)): Entry(
                stamp: Stamp(isProvisional: false, wall: 0, counter: 0, origin: Origin(bits: 3)),
                n: 9,
                value: nil
            ),
        ],
        removed: [Key(unchecked: ""), Key(unchecked: "nul\0")]
    )
    static let head = WrittenHead(
        head: Head(
            account: Bits128(high: 1, low: 2),
            origin: Origin(bits: 3),
            sequence: 4,
            time: 5,
            device: RemoteDevice(identifier: "device", name: "Ada’s laptop"),
            index: Bits128(high: 7, low: 7),
            parts: [:]
        ),
        absent: ["a", "z"],
        parts: [
            "org.example.A": part,
            "b": WrittenPart(digest: .zero, vector: VersionVector(), form: .whole([]), tail: [:], removed: []),
            "c": WrittenPart(
                digest: Bits128(high: 4, low: 4),
                vector: VersionVector([Origin(bits: 8): 2]),
                form: .over(replaced: [2: .zero, 5: Bits128(high: 3, low: 3)], forgotten: [Key(unchecked: "gone")]),
                tail: [Key(unchecked: "k"): Entry(stamp: stamp, n: 2, value: nil)],
                removed: [Key(unchecked: "r")]
            ),
        ]
    )

    @Test func `a head is read as it was written`() throws {
        #expect(try WrittenHead(decoding: Self.head.encoded()) == Self.head)
    }

    @Test func `a torn head is none, wherever it is torn`() throws {
        let bytes = Self.head.encoded()
        for length in 0..<bytes.count {
            #expect(throws: BlobFlaw.self) { try WrittenHead(decoding: Array(bytes[..<length])) }
            #expect(throws: BlobFlaw.self) {
                try WrittenHead(decoding: bytes[..<length] + [UInt8](repeating: 0, count: bytes.count - length))
            }
        }
    }

    @Test func `a flipped bit makes a head none, and never a newer one`() throws {
        let bytes = Self.head.encoded()
        for bit in 0..<bytes.count * 8 {
            var flipped = bytes
            flipped[bit / 8] ^= 1 << (bit % 8)
            do throws(BlobFlaw) {
                _ = try WrittenHead(decoding: flipped)
                Issue.record("bit \(bit)")
            } catch {
                #expect(error != .tooNew)
            }
        }
    }

    @Test func `whatever has a right sum is read as what it encodes, or refused`() throws {
        var random = SplitMix(seed: 1)
        let content = Array(Self.head.encoded().dropLast(32))
        for _ in 0..<20_000 {
            var mutated = content
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let place = Int.random(in: 5..<mutated.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: mutated[place] = .random(in: 0...255, using: &random)
                case 1: mutated.remove(at: place)
                default: mutated.insert(.random(in: 0...255, using: &random), at: place)
                }
            }
            var encoder = CanonicalEncoder()
            encoder.raw(mutated)
            guard let head = try? WrittenHead(decoding: Envelope.seal(encoder)) else { continue }
            // Only padding, and an origin that nothing names, may differ.
            #expect(try WrittenHead(decoding: head.encoded()) == head)
        }
    }

    @Test func `a newer format is told from damage`() {
        var encoder = CanonicalEncoder()
        encoder.raw(Envelope.head)
        encoder.varint(2)
        encoder.raw([1, 2, 3])
        #expect(throws: BlobFlaw.tooNew) { try WrittenHead(decoding: Envelope.seal(encoder)) }
    }

    @Test func `two heads that follow each other never have one length`() {
        var head = Self.head
        var last: Int?
        var random = SplitMix(seed: 2)
        for sequence in 0..<500 {
            head.head.sequence = UInt64(sequence)
            // The content may even grow by exactly what the padding shrinks.
            head.head.device = RemoteDevice(
                identifier: "d",
                name: String(repeating: "n", count: Int.random(in: 0...40, using: &random))
            )
            let length = head.encoded(unlikeLength: last).count
            #expect(length != last)
            last = length
        }
    }

    @Test func `a long device name is cut between characters`() throws {
        var head = Self.head
        head.head.device = RemoteDevice(identifier: "d", name: String(repeating: "👩‍👩‍👧‍👦", count: 40))
        let name = try WrittenHead(decoding: head.encoded()).head.device.name
        #expect(name == String(repeating: "👩‍👩‍👧‍👦", count: 10))
    }

    @Test func `segments and markers are read as they were written, and not otherwise`() throws {
        let segment = Segment(store: "s", bucket: .whole, entries: Self.part.tail)
        #expect(try Segment(decoding: segment.encoded(), .plain) == segment)
        for length in 0..<segment.encoded().count {
            #expect(throws: BlobFlaw.self) { try Segment(decoding: Array(segment.encoded()[..<length]), .plain) }
        }
        let marker = AccountMarker(identifier: Bits128(high: 1, low: 1), time: 77)
        #expect(try AccountMarker(decoding: marker.encoded()) == marker)
        for bit in 0..<marker.encoded().count * 8 {
            var flipped = marker.encoded()
            flipped[bit / 8] ^= 1 << (bit % 8)
            #expect(throws: BlobFlaw.self) { try AccountMarker(decoding: flipped) }
        }
    }

    @Test func `what no honest writer writes is refused`() {
        let origin = Origin(bits: 1)
        func segment(_ entry: Entry, key: String = "k", bucket: Bucket = .whole) -> [UInt8] {
            Segment(store: "s", bucket: bucket, entries: [Key(unchecked: key): entry]).encoded()
        }
        let stamp = Stamp(isProvisional: false, wall: 1, counter: 0, origin: origin)
        let late = Stamp(isProvisional: false, wall: Stamp.wallLimit, counter: 0, origin: origin)
        let wrong = Bucket(depth: 1, prefix: 1 - Wrapping.plain.hash(of: Key(unchecked: "k")) >> 15)
        for bytes in [
            segment(Entry(stamp: late, n: 1, value: nil)),
            segment(Entry(stamp: stamp, n: 0, value: nil)),
            segment(Entry(stamp: stamp, n: 1 << 63, value: nil)),
            segment(Entry(stamp: stamp, n: 1, value: nil), key: String(repeating: "k", count: 4097)),
            segment(Entry(stamp: stamp, n: 1, value: nil), bucket: wrong),
            segment(Entry(stamp: stamp, n: 1, value: nil), bucket: Bucket(depth: 17, prefix: 0)),
        ] {
            #expect(throws: BlobFlaw.self) { try Segment(decoding: bytes, .plain) }
        }
    }

    @Test func `a cursor that is none is that of somebody who has seen nothing`() {
        var cursor = BlobCursor()
        cursor.heads = [Bits128(high: 1, low: 2), Bits128(high: 0, low: 3)]
        cursor.observations.look(
            5,
            heads: [Bits128(high: 1, low: 1), Bits128(high: 3, low: 1)],
            forgotten: [Bits128(high: 3, low: 1)],
            segments: [Bits128(high: 2, low: 1), Bits128(high: 1, low: 1)],
            leftovers: ["h/.x.tmp"]
        )
        cursor.own = HeadIdentity(origin: Origin(bits: 5), digest: Bits128(high: 6, low: 6), sequence: 300)
        #expect(BlobCursor(decoding: cursor.encoded()) == cursor)
        #expect(BlobCursor(decoding: cursor.encoded() + [0]) == BlobCursor())
        #expect(BlobCursor(decoding: []) == BlobCursor())
    }

    @Test func `a cursor of the former format is read`() {
        var cursor = BlobCursor()
        cursor.heads = [Bits128(high: 1, low: 2)]
        // It ends with the time and four empty lists, of which the former format has three.
        let bytes = cursor.encoded()
        #expect(bytes.suffix(5) == [0, 0, 0, 0, 0])
        #expect(BlobCursor(decoding: [2] + bytes.dropFirst().dropLast()) == cursor)
    }
}
