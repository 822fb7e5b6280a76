// SPDX-License-Identifier: Apache-2.0

package import Replication

/// What a device keeps of an encrypted account.
package struct HeldKey: Equatable, Sendable {
    package var key: AccountKey
    /// The key's marker, as it is in the remote or is going to be.
    package var marker: SealedMarker
    /// Markers that the person does not want.
    package var rejected: Set<KeyIdentifier>
    /// The key whose account the person has taken for right where this one's was gone: its words are waited for.
    package var awaited: KeyIdentifier?
    /// What the account was before it was under this key.
    package var former: FormerForms

    package init(
        key: AccountKey, marker: SealedMarker, rejected: Set<KeyIdentifier> = [], awaited: KeyIdentifier? = nil,
        former: FormerForms = FormerForms()
    ) {
        (self.key, self.marker, self.rejected, self.awaited, self.former) = (key, marker, rejected, awaited, former)
    }

    /// A new key with the first marker of an account.
    /// - Parameters:
    ///   - time: microseconds since 1970, for people.
    ///   - random: 64 bits from the system's cryptographic generator.
    package init(time: UInt64, random: () -> UInt64) { self.init(replacing: nil, time: time, random: random) }
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
    /// It is moving to another key: its former form is read, and written no more.
    case moving(KeyMove)

    /// Whether the account is to be encrypted.
    package var isWanted: Bool {
        switch self {
        case .none: false
        case .locked: Rule.neverPlain.isOn
        case .key, .phrase, .moving: true
        }
    }

    /// The key under which the account is.
    package var held: HeldKey? {
        switch self {
        case .key(let held): held
        case .moving(let move): move.former
        case .none, .phrase, .locked: nil
        }
    }

    /// The keys that this device has, and whose markers it knows.
    package var ownKeys: [HeldKey] {
        switch self {
        case .key(let held): [held]
        case .moving(let move): [move.former, move.next].compactMap(\.self)
        case .none, .phrase, .locked: []
        }
    }

    /// The move that is under way.
    package var move: KeyMove? { if case .moving(let move) = self { move } else { nil } }

    /// How blobs are read, and written; `nil`: not at all.
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

/// What can keep an account encrypted. What can't must not be given an account that is to be.
package protocol KeyHolding: Sendable {
    /// The account's key, once it is known: with a phrase, when the account was opened.
    var heldKey: HeldKey? { get async }

    /// This device goes over to the account's key: what is there in former forms of the account is not worth a word,
    /// and those who have its former key, if it had one, are told.
    func noteJoining(from former: AccountKey?, _ forms: FormerForms) async throws

    /// Goes on under this device's key: other keys' markers that are in the place now don't count any more. They stay.
    /// - Parameter successors: those count as little that somebody who has this device's key has put in its place.
    /// - Throws: `RemoteError`: `keyNeeded` if there is such a one, and ``successors`` is `false`.
    func rejectOtherKeys(andSuccessors successors: Bool) async throws

    /// Waits for the words of the other key whose account is in the place, where that of this device's key is gone.
    func awaitOtherKey() async throws

    /// Tries whether the key, or the phrase, opens the account that is there and what was uploaded last; and looks for
    /// what is there beside it: other keys, and what was uploaded in former forms.
    func checkKey() async -> [BackendCheck]

    /// Removes what is left of the account in the forms that it had before it was under its key.
    func removeFormerForms() async throws
}
