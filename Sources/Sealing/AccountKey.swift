// SPDX-License-Identifier: Apache-2.0

// The key of an encrypted account. Its secret is generated on one device and typed on the others. No remote ever has
// it, nor anything from which it could be computed. Five keys are derived from it, so that each has one use.
//
// Keys are kept in `SymmetricKey`, which overwrites its memory when it is released. None of these types shows a secret
// in its description, or in `dump`.

internal import Crypto

/// The key of an encrypted account: a secret and the identifier that names it.
package struct AccountKey: Sendable {
    package let identifier: KeyIdentifier
    let secret: SymmetricKey
    /// The keys that are derived from the secret.
    package let blobs: BlobKeys

    /// The length of a secret, in bytes.
    package static let secretBytes = 16

    /// Makes a key from its parts; `nil` if the secret does not have 16 bytes.
    package init?(secret: [UInt8], identifier: KeyIdentifier) {
        guard secret.count == Self.secretBytes else { return nil }
        self.init(secret: SymmetricKey(data: secret), identifier: identifier)
    }

    init(secret: SymmetricKey, identifier: KeyIdentifier) {
        self.identifier = identifier
        self.secret = secret
        blobs = BlobKeys(secret: secret, identifier: identifier)
    }

    /// Makes a new key.
    /// - Parameters:
    ///   - bound: an identifier that the new one must be less than. One whose first 32 bits are zero has no effect, so
    ///     that identifiers stay unique.
    ///   - random: returns 64 bits from the system's cryptographic generator.
    package init(below bound: KeyIdentifier? = nil, random: () -> UInt64) {
        var high = random()
        let low = random()
        if let bound, bound.high >> 32 > 0 { high %= bound.high }
        let secret = KeyIdentifier(high: random(), low: random())
        self.init(secret: SymmetricKey(data: secret.bytes), identifier: KeyIdentifier(high: high, low: low))
    }

    /// The 16 bytes of the secret, for the file that keeps them.
    package var secretData: [UInt8] { secret.withUnsafeBytes { Array($0) } }
}

/// The keys that are derived from an account's, each for one purpose.
package struct BlobKeys: Sendable {
    package let identifier: KeyIdentifier
    let salt: SymmetricKey
    let blob: SymmetricKey
    let bucket: SymmetricKey
    let marker: SymmetricKey
    let successor: SymmetricKey

    init(secret: SymmetricKey, identifier: KeyIdentifier) {
        func key(_ label: String) -> SymmetricKey {
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: secret, info: Array("UbiquitousStore 1 \(label)".utf8) + identifier.bytes,
                outputByteCount: 32)
        }
        self.identifier = identifier
        salt = key("salt")
        blob = key("blob")
        bucket = key("bucket")
        marker = key("marker")
        successor = key("successor")
    }

    /// Returns the hash that assigns a store's key to a bucket: 16 bits that reveal nothing without the account's key.
    package func bucketHash(of key: [UInt8]) -> Int {
        let code = Array(HMAC<SHA256>.authenticationCode(for: key, using: bucket).prefix(2))
        return Int(code[0]) << 8 | Int(code[1])
    }
}

extension AccountKey: Equatable, CustomStringConvertible, CustomReflectable {
    /// Compares secrets in constant time.
    package static func == (a: Self, b: Self) -> Bool { a.identifier == b.identifier && a.secret == b.secret }

    /// The key's name, without its secret.
    package var description: String { "the account key \(identifier)" }
    package var customMirror: Mirror { Mirror(self, children: ["identifier": identifier]) }
}

extension BlobKeys: CustomStringConvertible, CustomReflectable {
    /// The key's name, without its secret.
    package var description: String { "the keys of \(identifier)" }
    package var customMirror: Mirror { Mirror(self, children: ["identifier": identifier]) }
}
