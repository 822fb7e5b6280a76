// SPDX-License-Identifier: Apache-2.0

internal import Blobs
internal import Replication
internal import Synchronization

extension WebDAVStorage {
    /// Lists a folder by its index.
    func listByIndex(_ subfolder: String) async throws(RemoteError) -> [BlobListing] {
        let index = WebDAVIndex(folder: folder)
        let names = try await index.names(in: subfolder)
        let known = state.withLock { $0.names[subfolder] }?.known ?? []
        if let names, !names.isDisjoint(with: known) { trustIndex() }
        if let names, !names.isEmpty {
            return names.sorted().map { BlobListing(name: $0) }
        }
        if folder.mayBeCreated { return [] }
        if subfolder == BlobName.markers {
            try await index.check()
            trustIndex()
        }
        if subfolder.isEmpty, names == nil { throw folder.missingFolder }
        return []
    }

    private func trustIndex() {
        state.withLock { ($0.way, $0.names) = (.index, [:]) }
    }
}
