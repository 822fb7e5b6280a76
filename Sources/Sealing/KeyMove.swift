// SPDX-License-Identifier: Apache-2.0

// Moving an account to a new key, from plain or from a former key. What to do next is decided from what lies in `a/`
// and nothing else, so that a move that was cut anywhere goes on where it was: no I/O, no clock. The order is in
// docs/remote-format.md.

internal import Replication

/// The forms that an account had before: what is left of them is removed once the account is under its key.
package struct FormerForms: Equatable, Sendable {
    /// The identifiers of the account when it was in plain.
    package var plain: Set<KeyIdentifier>
    /// The keys that it had.
    package var keys: Set<KeyIdentifier>
    /// What was left was removed once. What is found later was written by a device that did not know of the move.
    package var areRemoved: Bool

    package init(plain: Set<KeyIdentifier> = [], keys: Set<KeyIdentifier> = [], areRemoved: Bool = false) {
        (self.plain, self.keys, self.areRemoved) = (plain, keys, areRemoved)
    }

    /// Whether there were none.
    package var areNone: Bool { plain.isEmpty && keys.isEmpty }
}

/// A move of an account to a new key.
package struct KeyMove: Equatable, Sendable {
    /// The key that the account has; `nil` if it is in plain.
    package let former: HeldKey?
    /// The key that it is to have.
    package let next: HeldKey

    package init(from former: HeldKey?, to next: HeldKey) { (self.former, self.next) = (former, next) }

    /// The link that says so; `nil` from plain, which has no key to prove it with.
    package var link: KeyLink? { former.map { KeyLink(from: $0.key, to: next.key.identifier, .replaced) } }

    /// What the account was called when the move began.
    package var formerNames: Set<KeyIdentifier> { former.map { [$0.key.identifier] } ?? next.former.plain }

    /// What a device does next.
    package enum Step: Equatable, Sendable {
        /// Write the new key's marker: from then on others stop.
        case writeMarker
        /// Write the note of a link.
        case writeNote(KeyLink)
        /// Write the notes of what the account was called before.
        case writeFormerNames([FormerName])
        /// Read the former form, to its end. The new key is the account's then.
        case readFormer
        /// The account has become another key's: say so, remove the own marker, and stop.
        case giveWay(KeyLink)
        /// The own marker is not whole yet, or something that decides is not.
        case wait
        /// The account is gone from the place.
        case reset
    }

    /// Decides.
    /// - Parameters:
    ///   - seen: what lies in `a/`, with the proofs of notes of the new key.
    ///   - notes: the names of the notes that are there.
    ///   - hasFormer: the account's marker in its former form is there.
    package func step(_ seen: SeenMarkers, notes: Set<String>, hasFormer: Bool) -> Step {
        let own = next.key.identifier
        let isThere = seen.sealed.contains { $0.identifier == own }
        var present = seen
        if !isThere, !seen.damaged.contains(own) { present.sealed.append(next.marker) }
        switch MarkerChoice(among: present, key: next.key, wasEncrypted: true, rejected: next.rejected) {
        case .using: break
        case .keyNeeded(let account) where Rule.giveWay.isOn: return giveWay(to: account)
        case .keyNeeded: break
        case .plain, .reset, .waiting: return .wait
        }
        if !isThere { return hasFormer ? .writeMarker : withoutFormer(seen) }
        if let link, !notes.contains(link.noteName) { return .writeNote(link) }
        let unsaid = next.formerNotes.filter { !notes.contains($0.noteName) }
        return unsaid.isEmpty ? .readFormer : .writeFormerNames(unsaid)
    }

    private func giveWay(to account: KeyIdentifier) -> Step {
        .giveWay(KeyLink(from: next.key, to: account, .gaveWay))
    }

    /// The former form has gone before the own marker was there: with another device's move, or with the account.
    private func withoutFormer(_ seen: SeenMarkers) -> Step {
        switch MarkerChoice(among: seen, key: nil, wasEncrypted: true, rejected: next.rejected) {
        case .keyNeeded(let account): giveWay(to: account)
        case .waiting: .wait
        case .using, .plain, .reset: .reset
        }
    }
}

extension HeldKey {
    /// The notes of what the account was called before.
    package var formerNotes: [FormerName] {
        guard Rule.formerNames.isOn else { return [] }
        return former.plain.union(former.keys).subtracting([key.identifier]).sorted().map { FormerName($0, of: key) }
    }

    /// A new key in the place of a former one, or of none.
    /// - Parameters:
    ///   - time: microseconds since 1970, for people.
    ///   - random: 64 bits from the system's cryptographic generator.
    package init(replacing former: HeldKey?, time: UInt64, random: () -> UInt64) {
        let key = AccountKey(random: random)
        let link = former.map { KeyLink(from: $0.key, to: key.identifier, .replaced) }
        let marker = SealedMarker(
            of: key, time: time, links: (link.map { [$0] } ?? []) + (former?.marker.links ?? []))
        self.init(key: key, marker: marker, rejected: former?.rejected ?? [])
    }
}
