// SPDX-License-Identifier: Apache-2.0

package import Blobs
internal import HTTPClient
package import Replication
internal import Synchronization

extension WebDAVStorage {
    /// Lists the names in a folder that may be blobs', with versions if they are heads.
    package func list(_ subfolder: String) async throws(RemoteError) -> [BlobListing] {
        if way == .names { return try await listByNames(subfolder) }
        let (response, members) = try await folder.members(of: subfolder, withVersions: subfolder == BlobName.heads)
        switch response.status {
        case 207:
            way = .propfind
            return listings(of: members, in: subfolder)
        case 404, 410: return try await listAbsent(subfolder)
        case 405, 501:
            if way == .propfind { throw folder.notWebDAV }
            do throws(RemoteError) { return try await listByIndex(subfolder) } catch {
                guard error.code == .unsupported, way != .index else { throw error }
                way = .names
                return try await listByNames(subfolder)
            }
        default: throw folder.failure(response, at: subfolder)
        }
    }

    /// Makes listings of a folder's members, with versions if they are heads: only heads are ever replaced.
    func listings(of members: [Multistatus.Member], in subfolder: String) -> [BlobListing] {
        guard subfolder == BlobName.heads else { return members.map { BlobListing(name: $0.name) } }
        let versions = HeadVersions(members)
        state.withLock { $0.versions = versions }
        return members.map { BlobListing(name: $0.name, version: versions[$0.name]) }
    }

    /// Lists a folder that is not there, and so is empty. If the account's own folder is not there either, this throws:
    /// more likely than that the account was removed, the server's disk is not mounted.
    private func listAbsent(_ subfolder: String) async throws(RemoteError) -> [BlobListing] {
        guard subfolder == BlobName.markers || subfolder.isEmpty else { return [] }
        let createsFolder = folder.mayBeCreated
        if subfolder.isEmpty, !createsFolder { throw folder.missingFolder }
        let response = try await folder.look()
        switch (response.status, createsFolder) {
        case (207, _): break
        case (404, true), (410, true): try await folder.lookAbove()
        case (404, false), (410, false): throw folder.missingFolder
        case (405, false), (501, false): throw folder.notWebDAV
        case (_, false): throw folder.failure(response)
        // Creating the folder will show what is wrong.
        case (_, true): break
        }
        return []
    }
}
