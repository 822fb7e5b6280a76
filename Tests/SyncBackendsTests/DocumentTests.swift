// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import StoreEngine
import SyncEngine
import Testing

@testable import SyncBackends

/// The vectors of docs/remote-format.md, made by this code. What the document has has to be what is written.
@Suite struct RemoteFormatDocumentTests {
    /// A small account: one device, one store with a base of one bucket, a tail over it, and a context with a segment.
    private struct Vectors {
        let segment: Segment
        let context: [UInt8]
        let index: [UInt8]
        let head: WrittenHead
        let state: StoreState
        let part: Head.Part

        init() {
            let (a, b) = (Origin(bits: 0x0102_0304_0506_0708), Origin(bits: 0x1112_1314_1516_1718))
            func entry(_ origin: Origin, _ n: UInt64, _ value: Value?, provisional: Bool = false) -> Entry {
                let stamp = Stamp(isProvisional: provisional, wall: 1000 + n, counter: 0, origin: origin)
                return Entry(stamp: stamp, n: n, value: value?.encoded())
            }
            let (color, size, gone) = (Key(unchecked: "color"), Key(unchecked: "size"), Key(unchecked: "gone"))
            segment = Segment(
                store: "org.example.A",
                bucket: .whole,
                entries: [color: entry(a, 1, .string("red"), provisional: true), gone: entry(a, 2, .integer(7))]
            )
            let contextBase = Context([a: 2])
            context = ContextSegment.encode(contextBase)
            let base = [BaseSegment(bucket: .whole, name: Bits128(digestOf: segment.encoded()))]
            let contextName = Bits128(digestOf: context)
            func part(_ state: StoreState, _ tail: Set<Key>, _ removed: Set<Key>) -> Head.Part {
                Head.Part(
                    digest: StateDigests(of: state, store: "org.example.A").state,
                    context: state.context,
                    contextSegment: contextName,
                    base: base,
                    tail: state.entries.filter { tail.contains($0.key) },
                    removed: removed
                )
            }
            var state = StoreState(entries: segment.entries, context: contextBase)
            state.entries[size] = entry(b, 1, .real(1.5))
            state.context.insert(Dot(origin: b, n: 1))
            let indexed = part(state, [size], [])
            index = Index.encode(["org.example.A": indexed.written(over: contextBase)])
            state.entries[gone] = nil
            state.entries[color] = entry(b, 2, nil)
            state.context.insert(Dot(origin: b, n: 2))
            self.state = state
            self.part = part(state, [size, color], [gone])
            head = WrittenHead(
                head: Head(
                    account: Bits128(high: 0, low: 1),
                    origin: b,
                    sequence: 3,
                    time: 77,
                    device: RemoteDevice(identifier: "d1", name: "Ada"),
                    index: Bits128(digestOf: index),
                    parts: [:]
                ),
                absent: [],
                parts: self.part.written(over: indexed).map { ["org.example.A": $0] } ?? [:]
            )
        }

        var table: [(String, [UInt8])] {
            [
                ("marker", AccountMarker(identifier: Bits128(high: 0, low: 1), time: 77).encoded()),
                ("bucket", segment.encoded()), ("context", context), ("index", index), ("head", head.encoded()),
            ]
        }
    }

    private static func hex(_ bytes: some Sequence<UInt8>) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(separator: " ")
    }

    private var document: String {
        get throws {
            let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .appending(path: "../../docs/remote-format.md")
            return try String(contentsOf: page, encoding: .utf8)
        }
    }

    @Test func `the vectors in the document are what is written`() throws {
        let document = try document
        for (name, bytes) in Vectors().table {
            let digest = name == "marker" || name == "head" ? Head.digest(of: bytes) : Bits128(digestOf: bytes)
            let row = "| \(name) | `\(Self.hex(bytes))` | `\(digest)` |"
            #expect(document.contains(row), "\(row)")
        }
        let digest = "`\(Vectors().part.digest)`"
        #expect(document.contains("The digest of the state is \(digest)"), "\(digest)")
    }

    @Test func `what the vectors say is read out of them`() throws {
        let vectors = Vectors()
        let written = try WrittenHead(decoding: vectors.head.encoded())
        let contextBase = try ContextSegment.decode(vectors.context)
        let index = try #require(
            try Index.decode(vectors.index)["org.example.A"]?.part(over: nil, context: contextBase))
        let part = try #require(written.parts["org.example.A"]?.part(over: index, context: Context()))
        #expect(part == vectors.part)
        let state = part.state(over: try Segment(decoding: vectors.segment.encoded()).entries)
        #expect(state == vectors.state)
        #expect(StateDigests(of: state, store: "org.example.A").state == part.digest)
    }
}
