// SPDX-License-Identifier: Apache-2.0

// Blobs as files of a WebDAV server, which is trusted only for a file's content when it is read. Servers ignore
// conditions, take locks for advice, move files in two steps and give two contents one ETag (docs/webdav.md). So this
// code uses no conditions, locks or moves, and an ETag only says that a head is worth reading again.

internal import BackendSupport
package import Blobs
internal import HTTPClient
package import Replication

/// A folder of a WebDAV server.
package final class WebDAVStorage: BlobStorage {
    let folder: WebDAVFolder
    let lister: WebDAVLister

    /// - Parameter settling: the time after which a device that read a file of names before it was written has written
    ///   it too.
    init(
        _ url: WebDAVURL, _ options: HTTPOptions, settling: Duration = .seconds(1), budget: RemoteBudget = .shared
    ) {
        folder = WebDAVFolder(url, options, budget: budget)
        lister = WebDAVLister(folder, settling: settling)
    }

    /// The storage's costs. Changes are batched: servers keep every version of a file, and a change costs a request.
    package var traits: BackendTraits { BackendTraits(coalescing: .seconds(1), givesHints: false) }

    /// Returns an empty stream, since servers don't report changes.
    package func hints() -> AsyncStream<Void> { AsyncStream { $0.finish() } }

    /// Ends what is under way.
    package func close() { folder.client.close() }

    /// Sends nothing, because the next request finds out whether the server answers. A missing folder is created once
    /// it turns out to be missing.
    package func check(creatingFolder createsFolder: Bool) async throws(RemoteError) -> [String] {
        folder.mayBeCreated = createsFolder
        return [folder.url.warning].compactMap(\.self)
    }

    // MARK: Reading

    /// Lists the names in a folder that may be blobs', with versions if they are heads.
    package func list(_ folder: String) async throws(RemoteError) -> [BlobListing] { try await lister.list(folder) }

    /// Reads a file.
    package func get(_ name: String, limit: Int, unless version: String?) async throws(RemoteError) -> BlobContent {
        let request = HTTPRequest("GET", folder.address(name), headers: [("Cache-Control", "no-cache")], limit: limit)
        let response: HTTPResponse
        do throws(HTTPFailure) { response = try await folder.response(to: request) } catch {
            if case .tooLarge = error { return .unreadable("is too large") }
            throw folder.failure(error)
        }
        switch response.status {
        case 200 where !response.isPage, 204:
            return .content(response.body, version: lister.version(of: name, read: response.body.count))
        case 404, 410: return .absent
        default: throw folder.failure(response, at: name)
        }
    }

    // MARK: Writing

    /// Replaces a file.
    package func put(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) {
        try await lister.nameSegments(before: name)
        let response = try await folder.write(name, bytes)
        guard response.isDone else { throw folder.failure(response, at: name) }
        try await lister.noteWritten(name)
    }

    /// Writes a file that replaces no other: its name is random, or a file that exists has the same content, or the
    /// beginning of it. Servers are asked not to replace it all the same, since some can do that.
    package func create(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) {
        var response = try await folder.write(name, bytes, [("If-None-Match", "*")])
        if response.status == 412 {
            // The response to the same request may have been lost.
            guard let present = try await beginning(of: bytes, in: name) else {
                throw RemoteError(.denied, "\(name) exists already.")
            }
            if present == bytes { return try await lister.noteWritten(name) }
            response = try await folder.write(name, bytes)
        }
        guard response.isDone else {
            if [500, 507].contains(response.status) { await removeBeginning(of: bytes, in: name) }
            throw folder.failure(response, at: name)
        }
        try await lister.noteWritten(name)
    }

    /// Removes a marker that has only the beginning of what was written: some servers keep it if their disk is full, and
    /// it would be a damaged one. Its name is random; a segment's may be what another device is just writing.
    private func removeBeginning(of bytes: [UInt8], in name: String) async {
        guard name.hasPrefix(BlobName.markers + "/") else { return }
        do {
            if let present = try await beginning(of: bytes, in: name), present != bytes { try await delete(name) }
        } catch {}
    }

    /// Returns what a file has, if some bytes begin with that.
    private func beginning(of bytes: [UInt8], in name: String) async throws(RemoteError) -> [UInt8]? {
        guard case .content(let present, _) = try await get(name, limit: bytes.count, unless: nil),
            bytes.starts(with: present)
        else { return nil }
        return present
    }

    /// Removes a file.
    package func delete(_ name: String) async throws(RemoteError) {
        try await folder.delete(name)
        await lister.noteRemoved(name)
    }
}
