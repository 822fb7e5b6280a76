// SPDX-License-Identifier: Apache-2.0

// What an encrypted account rests on. The secret is drawn on one device and typed on the others; no remote ever has
// it, nor anything from which it could be computed. Five keys are derived from it, so that each has one use.
//
// Keys are kept in `SymmetricKey`, which overwrites its memory when it goes. None of these types has a description
// with a secret in it, and `dump` shows none either.

internal import Crypto

/// The key of an encrypted account: a secret and the identifier that names it.
package struct AccountKey: Sendable {
    package let identifier: KeyIdentifier
    let secret: SymmetricKey
    /// The keys that are derived from it.
    package let blobs: BlobKeys

    /// How many bytes a secret has.
    package static let secretBytes = 16

    /// A key of its parts; `nil` if the secret does not have 16 bytes.
    package init?(secret: [UInt8], identifier: KeyIdentifier) {
        guard secret.count == Self.secretBytes else { return nil }
        self.init(secret: SymmetricKey(data: secret), identifier: identifier)
    }

    init(secret: SymmetricKey, identifier: KeyIdentifier) {
        self.identifier = identifier
        self.secret = secret
        blobs = BlobKeys(secret: secret, identifier: identifier)
    }

    /// A new key.
    /// - Parameter random: 64 bits from the system's cryptographic generator.
    package init(random: () -> UInt64) {
        let (identifier, secret) = (
            KeyIdentifier(high: random(), low: random()), KeyIdentifier(high: random(), low: random())
        )
        self.init(secret: SymmetricKey(data: secret.bytes), identifier: identifier)
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

    /// The hash by which a key of a store belongs to a bucket: 16 bits that say nothing without the account's key.
    package func bucketHash(of key: [UInt8]) -> Int {
        let code = Array(HMAC<SHA256>.authenticationCode(for: key, using: bucket).prefix(2))
        return Int(code[0]) << 8 | Int(code[1])
    }
}

extension AccountKey: Equatable, CustomStringConvertible, CustomReflectable {
    /// Compares secrets in constant time.
    package static func == (a: Self, b: Self) -> Bool { a.identifier == b.identifier && a.secret == b.secret }

    /// Names the key; never has its secret.
    package var description: String { "the account key \(identifier)" }
    package var customMirror: Mirror { Mirror(self, children: ["identifier": identifier]) }
}

extension BlobKeys: CustomStringConvertible, CustomReflectable {
    /// Names the key; never has its secret.
    package var description: String { "the keys of \(identifier)" }
    package var customMirror: Mirror { Mirror(self, children: ["identifier": identifier]) }
}
