// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import StoreEngine

/// One bucket of one store's base. Its name is the digest of its bytes, so that devices that hold the same share it.
struct Segment: Equatable {
    /// The store's identifier.
    let store: String
    /// How many buckets the base has.
    let bucketCount: Int
    /// Which one this is.
    let bucket: Int
    /// The entries whose keys belong there.
    let entries: [Key: Entry]

    /// No segment is longer.
    static let limit = 16 << 20

    init(store: String, bucketCount: Int, bucket: Int, entries: [Key: Entry]) {
        self.store = store
        self.bucketCount = bucketCount
        self.bucket = bucket
        self.entries = entries
    }

    init(decoding bytes: [UInt8]) throws(BlobFlaw) {
        var decoder = try Envelope.openNamed(bytes, Envelope.segment)
        self = try BlobFlaw.reading { () throws(CanonicalDecodingError) in
            let store = try decoder.storeIdentifier()
            let (count, bucket) = (Int(try decoder.byte()), Int(try decoder.byte()))
            guard count > 0, Buckets.counts.contains(count), bucket < count else {
                throw decoder.failure("there is no such bucket")
            }
            let entries = try decoder.entries(try decoder.originTable())
            try decoder.finish()
            guard entries.keys.allSatisfy({ Buckets.bucket(of: $0, count: count) == bucket }) else {
                throw decoder.failure("a key is in another's bucket")
            }
            return Segment(store: store, bucketCount: count, bucket: bucket, entries: entries)
        }
    }

    func encoded() -> [UInt8] {
        let table = OriginTable(entries.values.lazy.map(\.stamp.origin))
        var encoder = Envelope.begin(Envelope.segment)
        encoder.data(Array(store.utf8))
        encoder.byte(UInt8(bucketCount))
        encoder.byte(UInt8(bucket))
        encoder.originTable(table)
        encoder.entries(entries, table)
        return encoder.bytes
    }
}

extension CanonicalDecoder {
    /// A store's identifier: 1 to 255 visible ASCII characters, so that comparing strings compares bytes.
    mutating func storeIdentifier() throws(CanonicalDecodingError) -> String {
        let start = offset
        let bytes = try data()
        guard (1...255).contains(bytes.count), bytes.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw failure("a store has no such identifier", at: start)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// How a store's base is cut, so that a change in a large store rewrites a small part of it.
enum Buckets {
    /// The numbers of buckets that there are. 0: a store so small that a file for it would be larger than it is.
    static let counts = [0, 1, 4, 16]
    /// The most bytes of entries with which a store still has each but the last of those.
    private static let sizes = [128, 64 << 10, 256 << 10]

    /// The bucket that a key belongs to: the low bits of the first byte of the SHA-256 of its UTF-8.
    static func bucket(of key: Key, count: Int) -> Int {
        if count <= 1 { return 0 }
        return Int(truncatingIfNeeded: Bits128(digestOf: Array(key.string.utf8)).high >> 56) & (count - 1)
    }

    /// How many buckets a store of a size gets. It gives up buckets only once it is half as large as it would have
    /// to be, so that a store whose size goes up and down around a step is not rewritten each time.
    static func count(size: Int, present: Int?) -> Int {
        let wanted = count(size)
        guard let present, wanted < present else { return wanted }
        return min(present, count(size * 2))
    }

    private static func count(_ size: Int) -> Int {
        counts[sizes.firstIndex { size <= $0 } ?? sizes.count]
    }
}
