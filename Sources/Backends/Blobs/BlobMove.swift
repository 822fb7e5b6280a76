// SPDX-License-Identifier: Apache-2.0

// Moving an account to a new key: what KeyMove decides, done in `a/`. While it goes on the former form is read and
// nothing of it is written.

internal import BackendSupport
internal import Replication
internal import Sealing

/// The files by which others learn of a move.
struct BlobMove<Storage: BlobStorage> {
    let storage: Storage
    let move: KeyMove
    /// What lies in `a/`, with the proofs of notes of the new key.
    let seen: SeenMarkers
    /// The names of all notes that are there.
    let notes: Set<String>
    /// The identifiers of the account in its former form.
    let former: Set<Bits128>

    /// Makes the next step.
    /// - Returns: the identifiers of the account whose former form is to be read now; `nil` if there is another step.
    func advance() async throws(RemoteError) -> Set<Bits128>? {
        let marker = BlobName.marker(Bits128(move.next.key.identifier))
        switch move.step(seen, notes: notes, hasFormer: !former.isEmpty) {
        case .writeMarker: try await storage.create(marker, move.next.marker.bytes)
        case .writeNote(let link): try await storage.create(link)
        case .writeFormerNames(let names):
            for name in names { try await storage.create(name) }
        // Its marker may be removed already, by a device that came later.
        case .readFormer: return former.union(move.formerNames.map { Bits128($0) })
        case .giveWay(let link):
            try await storage.create(link)
            try await storage.delete(marker)
            throw RemoteError.keyNeeded
        case .wait:
            throw RemoteError(.damaged, "A file that says which account is here is damaged or has not arrived whole.")
        case .reset: throw RemoteError(.reset, "The account that was here is gone.")
        }
        return nil
    }
}

extension KeyMove {
    /// The account in its former form, if it is there; a place may hold another one since.
    func formerAccount(_ found: FoundMarkers) -> Set<Bits128> {
        let names = Set(formerNames.map { Bits128($0) })
        guard let former else { return found.plain.isDisjoint(with: names) ? [] : found.plain }
        return found.sealed[former.key.identifier]?.isGenuine(under: former.key.blobs) == true ? names : []
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
