// SPDX-License-Identifier: Apache-2.0

internal import Crypto
internal import PropertyList

/// A statement by a holder of a key about another identifier, with a proof that its author had the key. It is a file in
/// `a/`; links are in markers as well.
package struct KeyNote<K: NoteKind>: Hashable, Sendable {
    package typealias Kind = K

    /// The identifier of the key.
    package let first: KeyIdentifier
    /// The identifier that the note is about.
    package let second: KeyIdentifier
    /// The kind of statement.
    package let kind: Kind
    /// The proof, which only a holder of the key can make and check.
    private let proof: [UInt8]

    static var encodedBytes: Int { 65 }

    /// Makes a statement by a holder of a key.
    package init(from key: AccountKey, to second: KeyIdentifier, _ kind: Kind) {
        (first, self.second, self.kind) = (key.identifier, second, kind)
        let said = Self.said(first, second, kind)
        proof = Array(HMAC<SHA256>.authenticationCode(for: said, using: key.blobs.successor))
    }

    /// Makes a note from its name, without a proof; `nil` if it isn't a note's name.
    package init?(noteName name: some StringProtocol) {
        guard name.utf8.count == 66, let first = KeyIdentifier(name.prefix(32)),
            let second = KeyIdentifier(name.dropFirst(32).prefix(32)), first != second,
            let kind = UInt8(name.suffix(2)).flatMap(Kind.init), name.hasSuffix("0\(kind.rawValue)")
        else { return nil }
        (self.first, self.second, self.kind, proof) = (first, second, kind, [])
    }

    /// The note's name in `a/`.
    package var noteName: String { "\(first)\(second)0\(kind.rawValue)" }

    /// Whether the proof is right, checked in constant time; `false` for a note of another key too.
    package func isProven(by keys: BlobKeys) -> Bool {
        first == keys.identifier
            && HMAC<SHA256>.isValidAuthenticationCode(
                proof, authenticating: Self.said(first, second, kind), using: keys.successor)
    }

    /// Returns the note's bytes.
    package func note() -> [UInt8] {
        var encoder = SealedForm.begin(SealedForm.note)
        encoder.note(self)
        return SealedForm.summed(encoder.bytes)
    }

    /// Decodes a note.
    /// - Parameter name: the name under which it was found in `a/`.
    package init(note bytes: [UInt8], named name: some StringProtocol) throws(SealingFlaw) {
        var decoder = try SealedForm.openSummed(bytes, SealedForm.note)
        self = try SealingFlaw.reading { () throws(CanonicalDecodingError) in
            let note: Self = try decoder.note()
            try decoder.finish()
            return note
        }
        guard noteName == name else { throw .damaged("it says something else than its name") }
    }

    fileprivate init(_ first: KeyIdentifier, _ second: KeyIdentifier, _ kind: Kind, proof: [UInt8]) {
        (self.first, self.second, self.kind, self.proof) = (first, second, kind, proof)
    }

    fileprivate func encode(into encoder: inout CanonicalEncoder) {
        encoder.keyIdentifier(first)
        encoder.keyIdentifier(second)
        encoder.byte(kind.rawValue)
        encoder.raw(proof)
    }

    private static func said(_ first: KeyIdentifier, _ second: KeyIdentifier, _ kind: Kind) -> [UInt8] {
        first.bytes + second.bytes + [kind.rawValue]
    }
}

/// What a note can say. Its number is in the note's bytes and, as one digit, in its name.
package protocol NoteKind: RawRepresentable<UInt8>, Hashable, Sendable {}

extension CanonicalEncoder {
    mutating func note<Kind>(_ note: KeyNote<Kind>) { note.encode(into: &self) }
}

extension CanonicalDecoder {
    mutating func note<Kind>() throws(CanonicalDecodingError) -> KeyNote<Kind> {
        let start = offset
        let (first, second, kind) = (try keyIdentifier(), try keyIdentifier(), try byte())
        guard first != second else { throw failure("a note says something of its own key", at: start) }
        guard let kind = Kind(rawValue: kind) else { throw failure("there is no such kind of note", at: start) }
        return KeyNote(first, second, kind, proof: try raw(32))
    }
}
