// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Replication
import Sealing
import SeededRandom
import StoreEngine
import Testing

@testable import Blobs

@Suite struct BaseTests {
    /// Reads a part as a reader would, from all segments that were ever written.
    private func read(_ part: Head.Part, _ segments: [Bits128: [UInt8]]) throws -> StoreState {
        var entries: [Key: Entry] = [:]
        for piece in part.base where piece.name != .zero {
            let segment = try Segment(decoding: try #require(segments[piece.name]), .plain)
            #expect(segment.bucket == piece.bucket)
            entries.merge(segment.entries) { _, twice in
                Issue.record("a key is in two segments")
                return twice
            }
        }
        return part.state(over: entries)
    }

    @Test(arguments: 1...12)
    func `whatever changed since, a part and its segments are the state`(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        var (state, former, n): (StoreState, Head.Part?, UInt64) = (StoreState(), nil, 0)
        var (segments, contents): ([Bits128: [UInt8]], [Bits128: [Key: Bits128]]) = ([:], [:])
        var contextBase = VersionVector()
        let limits = DraftLimits(stores: 20, otherTails: 20 << 10)
        let scale = [3, 30, 300, 1200].randomElement(using: &random) ?? 3
        for _ in 0..<25 {
            for _ in 0..<Int.random(in: 0...scale, using: &random) {
                let key = Key(unchecked: "key \(Int.random(in: 0...scale, using: &random))")
                if Int.random(in: 0..<4, using: &random) == 0 {
                    state.entries[key] = nil
                    continue
                }
                n += 1
                let stamp = Stamp(isProvisional: false, wall: n, counter: 0, origin: Origin(bits: n % 3))
                let value = [UInt8](repeating: 7, count: Int.random(in: 0...400, using: &random))
                state.entries[key] = Entry(stamp: stamp, n: n, value: n % 5 == 0 ? nil : value)
                state.vector.insert(Dot(origin: stamp.origin, n: n))
            }
            let digests = StateDigests(of: state, store: "s")
            let below = (former?.base ?? []).reduce(into: [:]) { $0.merge(contents[$1.name] ?? [:]) { $1 } }
            let draft = PartDraft(
                state,
                digests: digests,
                store: "s",
                over: former,
                contents: below,
                contextBase: contextBase,
                limits: limits,
                Wrapping.plain
            )
            segments.merge(draft.segments) { $1 }
            contents.merge(draft.contents) { $1 }
            if let bytes = segments[draft.part.vectorSegment] { contextBase = try VectorSegment.decode(bytes) }
            // As a reader has it who knows the former part, and one who doesn't.
            if let written = former.flatMap({ draft.part.written(over: $0, .plain) }) {
                #expect(written.part(over: former, vector: VersionVector(), .plain) == draft.part)
            }
            #expect(draft.part.written(over: contextBase).part(over: nil, vector: contextBase, .plain) == draft.part)
            #expect(try read(draft.part, segments) == state)
            #expect(draft.part.base.allSatisfy { segments[$0.name].map { $0.count <= 64 << 10 } ?? true })
            #expect(draft.part.digest == digests.state)
            former = draft.part
        }
    }

    @Test func `a state's digest does not depend on how it is cut or who holds it`() {
        var state = StoreState()
        for n in 1...200 as ClosedRange<UInt64> {
            let stamp = Stamp(isProvisional: false, wall: n, counter: 0, origin: Origin(bits: 1))
            state.entries[Key(unchecked: "\(n)")] = Entry(stamp: stamp, n: n, value: [1, 2, 3])
        }
        let digest = StateDigests(of: state, store: "s").state
        #expect(digest != StateDigests(of: state, store: "t").state)
        state.vector.insert(Dot(origin: Origin(bits: 1), n: 200))
        #expect(digest != StateDigests(of: state, store: "s").state)
    }

    @Test func `a base has all keys, each in one bucket`() throws {
        var encoder = CanonicalEncoder()
        let pieces = [(2, 0), (2, 1), (1, 1)].map {
            BaseSegment(bucket: Bucket(depth: $0.0, prefix: $0.1), name: Bits128(high: 1, low: UInt64($0.1)))
        }
        encoder.base(pieces)
        var decoder = CanonicalDecoder(encoder.bytes)
        #expect(try decoder.base() == pieces)
        for depths in [[1], [1, 2], [1, 1, 0], [2, 1, 2], [17], [0, 0]] {
            var encoder = CanonicalEncoder()
            encoder.base(depths.map { BaseSegment(bucket: Bucket(depth: $0, prefix: 0), name: .zero) })
            var decoder = CanonicalDecoder(encoder.bytes)
            #expect(throws: CanonicalDecodingError.self) { try decoder.base() }
        }
    }
}
