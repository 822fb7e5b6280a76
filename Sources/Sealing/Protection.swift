// SPDX-License-Identifier: Apache-2.0

/// What a device keeps of an encrypted account.
package struct HeldKey: Equatable, Sendable {
    package var key: AccountKey
    /// The key's marker, as it is in the remote or is going to be.
    package var marker: SealedMarker
    /// Markers that the person does not want.
    package var rejected: Set<KeyIdentifier>

    package init(key: AccountKey, marker: SealedMarker, rejected: Set<KeyIdentifier> = []) {
        (self.key, self.marker, self.rejected) = (key, marker, rejected)
    }

    /// A new key with the first marker of an account.
    /// - Parameters:
    ///   - time: microseconds since 1970, for people.
    ///   - random: 64 bits from the system's cryptographic generator.
    package init(time: UInt64, random: () -> UInt64) {
        key = AccountKey(random: random)
        marker = SealedMarker(of: key, time: time, links: [])
        rejected = []
    }
}

/// What a device knows of an account's encryption.
package enum Protection: Sendable {
    /// The account is in plain, as far as this device knows.
    case none
    /// It is encrypted under this key.
    case key(HeldKey)
    /// It is encrypted, and this phrase is to open it.
    case phrase(RecoveryPhrase)
    /// It is encrypted, and its key is not here. Nothing may be written, nor be believed.
    case locked

    /// Whether the account is to be encrypted.
    package var isWanted: Bool { if case .none = self { false } else { true } }

    package var held: HeldKey? { if case .key(let held) = self { held } else { nil } }

    /// How blobs are written; `nil`: not at all.
    package var wrapping: Wrapping? {
        switch self {
        case .none: .plain
        case .key(let held): .sealed(held.key.blobs)
        case .phrase, .locked: nil
        }
    }
}

/// What can keep an account encrypted. What can't must not be given an account that is to be.
package protocol KeyHolding: Sendable {
    /// The account's key, once it is known: with a phrase, when the account was opened.
    var heldKey: HeldKey? { get async }
}
