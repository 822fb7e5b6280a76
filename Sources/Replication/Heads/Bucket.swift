// SPDX-License-Identifier: Apache-2.0

// How a store's base is cut, so that a change in a large store rewrites a small part of it. A bucket has the keys
// whose hash begins with its bits. A bucket that has grown too large is cut in two, and only that one is rewritten; so
// no store is ever rewritten as a whole because it has grown.

/// The keys whose hash begins with certain bits.
package struct Bucket: Hashable, Sendable {
    /// How many bits, at most ``mostDepth``.
    package let depth: Int
    /// The bits, as a number.
    package let prefix: Int

    /// A bucket of its bits.
    package init(depth: Int, prefix: Int) { (self.depth, self.prefix) = (depth, prefix) }

    /// All keys.
    package static let whole = Bucket(depth: 0, prefix: 0)
    /// With that many bits there is a bucket for each hash.
    package static let mostDepth = 16

    package func contains(_ hash: Int) -> Bool { hash >> (Self.mostDepth - depth) == prefix }

    /// The two buckets that have its keys; `nil` if it can't be cut.
    package var halves: [Bucket]? {
        if depth >= Self.mostDepth { return nil }
        return [0, 1].map { Bucket(depth: depth + 1, prefix: prefix << 1 | $0) }
    }

    /// The bucket that it is a half of.
    package var parent: Bucket? { depth == 0 ? nil : Bucket(depth: depth - 1, prefix: prefix >> 1) }
}

/// A bucket and the segment that has its entries.
package struct BaseSegment: Hashable, Sendable {
    package let bucket: Bucket
    /// Zero if it has no entries.
    package var name: Bits128

    /// A segment of its parts.
    package init(bucket: Bucket, name: Bits128) { (self.bucket, self.name) = (bucket, name) }
}

extension [BaseSegment] {
    /// The place of the bucket that a key's hash belongs to; none if there is no base.
    package func place(ofHash hash: Int) -> Int? { firstIndex { $0.bucket.contains(hash) } }

    /// The names of the segments that have to be there.
    package var names: [Bits128] { map(\.name).filter { $0 != .zero } }
}
