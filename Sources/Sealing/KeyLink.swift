// SPDX-License-Identifier: Apache-2.0

internal import Crypto
internal import PropertyList

/// Says that one key of an account leads to another, with a proof that whoever said so had the first.
package struct KeyLink: Hashable, Sendable {
    /// How one key leads to another.
    package enum Kind: UInt8, Sendable {
        /// The second was made in the place of the first.
        case replaced = 1
        /// A device had the first, and has gone over to the second.
        case joined = 2
    }

    package let first: KeyIdentifier
    package let second: KeyIdentifier
    package let kind: Kind
    /// What only a holder of the first key can make, and check.
    let proof: [UInt8]

    static let encodedBytes = 65

    /// A link from a key.
    package init(from key: AccountKey, to second: KeyIdentifier, _ kind: Kind) {
        (first, self.second, self.kind) = (key.identifier, second, kind)
        let said = Self.said(first, second, kind)
        proof = Array(HMAC<SHA256>.authenticationCode(for: said, using: key.blobs.successor))
    }

    /// A link as the name of its note has it, without a proof; `nil` if it is no such name.
    package init?(noteName name: some StringProtocol) {
        guard name.utf8.count == 66, let first = KeyIdentifier(name.prefix(32)),
            let second = KeyIdentifier(name.dropFirst(32).prefix(32)), first != second
        else { return nil }
        switch name.suffix(2) {
        case "01": kind = .replaced
        case "02": kind = .joined
        default: return nil
        }
        (self.first, self.second, proof) = (first, second, [])
    }

    /// The name of its note in `a/`.
    package var noteName: String { "\(first)\(second)0\(kind.rawValue)" }

    /// Whether the proof is right; `false` for a link from another key, too. In constant time.
    package func isProven(by keys: BlobKeys) -> Bool {
        first == keys.identifier
            && HMAC<SHA256>.isValidAuthenticationCode(
                proof, authenticating: Self.said(first, second, kind), using: keys.successor)
    }

    /// The bytes of its note.
    package func note() -> [UInt8] {
        var encoder = SealedForm.begin(SealedForm.note)
        encoder.link(self)
        return SealedForm.summed(encoder.bytes)
    }

    /// Reads a note.
    /// - Parameter name: the one under which it was found in `a/`.
    package init(note bytes: [UInt8], named name: some StringProtocol) throws(SealingFlaw) {
        var decoder = try SealedForm.openSummed(bytes, SealedForm.note)
        self = try SealingFlaw.reading { () throws(CanonicalDecodingError) in
            let link = try decoder.link()
            try decoder.finish()
            return link
        }
        guard noteName == name else { throw .damaged("it has another link than its name") }
    }

    fileprivate init(_ first: KeyIdentifier, _ second: KeyIdentifier, _ kind: Kind, proof: [UInt8]) {
        (self.first, self.second, self.kind, self.proof) = (first, second, kind, proof)
    }

    private static func said(_ first: KeyIdentifier, _ second: KeyIdentifier, _ kind: Kind) -> [UInt8] {
        first.bytes + second.bytes + [kind.rawValue]
    }
}

extension CanonicalEncoder {
    mutating func link(_ link: KeyLink) {
        keyIdentifier(link.first)
        keyIdentifier(link.second)
        byte(link.kind.rawValue)
        raw(link.proof)
    }
}

extension CanonicalDecoder {
    mutating func link() throws(CanonicalDecodingError) -> KeyLink {
        let start = offset
        let (first, second, kind) = (try keyIdentifier(), try keyIdentifier(), try byte())
        guard first != second else { throw failure("a link leads from a key to itself", at: start) }
        guard let kind = KeyLink.Kind(rawValue: kind) else { throw failure("there is no such kind of link", at: start) }
        return KeyLink(first, second, kind, proof: try raw(32))
    }
}
