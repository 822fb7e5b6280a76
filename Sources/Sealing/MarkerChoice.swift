// SPDX-License-Identifier: Apache-2.0

// Which of a remote's markers is the account's, decided from what is in `a/` and the device's own key: no I/O, no
// clock. Several devices may encrypt an account or replace its key at the same time without knowing of each other, and
// a folder brings their files one by one. All of them must end up with one key, and never with one that was replaced.
// The rules are in docs/remote-format.md.
//
// Anyone who can write to the remote decides how many markers and links there are, so all of this takes linear time.

internal import Replication

/// The content of `a/`, as a device has read it.
package struct SeenMarkers: Sendable {
    /// The sealed markers that have arrived whole.
    package var sealed: [SealedMarker]
    /// The links in notes: those of the device's own key with their proofs, others without.
    package var notes: [KeyLink]
    /// The most markers, and the most notes of the device's own key, that are read. Anyone who can write to the remote
    /// can add any number, and each link of the device's own key costs a MAC.
    package static let mostRead = 256
    /// The names of markers that are there and can't be read.
    package var damaged: Set<KeyIdentifier>

    package init(sealed: [SealedMarker] = [], notes: [KeyLink] = [], damaged: Set<KeyIdentifier> = []) {
        (self.sealed, self.notes, self.damaged) = (sealed, notes, damaged)
    }
}

extension SeenMarkers {
    /// Whether a holder of a key has left it for another one that has a marker, or that leads to one.
    ///
    /// Anyone who can write to the remote can add links of other keys. So the key's own marker doesn't count: a forged
    /// link may lead back to it from the key's successor.
    /// - Parameter kinds: the kinds of links from the key that count.
    package func hasSuccessor(of key: AccountKey, by kinds: Set<KeyLink.Kind> = [.replaced, .joined]) -> Bool {
        let identifiers = Set(sealed.map(\.identifier))
        let all = notes + (Rule.markerLinks.isOn ? sealed.flatMap(\.links) : [])
        // A move that gave way has removed its marker, but not its notes. Its key leads nowhere, whatever others add.
        let gaveWay = Set(all.filter { $0.kind == .gaveWay }.map(\.first)).subtracting(identifiers)
        let own = all.filter { $0.first == key.identifier && kinds.contains($0.kind) && $0.isProven(by: key.blobs) }
        if own.isEmpty { return false }
        let others = all.filter {
            $0.kind != .gaveWay && $0.first != key.identifier && !gaveWay.contains($0.first)
        }
        let graph = KeyGraph(identifiers.subtracting([key.identifier]), others + own)
        return own.contains { graph.leadsToMarker(from: $0.second) }
    }
}

/// The marker that is the account's, and what that means for a device.
package enum MarkerChoice: Equatable, Sendable {
    /// There is no sealed marker, so plain ones decide.
    case plain
    /// The device's own key is the account's.
    case using
    /// The account is under another key. The device stops until it has that key.
    case keyNeeded(KeyIdentifier)
    /// The account is gone from the remote.
    case reset
    /// A marker that matters is damaged, or has not arrived whole.
    case waiting

    /// Chooses the account's marker.
    /// - Parameters:
    ///   - key: the device's key, if it has one.
    ///   - wasEncrypted: whether the account was encrypted when the device last saw it.
    ///   - rejected: the markers that the device's user has rejected.
    ///   - awaited: the key that the user has accepted as the account's after the device's own was gone. The device's
    ///     key counts as leading to it.
    package init(
        among seen: SeenMarkers, key: AccountKey?, wasEncrypted: Bool, rejected: Set<KeyIdentifier> = [],
        awaited: KeyIdentifier? = nil
    ) {
        let there = seen.sealed.filter { !rejected.contains($0.identifier) }
        let isDamaged = key.map { key in
            seen.damaged.contains(key.identifier)
                || there.contains { $0.identifier == key.identifier && !$0.isGenuine(under: key.blobs) }
        }
        if isDamaged == true {
            self = .waiting
            return
        }
        let gone: MarkerChoice = seen.damaged.isEmpty ? .reset : .waiting
        let identifiers = Set(there.map(\.identifier))
        let notes = Rule.notes.isOn ? seen.notes : []
        var links = (notes + (Rule.markerLinks.isOn ? there.flatMap(\.links) : [])).filter { link in
            guard let key, link.first == key.identifier, Rule.provenLinks.isOn else { return true }
            return link.isProven(by: key.blobs)
        }
        if let key, let awaited { links.append(KeyLink(from: key, to: awaited, .joined)) }
        let graph = KeyGraph(identifiers, links)
        let replacing = links.filter { $0.kind == .replaced || !Rule.linkKinds.isOn }
        guard let first = graph.account(replaced: Set(replacing.map(\.first))) else {
            self = key == nil && !wasEncrypted ? .plain : gone
            return
        }
        var account = first
        if let key, first == key.identifier, Rule.provenSuccessors.isOn,
            SeenMarkers(sealed: there, notes: notes).hasSuccessor(of: key, by: [.replaced])
        {
            // A forged link leads back to it from the keys that came after it.
            account = graph.account(replaced: [], except: first) ?? first
        }
        if account == key?.identifier {
            self = .using
        } else if let key, !identifiers.contains(key.identifier), !graph.leadsToMarker(from: key.identifier) {
            self = gone
        } else {
            self = .keyNeeded(account)
        }
    }
}

/// The result of trying a recovery phrase.
package enum Unlocking: Equatable, Sendable {
    /// The phrase opens the account of this key.
    case account(AccountKey)
    /// The phrase was the account's, but its key was replaced.
    case replaced
    /// The phrase opens no marker.
    case wrong

    /// Tries a phrase on all markers.
    /// - Parameter notes: the links in notes. Those of keys that the phrase opens need their proofs.
    package init(
        _ phrase: RecoveryPhrase, on markers: [SealedMarker], notes: [KeyLink], rejected: Set<KeyIdentifier> = []
    ) {
        let there = markers.filter { !rejected.contains($0.identifier) }
        let opened = there.compactMap { marker in
            let key = phrase.key(marker.identifier)
            return marker.isGenuine(under: key.blobs) ? key : nil
        }
        let seen = SeenMarkers(sealed: there, notes: notes)
        let current = opened.filter { !seen.hasSuccessor(of: $0, by: [.replaced]) }
        if let key = current.min(by: { $0.identifier < $1.identifier }) {
            self = .account(key)
        } else {
            self = opened.isEmpty ? .wrong : .replaced
        }
    }
}
