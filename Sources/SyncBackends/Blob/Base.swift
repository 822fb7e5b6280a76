// SPDX-License-Identifier: Apache-2.0

// How a writer cuts a store. What changed since the base stays in the tail of the head until the tail is too large;
// then the bucket with most of the tail is written anew, and the next, until it is not. So what one change costs is
// bounded by about a bucket, however the keys are spread, and not by all buckets that have a part in the tail.

internal import PropertyList
internal import StoreEngine

/// What the segments of a part hold, as its writer remembers it.
struct Base: Equatable {
    /// The names of the segments.
    var segments: [Bits128]
    /// The digests of the entries in them.
    var entries: [Key: Bits128]
}

/// A part that is about to be published, with the segments that it needs.
struct PartDraft {
    private(set) var part: Head.Part
    private(set) var base: Base
    /// The segments that are other ones than those of the base before.
    private(set) var segments: [Bits128: [UInt8]] = [:]

    private let store: String
    private let state: StoreState
    private let digests: StateDigests

    /// Cuts a state.
    /// - Parameters:
    ///   - base: what is there already.
    ///   - tailBytes: how large the tail may grow.
    init(_ state: StoreState, digests: StateDigests, store: String, over base: Base?, tailBytes: Int) {
        self.store = store
        self.state = state
        self.digests = digests
        let count = Buckets.count(size: digests.totalSize, present: base?.segments.count)
        let isKept = base?.segments.count == count
        self.base = base ?? Base(segments: [], entries: [:])
        part = Head.Part(digest: digests.state, context: state.context, segments: [], tail: [:], removed: [])
        if isKept, count > 0 {
            foldTail(bytes: min(tailBytes, max(Self.leastTail, digests.totalSize / 4)))
        } else {
            self.base = Base(segments: [Bits128](repeating: .zero, count: count), entries: [:])
            if count > 0 { for (bucket, keys) in keysByBucket(count).enumerated() { fold(bucket, keys) } }
        }
        takeTail()
    }

    /// A smaller tail is never folded: it costs less than the segment's name.
    private static let leastTail = 128
    private static let mostTailEntries = 64

    private func keysByBucket(_ count: Int) -> [[Key]] {
        var buckets = [[Key]](repeating: [], count: count)
        for key in state.entries.keys { buckets[Buckets.bucket(of: key, count: count)].append(key) }
        return buckets
    }

    /// The keys that are not in the base as they are now.
    private var changed: [Key] {
        state.entries.keys.filter { digests.entries[$0] != base.entries[$0] }
    }

    private var removed: [Key] {
        base.entries.keys.filter { state.entries[$0] == nil }
    }

    private mutating func foldTail(bytes limit: Int) {
        let count = base.segments.count
        var weights = [Int](repeating: 0, count: count)
        var entries = [Int](repeating: 0, count: count)
        for key in changed + removed {
            let bucket = Buckets.bucket(of: key, count: count)
            weights[bucket] += digests.sizes[key] ?? key.string.utf8.count + 1
            entries[bucket] += 1
        }
        let buckets = keysByBucket(count)
        for bucket in (0..<count).sorted(by: { weights[$0] > weights[$1] }) {
            if weights.reduce(0, +) <= limit, entries.reduce(0, +) <= Self.mostTailEntries { return }
            fold(bucket, buckets[bucket])
            (weights[bucket], entries[bucket]) = (0, 0)
        }
    }

    /// Puts all of a bucket into the base.
    private mutating func fold(_ bucket: Int, _ keys: [Key]) {
        let count = base.segments.count
        base.entries = base.entries.filter { Buckets.bucket(of: $0.key, count: count) != bucket }
        for key in keys { base.entries[key] = digests.entries[key] }
        if keys.isEmpty {
            base.segments[bucket] = .zero
            return
        }
        var entries: [Key: Entry] = [:]
        for key in keys { entries[key] = state.entries[key] }
        let bytes = Segment(store: store, bucketCount: count, bucket: bucket, entries: entries).encoded()
        let name = Bits128(digestOf: bytes)
        segments[name] = bytes
        base.segments[bucket] = name
    }

    private mutating func takeTail() {
        part.segments = base.segments
        part.removed = removed.sorted()
        for key in changed { part.tail[key] = state.entries[key] }
    }
}
