// SPDX-License-Identifier: Apache-2.0

// Moves an account to a new key: carries out in `a/` what KeyMove decides. During the move, the account's former form
// is read and not written.

internal import BackendSupport
internal import Replication
internal import Sealing

/// Writes the files from which other devices learn of a move.
struct BlobMove<Storage: BlobStorage> {
    let storage: Storage
    let move: KeyMove
    /// The markers and notes in `a/`, with the proofs of the new key's notes.
    let seen: SeenMarkers
    /// The names of all notes in the remote.
    let notes: Set<String>
    /// The account's identifiers in its former form; empty if that form's marker is gone.
    let former: Set<Bits128>

    /// Carries out the next step.
    /// - Returns: the account's identifiers, if its former form is to be read now; `nil` if another step follows.
    func advance() async throws(RemoteError) -> Set<Bits128>? {
        let marker = BlobName.marker(Bits128(move.next.key.identifier))
        switch move.step(seen, notes: notes, hasFormer: !former.isEmpty) {
        case .writeMarker: try await storage.create(marker, move.next.marker.bytes)
        case .writeNote(let link): try await storage.create(link)
        case .writeFormerNames(let names):
            for name in names { try await storage.create(name) }
        // A device that has joined the new key may have removed the former marker already.
        case .readFormer: return former.union(move.formerNames.map { Bits128($0) })
        case .giveWay(let link):
            try await storage.create(link)
            try await storage.delete(marker)
            throw RemoteError.keyNeeded
        case .wait:
            throw RemoteError(
                .damaged, "A file that says which account is here is damaged or has not arrived completely.")
        case .reset: throw RemoteError.accountGone
        }
        return nil
    }
}

extension KeyMove {
    /// Returns the account's identifiers in its former form; empty if the markers are gone, or are another account's.
    func formerAccount(_ found: FoundMarkers) -> Set<Bits128> {
        let names = Set(formerNames.map { Bits128($0) })
        guard let former else { return found.plain.isDisjoint(with: names) ? [] : found.plain }
        return found.isThere(former.key) ? names : []
    }
}

extension Protection {
    /// Whether to skip a head under another key silently: during a move, in a former form, or under a rejected key.
    func skipsSilently(_ head: [UInt8]) -> Bool {
        switch self {
        case .moving: true
        case .key(let held):
            !held.former.areRemoved && held.former.hasHead(head)
                || SealedBlob.key(ofHead: head).map(held.rejected.contains) ?? false
        case .none, .phrase, .locked: false
        }
    }
}
