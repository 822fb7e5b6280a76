// SPDX-License-Identifier: Apache-2.0

// Segments are named by the digest of their bytes, so that devices with the same content share them. Here are a bucket
// of a store's base, and a version vector that has grown long.

package import BackendSupport
internal import PropertyList
package import Replication
package import Sealing

/// One bucket of one store's base.
package struct Segment: Equatable {
    /// The store's identifier.
    let store: String
    /// The bucket.
    let bucket: Bucket
    /// The entries whose keys belong to the bucket.
    let entries: [Key: Entry]

    /// The maximum length, in bytes.
    static let limit = 16 << 20

    init(store: String, bucket: Bucket, entries: [Key: Entry]) {
        self.store = store
        self.bucket = bucket
        self.entries = entries
    }

    /// Reads a bucket.
    /// - Parameters:
    ///   - wrapping: how the account's keys are hashed.
    ///   - memory: counts what decoding takes; `nil` for what needs no count.
    package init(decoding bytes: [UInt8], _ wrapping: Wrapping, in memory: DecodingMemory? = nil) throws(BlobFlaw) {
        var decoder = try Envelope.openNamed(bytes, Envelope.bucket, in: memory)
        self = try BlobFlaw.reading { () throws(CanonicalDecodingError) in
            let store = try decoder.storeIdentifier()
            let (depth, high, low) = (Int(try decoder.byte()), Int(try decoder.byte()), Int(try decoder.byte()))
            let bucket = Bucket(depth: depth, prefix: high << 8 | low)
            guard depth <= Bucket.mostDepth, bucket.prefix < 1 << depth else {
                throw decoder.failure("there is no such bucket")
            }
            let entries = try decoder.entries(try decoder.originTable())
            try decoder.finish()
            guard entries.keys.allSatisfy({ bucket.contains(wrapping.hash(of: $0)) }) else {
                throw decoder.failure("a key is in another's bucket")
            }
            return Segment(store: store, bucket: bucket, entries: entries)
        }
    }

    package func encoded() -> [UInt8] {
        let table = OriginTable(entries.values.lazy.map(\.stamp.origin))
        var encoder = Envelope.begin(Envelope.bucket)
        encoder.data(Array(store.utf8))
        encoder.byte(UInt8(bucket.depth))
        encoder.byte(UInt8(bucket.prefix >> 8))
        encoder.byte(UInt8(bucket.prefix & 0xFF))
        encoder.originTable(table)
        encoder.entries(entries, table)
        return encoder.bytes
    }
}

/// Most of a long version vector; heads have what was added since. A vector gains an origin whenever a machine starts,
/// and is never shortened, so it must not be in files that are written often.
package enum VectorSegment {
    package static func decode(_ bytes: [UInt8], in memory: DecodingMemory? = nil) throws(BlobFlaw) -> VersionVector {
        var decoder = try Envelope.openNamed(bytes, Envelope.vector, in: memory)
        return try BlobFlaw.reading { () throws(CanonicalDecodingError) in
            let vector = try decoder.vector(try decoder.originTable())
            try decoder.finish()
            return vector
        }
    }

    package static func encode(_ vector: VersionVector) -> [UInt8] {
        let table = OriginTable(vector.dots.map(\.origin))
        var encoder = Envelope.begin(Envelope.vector)
        encoder.originTable(table)
        encoder.vector(vector, table)
        return encoder.bytes
    }
}

extension CanonicalDecoder {
    /// Reads a store's identifier.
    mutating func storeIdentifier() throws(CanonicalDecodingError) -> String {
        let start = offset
        let bytes = try data()
        guard bytes.isStoreIdentifier else {
            throw failure("a store has no such identifier", at: start)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
