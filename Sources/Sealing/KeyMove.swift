// SPDX-License-Identifier: Apache-2.0

// The move of an account to a new key, from an unencrypted form or from a former key. Only the content of `a/` decides
// the next step, so a move can be interrupted anywhere and continues where it was: no I/O, no clock.
// docs/remote-format.md has the order.

internal import Replication

/// The forms that an account had before. What is left of them is removed once the account is under its key.
package struct FormerForms: Equatable, Sendable {
    /// The account's identifiers when it was unencrypted.
    package var plain: Set<KeyIdentifier>
    /// The account's former keys.
    package var keys: Set<KeyIdentifier>
    /// Whether leftovers were removed once. Any that are found later come from a device that did not know of the move.
    package var areRemoved: Bool

    package init(plain: Set<KeyIdentifier> = [], keys: Set<KeyIdentifier> = [], areRemoved: Bool = false) {
        (self.plain, self.keys, self.areRemoved) = (plain, keys, areRemoved)
    }

    /// Whether the account had no former form.
    package var isEmpty: Bool { plain.isEmpty && keys.isEmpty }
}

/// A move of an account to a new key.
package struct KeyMove: Equatable, Sendable {
    /// The account's present key; `nil` if the account is unencrypted.
    package let former: HeldKey?
    /// The account's future key.
    package let next: HeldKey

    package init(from former: HeldKey?, to next: HeldKey) { (self.former, self.next) = (former, next) }

    /// The link from the present key to the new one; `nil` if the account is unencrypted, and so has no key to
    /// prove a link with.
    package var link: KeyLink? { former.map { KeyLink(from: $0.key, to: next.key.identifier, .replaced) } }

    /// The account's identifiers when the move began.
    package var formerNames: Set<KeyIdentifier> { former.map { [$0.key.identifier] } ?? next.former.plain }

    /// The next step of a device.
    package enum Step: Equatable, Sendable {
        /// Write the new key's marker, at which other devices stop.
        case writeMarker
        /// Write the note of a link.
        case writeNote(KeyLink)
        /// Write the notes of the account's former names.
        case writeFormerNames([FormerName])
        /// Read the former form to its end. Then the new key becomes the account's.
        case readFormer
        /// Write a link to the other key that has become the account's, remove the new key's marker, and stop.
        case giveWay(KeyLink)
        /// Wait, because the new key's marker, or another one that decides, has not arrived whole.
        case wait
        /// Stop, because the account is gone from the remote.
        case reset
    }

    /// Decides on the next step.
    /// - Parameters:
    ///   - seen: what is in `a/`, with the proofs of notes of the new key.
    ///   - notes: the names of the notes that are there.
    ///   - hasFormer: whether the account's marker in its former form is there.
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

    /// Decides if the former form is gone too soon, with another device's move or with the account.
    private func withoutFormer(_ seen: SeenMarkers) -> Step {
        switch MarkerChoice(among: seen, key: nil, wasEncrypted: true, rejected: next.rejected) {
        case .keyNeeded(let account): giveWay(to: account)
        case .waiting: .wait
        case .using, .plain, .reset: .reset
        }
    }
}

extension HeldKey {
    /// The notes of the account's former names.
    package var formerNotes: [FormerName] {
        guard Rule.formerNames.isOn else { return [] }
        return former.plain.union(former.keys).subtracting([key.identifier]).sorted().map { FormerName($0, of: key) }
    }

    /// Makes a new key, and a marker that links to it from a former key if there is one.
    ///
    /// The new identifier is less than those of the keys that the user has rejected: of two keys that replace the same
    /// one, the smaller is the account's, so devices that have a rejected key stop until they have the new one.
    /// - Parameters:
    ///   - time: the time of the marker, in microseconds since 1970; for users to read.
    ///   - random: returns 64 bits from the system's cryptographic generator.
    package init(replacing former: HeldKey?, time: UInt64, random: () -> UInt64) {
        let key = AccountKey(below: former?.rejected.min(), random: random)
        let link = former.map { KeyLink(from: $0.key, to: key.identifier, .replaced) }
        let marker = SealedMarker(
            of: key, time: time, links: (link.map { [$0] } ?? []) + (former?.marker.links ?? []))
        self.init(key: key, marker: marker, rejected: former?.rejected ?? [])
    }
}
