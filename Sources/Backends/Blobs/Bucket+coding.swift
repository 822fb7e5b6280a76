// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import PropertyList
internal import Replication

extension CanonicalEncoder {
    /// Writes a base. Its buckets are in order and cover every hash exactly once, so their depths identify them.
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
        for _ in 0..<(try count(elementBytes: 17, memory: 48)) {
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
