// SPDX-License-Identifier: Apache-2.0

// How a writer cuts a store. Changes since the base stay in the tail until the tail is too large. Then the writer
// rewrites the bucket with most of the tail, and further ones only while the tail is still far too large. So one change
// costs about a bucket at most, however the keys are spread.

package import PropertyList

/// How large what is written often may grow.
package struct DraftLimits: Equatable, Sendable {
    /// A store with so many bytes of entries has no base: a file for it would cost more than it saves.
    package var inlineBytes: Int
    /// The most bytes of a tail.
    package var tailBytes: Int
    /// A smaller tail is never folded: it costs less than the segment's name.
    package var leastTail = 128
    /// The most bytes of entries of a bucket, unless it is a single one.
    package var bucketBytes = 60 << 10
    /// Two halves of a bucket that have no more become one again.
    package var mergedBytes = 16 << 10
    /// The most origins of a version vector outside a segment.
    package var contextOrigins = 64

    /// Limits all tails together, so that the index stays short. What one store doesn't use, another may.
    package init(stores: Int, otherTails: Int) {
        inlineBytes = max(128, min(1 << 10, (16 << 10) / max(1, stores)))
        tailBytes = max(1 << 10, (24 << 10) - otherTails)
    }
}

/// Makes segments: names, hashes and bytes, as a remote has them.
package protocol SegmentWriter {
    /// A segment as it is written.
    associatedtype Written

    /// The first bits of this say to which bucket a key belongs; less than 2 to the power of ``Bucket/mostDepth``.
    func hash(of key: Key) -> Int
    /// Writes a bucket of a store's entries, under the name that says what is in it.
    func write(_ entries: [Key: Entry], in bucket: Bucket, of store: String) -> (Written, name: Bits128, bytes: Int)
    /// Writes a version vector, in the same way.
    func write(_ vector: VersionVector) -> (Written, name: Bits128)
}

/// A part that is about to be published, with the segments that it needs.
package struct PartDraft<Writer: SegmentWriter> {
    /// The part.
    package private(set) var part: StatePart
    /// The segments that are other ones than before, as they are written.
    package private(set) var segments: [Bits128: Writer.Written] = [:]
    /// The digests of the entries in each segment that has become another one.
    package private(set) var contents: [Bits128: [Key: Bits128]] = [:]

    private let store: String
    private let writer: Writer
    private let state: StoreState
    private let digests: StateDigests
    private let limits: DraftLimits
    private var below: [Key: Bits128]
    private var hashes: [Key: Int] = [:]
    private var writtenBytes = 0

    /// Cuts a state.
    /// - Parameters:
    ///   - former: the part that exists already.
    ///   - contents: the digests of the entries in the segments of its base.
    ///   - contextBase: the version vector that its version vector's segment has.
    package init(
        _ state: StoreState, digests: StateDigests, store: String, over former: StatePart?,
        contents: [Key: Bits128], contextBase: VersionVector, limits: DraftLimits, _ writer: Writer
    ) {
        (self.store, self.state, self.digests, below) = (store, state, digests, contents)
        (self.limits, self.writer) = (limits, writer)
        part = StatePart(digest: digests.state, vector: state.vector, base: [], tail: [:], removed: [])
        let size = digests.totalSize
        let base = former?.base ?? []
        if size <= (base.isEmpty ? limits.inlineBytes : limits.inlineBytes / 2) {
            below = [:]
        } else {
            for key in Set(state.entries.keys).union(below.keys) { hashes[key] = writer.hash(of: key) }
            part.base = base
            if base.isEmpty {
                below = [:]
                part.base = cut(.whole, Array(state.entries.keys))
            } else {
                foldTail(bytes: min(limits.tailBytes, max(limits.leastTail, size / 4)))
            }
        }
        takeTail()
        takeVector(former, contextBase)
    }

    private mutating func foldTail(bytes limit: Int) {
        while true {
            var weights: [Bucket: Int] = [:]
            var total = 0
            for key in changed + removed {
                guard let place = part.base.place(ofHash: hashes[key] ?? 0) else { continue }
                let size = digests.size(of: key)
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
            size(of: keys(in: parent)) <= limits.mergedBytes
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
        if keys.count > 1, size(of: keys) > limits.bucketBytes, let halves = bucket.halves {
            return halves.flatMap { half in cut(half, keys.filter { half.contains(hashes[$0] ?? 0) }) }
        }
        if keys.isEmpty { return [BaseSegment(bucket: bucket, name: .zero)] }
        var (entries, digests): ([Key: Entry], [Key: Bits128]) = ([:], [:])
        for key in keys { (entries[key], digests[key]) = (state.entries[key], self.digests.entries[key]) }
        let (written, name, bytes) = writer.write(entries, in: bucket, of: store)
        (segments[name], contents[name]) = (written, digests)
        below.merge(digests) { $1 }
        writtenBytes += bytes
        return [BaseSegment(bucket: bucket, name: name)]
    }

    /// The keys that are not in the base as they are now.
    private var changed: [Key] { state.entries.keys.filter { digests.entries[$0] != below[$0] } }

    private var removed: [Key] { below.keys.filter { state.entries[$0] == nil } }

    private mutating func takeTail() {
        part.removed = Set(removed)
        for key in changed { part.tail[key] = state.entries[key] }
    }

    /// Keeps a long version vector in a segment of its own, and rewrites that when much was added since.
    private mutating func takeVector(_ former: StatePart?, _ contextBase: VersionVector) {
        var added = state.vector.dots.count
        if let former, former.vectorSegment != .zero, state.vector.isSuperset(of: contextBase) {
            part.vectorSegment = former.vectorSegment
            added = state.vector.subtracting(contextBase).dots.count
        }
        // Not together with a bucket, unless it can't wait.
        guard added > limits.contextOrigins * (writtenBytes > 0 ? 4 : 1) else { return }
        let (written, name) = writer.write(state.vector)
        part.vectorSegment = name
        segments[name] = written
    }
}

extension PartDraft: Sendable where Writer: Sendable, Writer.Written: Sendable {}

extension StateDigests {
    /// How much room a key takes in a tail: its entry, or that it has none any more.
    fileprivate func size(of key: Key) -> Int { sizes[key] ?? key.string.utf8.count + 1 }

    /// What the tail of a part over a base takes, where only digests are known of the base.
    fileprivate func tailBytes(over contents: [Key: Bits128]) -> Int {
        var bytes = 0
        for (key, digest) in entries where contents[key] != digest { bytes += size(of: key) }
        for key in contents.keys where entries[key] == nil { bytes += size(of: key) }
        return bytes
    }
}

/// The base over which a state's tail is smallest; among equals the one with the smallest names, as on other devices.
package struct BaseChoice {
    /// The part that has it.
    package private(set) var part: StatePart?
    /// The digests of the entries in it.
    package private(set) var contents: [Key: Bits128] = [:]

    private let digests: StateDigests
    private var bytes = 0
    private static let mostUnknownSegments = 4

    /// A choice for a state.
    package init(for digests: StateDigests) { self.digests = digests }

    /// Whether a base is worth considering although so many of its segments would have to be read.
    package func isWorth(reading unknown: Int) -> Bool { part == nil || unknown <= Self.mostUnknownSegments }

    /// Takes a part's base if it is better.
    /// - Parameter contents: the digests of the entries in it.
    package mutating func consider(_ part: StatePart, _ contents: [Key: Bits128]) {
        let bytes = digests.tailBytes(over: contents)
        if let former = self.part {
            if bytes > self.bytes { return }
            if bytes == self.bytes, !part.base.names.lexicographicallyPrecedes(former.base.names) { return }
        }
        (self.part, self.contents, self.bytes) = (part, contents, bytes)
    }
}

extension StatePart {
    /// The ways in which a store is cut already of which all segments are there, a device's own first.
    package static func candidates(own: StatePart?, others: [StatePart], present: Set<Bits128>) -> [StatePart] {
        let all = [own].compactMap(\.self) + others
        return Array(all.filter { present.isSuperset(of: $0.segmentNames) }.prefix(mostCandidates))
    }

    private static let mostCandidates = 8
}
