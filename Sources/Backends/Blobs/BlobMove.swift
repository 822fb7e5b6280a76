// SPDX-License-Identifier: Apache-2.0

// Moving an account to a new key: what KeyMove decides, done in `a/`. While it goes on the former form is read and
// nothing of it is written.

internal import BackendSupport
internal import Replication
package import Sealing

/// The files by which others learn of a move.
struct BlobMove<Storage: BlobStorage> {
    let storage: Storage
    let move: KeyMove
    /// What lies in `a/`, with the proofs of notes of the new key.
    let seen: SeenMarkers
    /// The links of all notes that are there.
    let notes: [KeyLink]
    /// The identifiers of the account in its former form.
    let former: Set<Bits128>

    /// Makes the next step.
    /// - Returns: the identifiers of the account whose former form is to be read now; `nil` if there is another step.
    func advance() async throws(RemoteError) -> Set<Bits128>? {
        let marker = BlobName.marker(Bits128(move.next.key.identifier))
        switch move.step(seen, notes: Set(notes.map(\.noteName)), hasFormer: !former.isEmpty) {
        case .writeMarker: try await storage.create(marker, move.next.marker.bytes)
        case .writeNote(let link): try await storage.create("\(BlobName.markers)/\(link.noteName)", link.note())
        // Its marker may be removed already, by a device that came later.
        case .readFormer: return former.union(move.formerNames.map { Bits128($0) })
        case .giveWay:
            try await storage.delete(marker)
            throw RemoteError.keyNeeded
        case .wait:
            throw RemoteError(.damaged, "A file that says which account is here is damaged or has not arrived whole.")
        case .reset: throw RemoteError(.reset, "The account that was here is gone.")
        }
        return nil
    }
}

extension BlobBackend {
    /// Has others learn of a move, unless they have moved to another key.
    /// - Returns: the identifiers of the account, of which the former form is to be read.
    func prepare(_ move: KeyMove) async throws(RemoteError) -> Set<Bits128> {
        // The marker, the note, and once more to see them there.
        for _ in 0..<3 {
            let found = try await readMarkers(expecting: accountIdentifiers)
            let seen = try await read(found, provingNotesOf: move.next.key.identifier)
            let step = BlobMove(
                storage: storage, move: move, seen: seen, notes: found.notes, former: formerAccount(found, move))
            if let identifiers = try await step.advance() { return identifiers }
        }
        throw RemoteError(.unavailable, "What was written to the place is not found there; it is tried again.")
    }

    /// The account in its former form, if it is there; a place may hold another one since.
    private func formerAccount(_ found: FoundMarkers, _ move: KeyMove) -> Set<Bits128> {
        let names = Set(move.formerNames.map { Bits128($0) })
        guard let former = move.former else { return found.plain.isDisjoint(with: names) ? [] : found.plain }
        return found.sealed[former.key.identifier]?.isGenuine(under: former.key.blobs) == true ? names : []
    }

    /// Tells those who have a former key that this device has gone over to the account's.
    package func noteJoining(from former: AccountKey) async throws {
        guard let held = protection.held, former.identifier != held.key.identifier else { return }
        let link = KeyLink(from: former, to: held.key.identifier, .joined)
        let name = "\(BlobName.markers)/\(link.noteName)"
        if case .content = try await storage.get(name, limit: AccountMarker.limit, unless: nil) { return }
        try await storage.create(name, link.note())
    }

    /// Removes what is left of the account in the forms that it had before it was under its key.
    package func removeFormerForms() async throws {
        guard case .key(var held) = protection, !held.former.areNone else { return }
        // Its key may have been replaced since.
        try await checkPlace()
        _ = try await markedAccount()
        try await FormerFormRemoval(storage: storage, former: held.former).run()
        memory.segments = nil
        held.former.areRemoved = true
        protection = .key(held)
    }
}

extension Protection {
    /// Whether a head that is not under the account's key is of this account all the same, and not worth a word.
    func passesOver(_ head: [UInt8]) -> Bool {
        switch self {
        case .moving: true
        case .key(let held):
            !held.former.areRemoved && held.former.hasHead(head)
                || SealedBlob.key(ofHead: head).map(held.rejected.contains) ?? false
        case .none, .phrase, .locked: false
        }
    }
}
