// SPDX-License-Identifier: Apache-2.0

internal import Crypto
internal import PropertyList

/// A file that says that a remote holds an encrypted account, and under which key. It is never replaced.
package struct SealedMarker: Equatable, Sendable {
    package let identifier: KeyIdentifier
    /// When the marker was made, in microseconds since 1970 by that device's clock; for users to read.
    package let time: UInt64
    /// The links between this remote's keys that the writer knew, the newest first.
    package let links: [KeyLink]
    /// The whole marker, as it is in the remote.
    package let bytes: [UInt8]

    /// The most bytes of a marker.
    package static let limit = 4096
    /// The most links of a marker.
    package static let mostLinks = 56
    private static let scheme: UInt8 = 1
    private static let checkBytes = 32

    /// Makes a key's marker, with as many of the links as fit, the first ones first.
    package init(of key: AccountKey, time: UInt64, links: [KeyLink]) {
        (identifier, self.time, self.links) = (key.identifier, time, Array(links.prefix(Self.mostLinks)))
        var encoder = SealedForm.begin(SealedForm.marker)
        encoder.keyIdentifier(identifier)
        encoder.varint(time)
        encoder.byte(Self.scheme)
        encoder.count(self.links.count)
        for link in self.links { encoder.note(link) }
        encoder.raw(Array(HMAC<SHA256>.authenticationCode(for: encoder.bytes, using: key.blobs.marker)))
        bytes = SealedForm.summed(encoder.bytes)
    }

    /// Decodes a marker. Only ``isGenuine(under:)``, with its key, can tell whether what it says is true.
    package init(decoding bytes: [UInt8]) throws(SealingFlaw) {
        guard bytes.count <= Self.limit else { throw .damaged("it is too long") }
        var decoder = try SealedForm.openSummed(bytes, SealedForm.marker)
        let (identifier, time, scheme) = try SealingFlaw.reading { () throws(CanonicalDecodingError) in
            (try decoder.keyIdentifier(), try decoder.varint(), try decoder.byte())
        }
        guard scheme == Self.scheme else { throw .tooNew }
        links = try SealingFlaw.reading { () throws(CanonicalDecodingError) in
            let links = try decoder.links(atMost: Self.mostLinks)
            _ = try decoder.raw(Self.checkBytes)
            try decoder.finish()
            return links
        }
        (self.identifier, self.time, self.bytes) = (identifier, time, bytes)
    }

    /// Whether a holder of these keys has written exactly this marker, checked in constant time.
    package func isGenuine(under keys: BlobKeys) -> Bool {
        let checked = bytes.dropLast(SealedForm.sumBytes + Self.checkBytes)
        let check = bytes.dropLast(SealedForm.sumBytes).suffix(Self.checkBytes)
        return identifier == keys.identifier
            && HMAC<SHA256>.isValidAuthenticationCode(check, authenticating: checked, using: keys.marker)
    }
}

extension CanonicalDecoder {
    fileprivate mutating func links(atMost limit: Int) throws(CanonicalDecodingError) -> [KeyLink] {
        let start = offset
        let count = try count(elementBytes: KeyLink.encodedBytes)
        guard count <= limit else { throw failure("there are more than \(limit) links", at: start) }
        var links: [KeyLink] = []
        for _ in 0..<count { links.append(try note()) }
        return links
    }
}
