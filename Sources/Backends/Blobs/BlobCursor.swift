// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import PropertyList
internal import Replication

/// Where a pull ended: which heads were joined, and which one was this device's own.
struct BlobCursor: Equatable {
    /// The digests of the heads that were joined.
    var heads: Set<Bits128> = []
    /// This device's last head; `nil` if unknown.
    var own: HeadIdentity?

    /// The ages of files that nobody may need.
    var observations = Observations()

    private static let format: UInt8 = 3

    init() {}

    /// Reads a cursor. Other bytes give an empty one, with which the next pull reads more.
    init(decoding bytes: [UInt8]) {
        var decoder = CanonicalDecoder(bytes)
        do throws(CanonicalDecodingError) {
            let format = try decoder.byte()
            guard (2...Self.format).contains(format) else { return }
            var own: HeadIdentity?
            if try decoder.byte() == 1 {
                own = HeadIdentity(
                    origin: Origin(bits: try decoder.fixed64()), digest: try decoder.bits128(),
                    sequence: try decoder.varint())
            }
            var heads: Set<Bits128> = []
            for _ in 0..<(try decoder.count(elementBytes: 16)) { heads.insert(try decoder.bits128()) }
            let observations = try decoder.observations(hasForgotten: format > 2)
            try decoder.finish()
            (self.heads, self.own, self.observations) = (heads, own, observations)
        } catch {
            return
        }
    }

    func encoded() -> [UInt8] {
        var encoder = CanonicalEncoder()
        encoder.byte(Self.format)
        encoder.byte(own == nil ? 0 : 1)
        if let own {
            encoder.fixed64(own.origin.bits)
            encoder.bits128(own.digest)
            encoder.varint(own.sequence)
        }
        encoder.count(heads.count)
        for digest in heads.sorted() { encoder.bits128(digest) }
        encoder.observations(observations)
        return encoder.bytes
    }
}
