// SPDX-License-Identifier: Apache-2.0

internal import Crypto
internal import PropertyList

/// Says that a place holds an encrypted account, and under which key. Written once, and never replaced.
package struct SealedMarker: Equatable, Sendable {
    package let identifier: KeyIdentifier
    /// When it was made, in microseconds since 1970 by that device's clock; for people.
    package let time: UInt64
    /// What its maker knew of former keys of this place, the newest first.
    package let links: [KeyLink]
    /// All of it, as it is in the remote.
    package let bytes: [UInt8]

    /// No marker is longer.
    package static let limit = 4096
    /// No marker has more links.
    package static let mostLinks = 56
    private static let scheme: UInt8 = 1
    private static let checkBytes = 32

    /// A marker of a key. Of the links it has the first ones that fit.
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

    /// Reads a marker. Without its key nobody can tell whether what it says is true.
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

    /// Whether a holder of these keys has written it as it is. In constant time.
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
