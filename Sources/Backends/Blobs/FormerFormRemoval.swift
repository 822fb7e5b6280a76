// SPDX-License-Identifier: Apache-2.0

// After an account has moved to a key, its former forms are removed, so that they can no longer be read. Files that may
// be another account's stay. The removal may be interrupted anywhere; the next one removes the rest.

internal import Replication
internal import Sealing

/// Removes what is left of an account in its former forms.
struct FormerFormRemoval<Storage: BlobStorage> {
    let storage: Storage
    let former: FormerForms

    func run() async throws(RemoteError) {
        let (hasRemoved, hasOthers) = try await removeHeads()
        if hasRemoved || !former.areRemoved { try await removeSegments(keepingPlain: hasOthers) }
        try await removeMarkers()
    }

    /// - Returns: whether any were removed, and whether other unencrypted heads stay. What these name is unknown.
    private func removeHeads() async throws(RemoteError) -> (hasRemoved: Bool, hasOthers: Bool) {
        var (hasRemoved, hasOthers) = (false, false)
        for listing in try await storage.list(BlobName.heads) where BlobName.origin(inHeadName: listing.name) != nil {
            let name = "\(BlobName.heads)/\(listing.name)"
            let content = try await storage.get(name, limit: SealedBlob.Limit.head, unless: nil)
            guard case .content(let bytes, _) = content else { continue }
            if former.hasHead(bytes) {
                try await storage.delete(name)
                hasRemoved = true
            } else if !Envelope.isSealed(bytes) {
                hasOthers = true
            }
        }
        return (hasRemoved, hasOthers)
    }

    private func removeSegments(keepingPlain keepsPlain: Bool) async throws(RemoteError) {
        for listing in try await storage.list(BlobName.segments) where Bits128(listing.name) != nil {
            let name = "\(BlobName.segments)/\(listing.name)"
            let content = try await storage.get(name, limit: SealedBlob.Limit.segment, unless: nil)
            guard case .content(let bytes, _) = content, former.hasSegment(bytes, keepingPlain: keepsPlain) else {
                continue
            }
            try await storage.delete(name)
        }
    }

    /// Removes plain markers. Sealed ones stay: they reveal nothing, and show that a former phrase was replaced.
    private func removeMarkers() async throws(RemoteError) {
        for identifier in former.plain.sorted() {
            let name = BlobName.marker(Bits128(identifier))
            let content = try await storage.get(name, limit: AccountMarker.limit, unless: nil)
            guard case .content(let bytes, _) = content, let marker = try? AccountMarker(decoding: bytes),
                marker.identifier == Bits128(identifier)
            else { continue }
            try await storage.delete(name)
        }
    }
}

extension FormerForms {
    /// Whether a head is the account's in one of these forms.
    func hasHead(_ bytes: [UInt8]) -> Bool {
        if Envelope.isSealed(bytes) { return SealedBlob.key(ofHead: bytes).map(keys.contains) ?? false }
        guard !plain.isEmpty, let written = try? WrittenHead(decoding: bytes) else { return false }
        return plain.contains(KeyIdentifier(written.head.account)) || !Rule.ownLeftovers.isOn
    }

    /// Whether to remove a segment as the account's. An unencrypted one doesn't say whose it is: `keepsPlain` decides.
    func hasSegment(_ bytes: [UInt8], keepingPlain keepsPlain: Bool) -> Bool {
        if Envelope.isSealed(bytes) { return SealedBlob.key(ofSegment: bytes).map(keys.contains) ?? false }
        let isOurs = [Envelope.bucket, Envelope.vector, Envelope.index].contains { bytes.starts(with: $0) }
        return isOurs && !plain.isEmpty && !keepsPlain
    }
}
