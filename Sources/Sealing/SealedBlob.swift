// SPDX-License-Identifier: Apache-2.0

// Deterministic authenticated encryption of a whole blob. The salt is a MAC of everything that goes in, and the key of
// the box is derived from it. So no key ever encrypts two things, however bad a machine's random numbers are. What is
// before the box is bound to it twice, by the key and as associated data. The salt is checked again after opening,
// because ChaCha20-Poly1305 alone doesn't commit to its key. docs/remote-format.md, decisions 60 and 61.

internal import Crypto
internal import FoundationEssentials
internal import PropertyList
internal import Replication

/// A head or a segment, encrypted under an account's key.
package struct SealedBlob: Equatable, Sendable {
    /// The kind of blob, with what is readable outside of the box.
    package enum Kind: Equatable, Sendable {
        /// The head of the device with this origin.
        case head(origin: UInt64)
        /// A bucket, a context or an index.
        case segment
    }

    /// The most bytes of a content, and of the blob that it is sealed in.
    package enum Limit {
        package static let headContent = 4 << 20
        package static let segmentContent = 16 << 20
        package static let head = 4_325_502
        package static let segment = 17_301_574
    }

    package let kind: Kind
    /// The unencrypted blob, wrapping `00`.
    package let content: [UInt8]
    /// The MAC of what was sealed. Its first 16 bytes are a segment's name.
    package let salt: [UInt8]

    /// Seals a segment. Equal content gives equal bytes.
    package static func seal(segment content: [UInt8], _ keys: BlobKeys) -> (bytes: [UInt8], name: [UInt8]) {
        let inner = inner(random: [], content, moreZeros: 0)
        let (bytes, salt) = box(inner, after: header(.segment, keys), keys)
        return (bytes, Array(salt.prefix(16)))
    }

    /// Seals a head.
    /// - Parameters:
    ///   - random: 16 random bytes.
    ///   - sequence: the head's sequence, which varies the length.
    ///   - previous: the length that the result must not have.
    package static func seal(
        head content: [UInt8], origin: UInt64, sequence: UInt64, random: (UInt64, UInt64),
        unlikeLength previous: Int? = nil, _ keys: BlobKeys
    ) -> [UInt8] {
        let header = header(.head(origin: origin), keys)
        let random = KeyIdentifier(high: random.0, low: random.1).bytes
        var inner = inner(random: random, content, moreZeros: Int(sequence % 16))
        if header.count + saltBytes + inner.count + tagBytes + SealedForm.sumBytes == previous {
            inner = Self.inner(random: random, content, moreZeros: 16)
        }
        return SealedForm.summed(box(inner, after: header, keys).bytes)
    }

    /// Opens a segment.
    package init(segment bytes: [UInt8], _ keys: BlobKeys) throws(SealingFlaw) {
        guard bytes.count <= Limit.segment else { throw .damaged("it is too long") }
        let decoder = try SealedForm.open(bytes[...], SealedForm.segment)
        try self.init(bytes[...], decoder, isHead: false, keys)
    }

    /// Opens a head.
    package init(head bytes: [UInt8], _ keys: BlobKeys) throws(SealingFlaw) {
        guard bytes.count <= Limit.head else { throw .damaged("it is too long") }
        let decoder = try SealedForm.openSummed(bytes, SealedForm.head)
        try self.init(bytes.dropLast(SealedForm.sumBytes), decoder, isHead: true, keys)
    }

    /// Returns the key that a head names, without proof; `nil` if it is no sealed head.
    package static func key(ofHead bytes: [UInt8]) -> KeyIdentifier? { key(of: bytes, SealedForm.head) }

    /// Returns the key that a segment names, without proof; `nil` if it is no sealed segment.
    package static func key(ofSegment bytes: [UInt8]) -> KeyIdentifier? { key(of: bytes, SealedForm.segment) }

    private static func key(of bytes: [UInt8], _ magic: [UInt8]) -> KeyIdentifier? {
        guard var decoder = try? SealedForm.open(bytes[...], magic) else { return nil }
        return try? decoder.keyIdentifier()
    }

    private static let (saltBytes, tagBytes, randomBytes) = (32, 16, 16)

    private init(
        _ bytes: ArraySlice<UInt8>, _ decoder: CanonicalDecoder, isHead: Bool, _ keys: BlobKeys
    ) throws(SealingFlaw) {
        var decoder = decoder
        let (identifier, origin, headerEnd, salt) = try SealingFlaw.reading { () throws(CanonicalDecodingError) in
            let identifier = try decoder.keyIdentifier()
            let origin = isHead ? try decoder.fixed64() : 0
            let headerEnd = decoder.offset
            return (identifier, origin, headerEnd, try decoder.raw(Self.saltBytes))
        }
        guard identifier == keys.identifier else { throw .otherKey(identifier) }
        let inner = try Self.unbox(bytes, at: decoder.offset, keys)
        let header = Rule.boundHeader.isOn ? bytes.prefix(headerEnd) : []
        guard HMAC<SHA256>.isValidAuthenticationCode(salt, authenticating: header + inner, using: keys.salt)
        else { throw .damaged("its salt doesn't match its content") }
        kind = isHead ? .head(origin: origin) : .segment
        content = try Self.content(of: inner, isHead: isHead)
        self.salt = salt
    }
}

extension SealedBlob {
    private static func header(_ kind: Kind, _ keys: BlobKeys) -> [UInt8] {
        switch kind {
        case .segment:
            var encoder = SealedForm.begin(SealedForm.segment)
            encoder.keyIdentifier(keys.identifier)
            return encoder.bytes
        case .head(let origin):
            var encoder = SealedForm.begin(SealedForm.head)
            encoder.keyIdentifier(keys.identifier)
            encoder.fixed64(origin)
            return encoder.bytes
        }
    }

    private static func inner(random: [UInt8], _ content: [UInt8], moreZeros: Int) -> [UInt8] {
        var encoder = CanonicalEncoder(capacity: padded(content.count + 32) + moreZeros)
        encoder.raw(random)
        encoder.data(content)
        let length = encoder.bytes.count
        encoder.raw([UInt8](repeating: 0, count: padded(length) - length + moreZeros))
        return encoder.bytes
    }

    /// Rounds a length up by Padmé, and then to a multiple of 256, so that it reveals little.
    static func padded(_ length: Int) -> Int {
        guard length > 1 else { return 256 }
        let magnitude = length.bitWidth - 1 - length.leadingZeroBitCount
        let zeros = magnitude - (magnitude.bitWidth - 1 - magnitude.leadingZeroBitCount) - 1
        return roundUp(roundUp(length, zeros: zeros), zeros: 8)
    }

    private static func roundUp(_ length: Int, zeros: Int) -> Int {
        zeros > 0 ? ((length + (1 << zeros) - 1) >> zeros) << zeros : length
    }

    private static func box(
        _ inner: [UInt8], after header: [UInt8], _ keys: BlobKeys
    ) -> (bytes: [UInt8], salt: [UInt8]) {
        let told = Rule.boundHeader.isOn ? header : []
        let salt = Array(HMAC<SHA256>.authenticationCode(for: told + inner, using: keys.salt))
        let before = header + salt
        // This fails only for messages of 256 GiB and for nonces of a wrong length.
        guard
            let box = try? ChaChaPoly.seal(
                inner, using: key(before, keys), nonce: nonce, authenticating: bound(before))
        else { preconditionFailure("a blob is longer than ChaCha20-Poly1305 can encrypt") }
        return (before + box.ciphertext + box.tag, salt)
    }

    private static func unbox(
        _ bytes: ArraySlice<UInt8>, at offset: Int, _ keys: BlobKeys
    ) throws(SealingFlaw) -> [UInt8] {
        let (before, box) = (Array(bytes.prefix(offset)), bytes.dropFirst(offset))
        guard box.count >= tagBytes else { throw .damaged("it is cut off") }
        do {
            let sealed = try ChaChaPoly.SealedBox(
                nonce: nonce, ciphertext: box.dropLast(tagBytes), tag: box.suffix(tagBytes))
            return Array(try ChaChaPoly.open(sealed, using: key(before, keys), authenticating: bound(before)))
        } catch {
            throw .damaged("it was not sealed with the account's key, or was altered since")
        }
    }

    /// Returns the part of a box's header and salt that is bound to it: all of it.
    private static func bound(_ before: [UInt8]) -> [UInt8] {
        Rule.boundHeader.isOn ? before : before.suffix(saltBytes)
    }

    /// Derives the key of one box.
    private static func key(_ before: [UInt8], _ keys: BlobKeys) -> SymmetricKey {
        HKDF<SHA256>.expand(pseudoRandomKey: keys.blob, info: bound(before), outputByteCount: 32)
    }

    /// Decodes the inner part of a box.
    package static func content(of inner: [UInt8], isHead: Bool) throws(SealingFlaw) -> [UInt8] {
        var decoder = CanonicalDecoder(inner)
        let content = try SealingFlaw.reading { () throws(CanonicalDecodingError) in
            if isHead { _ = try decoder.raw(randomBytes) }
            return try decoder.data()
        }
        guard inner.dropFirst(decoder.offset).allSatisfy({ $0 == 0 }) else {
            throw .damaged("something other than zeros follows its content")
        }
        guard content.count <= (isHead ? Limit.headContent : Limit.segmentContent) else {
            throw .damaged("its content is too long")
        }
        return content
    }
}

/// Each key has only one box, so a constant is enough.
private let nonce: ChaChaPoly.Nonce = {
    guard let nonce = try? ChaChaPoly.Nonce(data: [UInt8](repeating: 0, count: 12)) else {
        preconditionFailure("a nonce has 12 bytes")
    }
    return nonce
}()
