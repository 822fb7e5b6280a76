// SPDX-License-Identifier: Apache-2.0

package import Replication

/// What a device keeps about an encrypted account.
package struct HeldKey: Equatable, Sendable {
    package var key: AccountKey
    /// The key's marker, as it is or will be in the remote.
    package var marker: SealedMarker
    /// The markers that the user has rejected.
    package var rejected: Set<KeyIdentifier>
    /// The key that the user has accepted as the account's after this one's was gone, until its phrase is entered.
    package var awaited: KeyIdentifier?
    /// The forms that the account had before it was under this key.
    package var former: FormerForms

    package init(
        key: AccountKey, marker: SealedMarker, rejected: Set<KeyIdentifier> = [], awaited: KeyIdentifier? = nil,
        former: FormerForms = FormerForms()
    ) {
        (self.key, self.marker, self.rejected, self.awaited, self.former) = (key, marker, rejected, awaited, former)
    }

    /// Makes a new key with the first marker of an account.
    /// - Parameters:
    ///   - time: the time of the marker, in microseconds since 1970; for users to read.
    ///   - random: returns 64 bits from the system's cryptographic generator.
    package init(time: UInt64, random: () -> UInt64) { self.init(replacing: nil, time: time, random: random) }
}

/// What a device knows about an account's encryption.
package enum Protection: Sendable {
    /// The account is unencrypted, as far as this device knows.
    case none
    /// The account is encrypted under this key.
    case key(HeldKey)
    /// The account is encrypted, and this phrase should open it.
    case phrase(RecoveryPhrase)
    /// The account is encrypted, and this device lacks its key. It may write nothing, and believe nothing it reads.
    case locked
    /// The account is moving to another key. Its former form is read, and no longer written.
    case moving(KeyMove)

    /// Whether the account is, or will be, encrypted.
    package var isWanted: Bool {
        switch self {
        case .none: false
        case .locked: Rule.neverPlain.isOn
        case .key, .phrase, .moving: true
        }
    }

    /// The account's key; `nil` if the account is unencrypted, or the key is not known.
    package var held: HeldKey? {
        switch self {
        case .key(let held): held
        case .moving(let move): move.former
        case .none, .phrase, .locked: nil
        }
    }

    /// The keys that this device has, with their markers.
    package var ownKeys: [HeldKey] {
        switch self {
        case .key(let held): [held]
        case .moving(let move): [move.former, move.next].compactMap(\.self)
        case .none, .phrase, .locked: []
        }
    }

    /// The move that is under way; `nil` if there is none.
    package var move: KeyMove? { if case .moving(let move) = self { move } else { nil } }

    /// How blobs are read and written; `nil` if they must not be.
    package var wrapping: Wrapping? {
        switch self {
        case .none: .plain
        case .key(let held): .sealed(held.key.blobs)
        case .moving(let move): move.former.map { .sealed($0.key.blobs) } ?? .plain
        case .locked where !Rule.neverPlain.isOn: .plain
        case .phrase, .locked: nil
        }
    }
}

/// A backend that can keep an account encrypted. No other backend may be given an account that will be encrypted.
package protocol KeyHolding: Sendable {
    /// The account's key, once it is known: with a phrase, once the account is open.
    var heldKey: HeldKey? { get async }

    /// Notes that this device has joined the account's key: records the account's former forms, so that what is left of
    /// them isn't reported, and tells devices that have this device's former key, if it had one.
    func noteJoining(from former: AccountKey?, _ forms: FormerForms) async throws

    /// Keeps this device's key. Other keys' markers that are in the remote now no longer count; they stay there.
    /// - Parameter successors: whether to reject keys too by which a holder of this device's key has replaced it.
    /// - Throws: `RemoteError.keyNeeded` if there is such a key, and `successors` is false.
    func rejectOtherKeys(andSuccessors successors: Bool) async throws

    /// Waits for the phrase of the other key whose account is in the remote, after that of this device's key was gone.
    /// - Parameter formerNames: the account's former names that this device knows.
    func awaitOtherKey(besides formerNames: Set<String>) async throws

    /// Checks whether the key, or the phrase, opens the account and its last uploads, and looks for other keys and for
    /// uploads in former forms.
    func checkKey() async -> [BackendCheck]

    /// Removes what is left of the forms that the account had before its key.
    func removeFormerForms() async throws
}

extension RemoteError {
    package static let formerKey = RemoteError(
        .reset,
        "The remote holds the account under a former key: somebody has restored an earlier state, and may have the "
            + "former recovery phrase. Resolve in favour of this device, so that the account continues under its key.")

    package static let plainInPlace = RemoteError(
        .reset, "The account that is here now is not encrypted, and doesn't take the place of an encrypted one.")
}
