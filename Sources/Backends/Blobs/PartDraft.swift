// SPDX-License-Identifier: Apache-2.0

// How a writer cuts a store. What changed since the base stays in the tail until the tail is too large; then the
// bucket with most of the tail is written anew: one for a small change, and more only while there is far too much.
// So what one change costs is bounded by about a bucket, however the keys are spread.

internal import PropertyList
internal import Replication
internal import Sealing

/// How large what is written often may grow.
struct DraftLimits: Equatable {
    /// A store with so many bytes of entries has no base: a file for it would cost more than it saves.
    var inlineBytes: Int
    /// The most bytes of a tail.
    var tailBytes: Int

    /// The most bytes of entries of a bucket, unless it is a single one.
    static let bucketBytes = 60 << 10
    /// Two halves of a bucket that have no more become one again.
    static let mergedBytes = 16 << 10
    /// The most origins of a version vector outside a segment.
    static let contextOrigins = 64

    /// All tails together are to be in an index of a bearable length, and what one store does not use another may.
    init(stores: Int, otherTails: Int) {
        inlineBytes = max(128, min(1 << 10, (16 << 10) / max(1, stores)))
        tailBytes = max(1 << 10, (24 << 10) - otherTails)
    }
}

/// A part that is about to be published, with the segments that it needs.
struct PartDraft {
    private(set) var part: Head.Part
    /// The segments that are other ones than before, as they are written.
    private(set) var segments: [Bits128: [UInt8]] = [:]
    /// The digests of the entries in each segment that has become another one.
    private(set) var contents: [Bits128: [Key: Bits128]] = [:]

    private let store: String
    private let wrapping: Wrapping
    private let state: StoreState
    private let digests: StateDigests
    private var below: [Key: Bits128]
    private var hashes: [Key: Int] = [:]
    private var writtenBytes = 0

    /// Cuts a state.
    /// - Parameters:
    ///   - former: what is there already.
    ///   - contents: the digests of the entries in the segments of its base.
    ///   - contextBase: the version vector that its version vector's segment has.
    init(
        _ state: StoreState, digests: StateDigests, store: String, over former: Head.Part?,
        contents: [Key: Bits128], contextBase: VersionVector, limits: DraftLimits, _ wrapping: Wrapping
    ) {
        (self.store, self.state, self.digests, below) = (store, state, digests, contents)
        self.wrapping = wrapping
        part = Head.Part(digest: digests.state, vector: state.vector, base: [], tail: [:], removed: [])
        let size = digests.totalSize
        let base = former?.base ?? []
        if size <= (base.isEmpty ? limits.inlineBytes : limits.inlineBytes / 2) {
            below = [:]
        } else {
            for key in Set(state.entries.keys).union(below.keys) { hashes[key] = wrapping.hash(of: key) }
            part.base = base
            if base.isEmpty {
                below = [:]
                part.base = cut(.whole, Array(state.entries.keys))
            } else {
                foldTail(bytes: min(limits.tailBytes, max(Self.leastTail, size / 4)))
            }
        }
        takeTail()
        takeVector(former, contextBase)
    }

    /// A smaller tail is never folded: it costs less than the segment's name.
    private static let leastTail = 128

    /// What the tail of a part over a base costs, where only digests are known of the base.
    static func tailBytes(of digests: StateDigests, over contents: [Key: Bits128]) -> Int {
        var bytes = 0
        for (key, digest) in digests.entries where contents[key] != digest { bytes += digests.sizes[key] ?? 0 }
        for key in contents.keys where digests.entries[key] == nil { bytes += key.string.utf8.count + 1 }
        return bytes
    }

    private mutating func foldTail(bytes limit: Int) {
        while true {
            var weights: [Bucket: Int] = [:]
            var total = 0
            for key in changed + removed {
                guard let place = part.base.place(ofHash: hashes[key] ?? 0) else { continue }
                let size = digests.sizes[key] ?? key.string.utf8.count + 1
                weights[part.base[place].bucket, default: 0] += size
                total += size
            }
            let isBearable = total <= limit || (writtenBytes > 0 && total <= limit * 2)
            guard !isBearable, let heaviest = weights.max(by: { ($0.value, $1.key.prefix) < ($1.value, $0.key.prefix) })
            else { return }
            fold(heaviest.key)
        }
    }

    /// Puts all of a bucket into the base, with its other half if there is little in both.
    private mutating func fold(_ bucket: Bucket) {
        var bucket = bucket
        while let parent = bucket.parent, part.base.contains(where: { $0.bucket == parent.halves?.first }),
            part.base.contains(where: { $0.bucket == parent.halves?.last }),
            size(of: keys(in: parent)) <= DraftLimits.mergedBytes
        {
            bucket = parent
        }
        let (shift, prefix) = (Bucket.mostDepth, bucket.prefix)
        func isInside(_ other: Bucket) -> Bool {
            other.depth >= bucket.depth && other.prefix >> (other.depth - bucket.depth) == prefix
                && other.depth <= shift
        }
        guard let start = part.base.firstIndex(where: { isInside($0.bucket) }) else { return }
        let end = part.base[start...].firstIndex { !isInside($0.bucket) } ?? part.base.endIndex
        for key in below.keys where bucket.contains(hashes[key] ?? 0) { below[key] = nil }
        let pieces = cut(bucket, keys(in: bucket))
        part.base.replaceSubrange(start..<end, with: pieces)
    }

    private func keys(in bucket: Bucket) -> [Key] {
        state.entries.keys.filter { bucket.contains(hashes[$0] ?? 0) }
    }

    private func size(of keys: [Key]) -> Int { keys.reduce(0) { $0 + (digests.sizes[$1] ?? 0) } }

    /// Writes the segments of a bucket: one, or several if it has grown too large.
    private mutating func cut(_ bucket: Bucket, _ keys: [Key]) -> [BaseSegment] {
        if keys.count > 1, size(of: keys) > DraftLimits.bucketBytes, let halves = bucket.halves {
            return halves.flatMap { half in cut(half, keys.filter { half.contains(hashes[$0] ?? 0) }) }
        }
        if keys.isEmpty { return [BaseSegment(bucket: bucket, name: .zero)] }
        var (entries, digests): ([Key: Entry], [Key: Bits128]) = ([:], [:])
        for key in keys { (entries[key], digests[key]) = (state.entries[key], self.digests.entries[key]) }
        let (bytes, name) = wrapping.named(Segment(store: store, bucket: bucket, entries: entries).encoded())
        (segments[name], contents[name]) = (bytes, digests)
        below.merge(digests) { $1 }
        writtenBytes += bytes.count
        return [BaseSegment(bucket: bucket, name: name)]
    }

    /// The keys that are not in the base as they are now.
    private var changed: [Key] { state.entries.keys.filter { digests.entries[$0] != below[$0] } }

    private var removed: [Key] { below.keys.filter { state.entries[$0] == nil } }

    private mutating func takeTail() {
        part.removed = Set(removed)
        for key in changed { part.tail[key] = state.entries[key] }
    }

    /// Keeps a long version vector in a segment of its own, and writes it anew when much was added since.
    private mutating func takeVector(_ former: Head.Part?, _ contextBase: VersionVector) {
        var added = state.vector.dots.count
        if let former, former.vectorSegment != .zero, state.vector.isSuperset(of: contextBase) {
            part.vectorSegment = former.vectorSegment
            added = state.vector.subtracting(contextBase).dots.count
        }
        // Not together with a bucket, unless it can't wait.
        guard added > DraftLimits.contextOrigins * (writtenBytes > 0 ? 4 : 1) else { return }
        let (bytes, name) = wrapping.named(VectorSegment.encode(state.vector))
        part.vectorSegment = name
        segments[name] = bytes
    }
}
