// SPDX-License-Identifier: Apache-2.0

internal import Blobs
internal import HTTPClient
internal import Replication
internal import Synchronization

extension WebDAVStorage {
    /// Lists a folder by asking for everything that may be there.
    func listByNames(_ subfolder: String) async throws(RemoteError) -> [BlobListing] {
        let names = names(of: subfolder)
        let members = try await names.list()
        if subfolder == BlobName.markers, members.isEmpty, !folder.mayBeCreated {
            try await checkFolderAcceptsFiles()
            if !names.wasRead {
                // A server that has stopped listing may have an account, and may list again.
                way = .unknown
                throw RemoteError(
                    .noAccount,
                    "There is no account here yet, or none that was made while \(folder.host) lists no folders.")
            }
        }
        return listings(of: members, in: subfolder)
    }

    /// Checks that the folder accepts a file. Only then does an empty list mean that it has no account.
    private func checkFolderAcceptsFiles() async throws(RemoteError) {
        let name = WebDAVFolder.probeName + "names"
        let response = try await folder.write(name, [1])
        if [405, 501].contains(response.status) { throw folder.notWebDAV }
        if [404, 409, 500].contains(response.status) { throw folder.missingFolder }
        guard response.isDone else { throw folder.failure(response, at: name) }
        try await folder.delete(name)
    }

    /// Notes that a file was written. A head is not published before its name is where other devices find it.
    func noteWritten(_ path: String) async throws(RemoteError) {
        let way = way
        guard way == .unknown || way == .names else { return }
        let (subfolder, name) = Self.parts(path)
        let names = names(of: subfolder)
        names.insert(name)
        if way == .names { try await names.publish(name) }
    }

    /// Lists all new segments at once, before the head that names them is written.
    func noteSegments(before path: String) async throws(RemoteError) {
        guard way == .names, Self.parts(path).subfolder == BlobName.heads else { return }
        try await state.withLock { $0.names[BlobName.segments] }?.write()
    }

    /// Notes that a file was removed. If its name stays listed, that only costs a request with each listing.
    func noteRemoved(_ path: String) async {
        let (subfolder, name) = Self.parts(path)
        guard let names = state.withLock({ $0.names[subfolder] }) else { return }
        if names.remove(name), way == .names, subfolder == BlobName.heads { do { try await names.write() } catch {} }
    }

    private func names(of subfolder: String) -> WebDAVNames {
        state.withLock { state in
            let names = state.names[subfolder] ?? WebDAVNames(of: subfolder, in: folder, settling: settling)
            state.names[subfolder] = names
            return names
        }
    }

    private static func parts(_ path: String) -> (subfolder: String, name: String) {
        guard let slash = path.lastIndex(of: "/") else { return ("", path) }
        return (String(path[..<slash]), String(path[path.index(after: slash)...]))
    }
}
