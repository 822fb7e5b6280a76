// SPDX-License-Identifier: Apache-2.0

// Which of the markers in a place is the account's, decided from what lies there and the device's own key: no I/O, no
// clock. Devices may encrypt an account or replace its key at once and apart from each other, and a folder brings
// their files one by one; all of them have to end with one key, and never with one that was replaced. The rules are
// in docs/remote-format.md.
//
// How many markers and links there are is up to whoever can write there, so everything takes time in proportion.

internal import Replication

/// What lies in `a/`, as a device has read it.
package struct SeenMarkers: Sendable {
    /// Sealed markers that are whole.
    package var sealed: [SealedMarker]
    /// Links of notes: with their proofs those of the device's own key, by their names the others.
    package var notes: [KeyLink]
    /// Of more markers, or of more notes of one's own key, no more than this are read: whoever can write to the place
    /// can put any number there, and each link of the own key costs a MAC.
    package static let mostRead = 256
    /// Markers of these names are there and can't be read.
    package var damaged: Set<KeyIdentifier>

    package init(sealed: [SealedMarker] = [], notes: [KeyLink] = [], damaged: Set<KeyIdentifier> = []) {
        (self.sealed, self.notes, self.damaged) = (sealed, notes, damaged)
    }
}

extension SeenMarkers {
    /// Whether a holder of a key has given the account another one that is there, or was replaced by one that is.
    ///
    /// Anybody can put links of other keys there. So the key's own marker is not counted, to which somebody may have
    /// led its successor back.
    /// - Parameter kinds: of the links from the key.
    package func hasSuccessor(of key: AccountKey, by kinds: Set<KeyLink.Kind> = [.replaced, .joined]) -> Bool {
        let identifiers = Set(sealed.map(\.identifier))
        let all = notes + (Rule.markerLinks.isOn ? sealed.flatMap(\.links) : [])
        // A move that gave way has removed its marker, but not its notes: they lead nowhere, whatever others add to them.
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

/// Which marker is the account's, and what that means for a device.
package enum MarkerChoice: Equatable, Sendable {
    /// No sealed marker is there: plain ones decide.
    case plain
    /// The device's own key is the account's.
    case using
    /// The account is under another key: the device stops until it has that.
    case keyNeeded(KeyIdentifier)
    /// The account is gone from the place.
    case reset
    /// A marker that matters is damaged, or not there as a whole yet.
    case waiting

    /// Chooses.
    /// - Parameters:
    ///   - key: the device's, if it has one.
    ///   - wasEncrypted: the account was encrypted when the device saw it last.
    ///   - rejected: markers that the device's person does not want.
    ///   - awaited: the key that the device's person has taken for the account's where the device's own was gone. The
    ///     own key leads to it.
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
            // Somebody has led the keys that came after it back to it.
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

/// What a recovery phrase opens.
package enum Unlocking: Equatable, Sendable {
    /// The account of this key.
    case account(AccountKey)
    /// The phrase was the account's, and its key was replaced.
    case replaced
    /// It opens no marker that is there.
    case wrong

    /// Tries a phrase on all markers.
    /// - Parameter notes: of the keys that the phrase opens with their proofs, and the others.
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
