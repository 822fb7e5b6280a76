// SPDX-License-Identifier: Apache-2.0

internal import Crypto
internal import PropertyList

/// A note that an account was known by another identifier before it was under its key: the one that it had in plain, or
/// that of a former key.
///
/// A device that had left the account by then finds what it has of it again. Only a holder of the key can say so:
/// whatever is here under that identifier is uploaded to the account.
package struct FormerName: Hashable, Sendable {
    /// The account's key.
    package let key: KeyIdentifier
    /// What the account was called before.
    package let name: KeyIdentifier
    private let proof: [UInt8]

    private static let (kind, kindDigits): (UInt8, String) = (3, "03")

    /// Says that the account of a key was known by another identifier.
    package init(_ name: KeyIdentifier, of key: AccountKey) {
        (self.key, self.name) = (key.identifier, name)
        proof = Array(HMAC<SHA256>.authenticationCode(for: Self.said(self.key, name), using: key.blobs.successor))
    }

    /// What a file's name says, without a proof; `nil` if it is no such note.
    package init?(noteName: some StringProtocol) {
        guard noteName.utf8.count == 66, noteName.hasSuffix(Self.kindDigits),
            let key = KeyIdentifier(noteName.prefix(32)), let name = KeyIdentifier(noteName.dropFirst(32).prefix(32)),
            key != name
        else { return nil }
        (self.key, self.name, proof) = (key, name, [])
    }

    /// The file's name in `a/`.
    package var noteName: String { "\(key)\(name)\(Self.kindDigits)" }

    /// Whether a holder of the key has said so.
    package func isProven(by keys: BlobKeys) -> Bool {
        key == keys.identifier
            && HMAC<SHA256>.isValidAuthenticationCode(
                proof, authenticating: Self.said(key, name), using: keys.successor)
    }

    /// The file's content.
    package func note() -> [UInt8] {
        var encoder = SealedForm.begin(SealedForm.note)
        encoder.raw(Self.said(key, name))
        encoder.raw(proof)
        return SealedForm.summed(encoder.bytes)
    }

    /// Reads a file's content.
    package init(note bytes: [UInt8], named noteName: some StringProtocol) throws(SealingFlaw) {
        var decoder = try SealedForm.openSummed(bytes, SealedForm.note)
        let kind: UInt8
        (key, name, kind, proof) = try SealingFlaw.reading { () throws(CanonicalDecodingError) in
            let note = (
                try decoder.keyIdentifier(), try decoder.keyIdentifier(), try decoder.byte(), try decoder.raw(32)
            )
            try decoder.finish()
            return note
        }
        guard kind == Self.kind, self.noteName == noteName else {
            throw .damaged("it says something else than its name")
        }
    }

    private static func said(_ key: KeyIdentifier, _ name: KeyIdentifier) -> [UInt8] { key.bytes + name.bytes + [kind] }
}
