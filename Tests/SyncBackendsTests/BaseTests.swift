// SPDX-License-Identifier: Apache-2.0

import PropertyList
import StoreEngine
import Testing

@testable import SyncBackends

@Suite struct BaseTests {
    /// Reads a part as a reader would, from all segments that were ever written.
    private func read(_ part: Head.Part, _ segments: [Bits128: [UInt8]]) throws -> StoreState {
        var entries: [Key: Entry] = [:]
        for name in part.segmentNames {
            entries.merge(try Segment(decoding: try #require(segments[name])).entries) { _, twice in
                Issue.record("a key is in two segments")
                return twice
            }
        }
        return part.state(over: entries)
    }

    @Test(arguments: 1...12)
    func `whatever changed since, a part and its segments are the state`(seed: UInt64) throws {
        var random = Seeded(state: seed)
        var (state, base, n): (StoreState, Base?, UInt64) = (StoreState(), nil, 0)
        var segments: [Bits128: [UInt8]] = [:]
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
                state.context.insert(Dot(origin: stamp.origin, n: n))
            }
            let digests = StateDigests(of: state, store: "s")
            let draft = PartDraft(state, digests: digests, store: "s", over: base, tailBytes: 8192)
            segments.merge(draft.segments) { $1 }
            #expect(try read(draft.part, segments) == state)
            #expect(draft.part.tail.count <= 64 || draft.part.segments.isEmpty)
            #expect(draft.part.digest == digests.state)
            base = draft.base
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
        state.context.insert(Dot(origin: Origin(bits: 1), n: 200))
        #expect(digest != StateDigests(of: state, store: "s").state)
    }

    @Test func `buckets are given up late`() {
        #expect(Buckets.count(size: 100, present: nil) == 0)
        #expect(Buckets.count(size: 100, present: 1) == 1)
        #expect(Buckets.count(size: 60, present: 1) == 0)
        #expect(Buckets.count(size: 1 << 20, present: nil) == 16)
        #expect(Buckets.count(size: 200 << 10, present: 16) == 16)
        #expect(Buckets.count(size: 100 << 10, present: 16) == 4)
        #expect(Buckets.count(size: 70 << 10, present: 1) == 4)
    }
}
