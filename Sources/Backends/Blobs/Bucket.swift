// SPDX-License-Identifier: Apache-2.0

// How a store's base is cut, so that a change in a large store rewrites a small part of it. A bucket has the keys
// whose hash begins with its bits. One that has grown too large is cut in two, and only that one is written anew; so
// no store is ever rewritten as a whole because it has grown.

internal import BackendSupport
internal import PropertyList
internal import Replication

/// The keys whose hash begins with certain bits.
struct Bucket: Hashable {
    /// How many bits, at most ``mostDepth``.
    let depth: Int
    /// The bits, as a number.
    let prefix: Int

    /// All keys.
    static let whole = Bucket(depth: 0, prefix: 0)
    /// With that many bits there is a bucket for each hash.
    static let mostDepth = 16

    func contains(_ hash: Int) -> Bool { hash >> (Self.mostDepth - depth) == prefix }

    /// The two buckets that have its keys; `nil` if it can't be cut.
    var halves: [Bucket]? {
        if depth >= Self.mostDepth { return nil }
        return [0, 1].map { Bucket(depth: depth + 1, prefix: prefix << 1 | $0) }
    }

    /// The bucket that it is a half of.
    var parent: Bucket? { depth == 0 ? nil : Bucket(depth: depth - 1, prefix: prefix >> 1) }
}

/// A bucket and the segment that has its entries.
struct BaseSegment: Hashable {
    let bucket: Bucket
    /// Zero if it has no entries.
    var name: Bits128
}

extension [BaseSegment] {
    /// The place of the bucket that a key's hash belongs to; none if there is no base.
    func place(ofHash hash: Int) -> Int? { firstIndex { $0.bucket.contains(hash) } }

    /// The names of the segments that have to be there.
    var names: [Bits128] { map(\.name).filter { $0 != .zero } }
}

extension CanonicalEncoder {
    /// Buckets are written in their order and have all keys among them, so that their depths say which they are.
    mutating func base(_ base: [BaseSegment]) {
        count(base.count)
        for segment in base {
            byte(UInt8(segment.bucket.depth))
            bits128(segment.name)
        }
    }
}

extension CanonicalDecoder {
    mutating func base() throws(CanonicalDecodingError) -> [BaseSegment] {
        var base: [BaseSegment] = []
        var next = 0
        let hashes = 1 << Bucket.mostDepth
        for _ in 0..<(try count(elementBytes: 17)) {
            let start = offset
            let depth = Int(try byte())
            let name = try bits128()
            guard depth <= Bucket.mostDepth, next < hashes, next % (hashes >> depth) == 0 else {
                throw failure("there is no such bucket", at: start)
            }
            base.append(BaseSegment(bucket: Bucket(depth: depth, prefix: next / (hashes >> depth)), name: name))
            next += hashes >> depth
        }
        guard base.isEmpty || next == hashes else { throw failure("a base does not have all buckets") }
        return base
    }
}
