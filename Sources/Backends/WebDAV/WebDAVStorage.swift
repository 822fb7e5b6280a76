// SPDX-License-Identifier: Apache-2.0

// Blobs as files of a WebDAV server, which is trusted only for a file's content when it is read. Servers ignore
// conditions, take locks for advice, move files in two steps and give two contents one ETag (docs/webdav.md). So this
// code uses no conditions, locks or moves, and an ETag only says that a head is worth reading again.

internal import BackendSupport
package import Blobs
internal import HTTPClient
internal import RemoteAddress
package import Replication
internal import Synchronization

/// A folder of a WebDAV server.
package final class WebDAVStorage: BlobStorage {
    let url: WebDAVURL
    let client: HTTPClient
    private let hasCredentials: Bool
    let state = Mutex(State())
    /// The time after which a device that read a file of names before it was written has written it too.
    let settling: Duration
    /// The memory for responses, while they arrive.
    let budget: RemoteBudget

    struct State {
        /// Whether the account's own folder may be created.
        var createsFolder = false
        /// Whether the server has answered a PROPFIND. If it no longer does, something else is answering in its place.
        var hasListed = false
        /// Whether the server has an index instead.
        var hasIndex = false
        /// Whether the server has neither.
        var keepsNames = false
        /// What is known of each folder's names in that case.
        var names: [String: Names] = [:]
        /// The heads' versions at the last listing.
        var versions: [String: Version] = [:]
    }

    /// What a listing tells of a head's content.
    struct Version {
        let text: String
        /// The length in bytes, if the server tells it.
        let length: String?
    }

    init(
        _ url: WebDAVURL, _ options: HTTPOptions, settling: Duration = .seconds(1), budget: RemoteBudget = .shared
    ) {
        (self.url, self.settling, self.budget) = (url, settling, budget)
        client = HTTPClient(options)
        hasCredentials = options.credentials != .none
    }

    /// The storage's costs. Changes are batched: servers keep every version of a file, and a change costs a request.
    package var traits: BackendTraits { BackendTraits(coalescing: .seconds(1), givesHints: false) }

    /// Returns an empty stream, since servers don't report changes.
    package func hints() -> AsyncStream<Void> { AsyncStream { $0.finish() } }

    /// Ends what is under way.
    package func close() { client.close() }

    /// Sends nothing, because the next request finds out whether the server answers. A missing folder is created once
    /// it turns out to be missing.
    package func check(creatingFolder createsFolder: Bool) async throws(RemoteError) -> [String] {
        state.withLock { $0.createsFolder = createsFolder }
        return [url.warning].compactMap(\.self)
    }

    // MARK: Reading

    /// Reads a file.
    package func get(_ name: String, limit: Int, unless version: String?) async throws(RemoteError) -> BlobContent {
        let request = HTTPRequest("GET", address(name), headers: [("Cache-Control", "no-cache")], limit: limit)
        let response: HTTPResponse
        do throws(HTTPFailure) { response = try await answer(to: request) } catch {
            if case .tooLarge = error { return .unreadable("is too large") }
            throw failure(error)
        }
        switch response.status {
        case 200 where response.isPage: throw page
        case 200, 204:
            return .content(response.body, version: listedVersion(of: name, response.body))
        case 404, 410: return .absent
        default: throw answer(response, name)
        }
    }

    /// Returns the version of a head that was read: the last listing's. If the head has changed since, it is read once
    /// more. A server whose listings are ahead of its files may have returned the head before, which has another
    /// length and so gets no version.
    private func listedVersion(of name: String, _ body: [UInt8]) -> String? {
        guard name.hasPrefix(BlobName.heads + "/") else { return nil }
        let listed = state.withLock { $0.versions[String(name.dropFirst(BlobName.heads.count + 1))] }
        if let length = Int(listed?.length ?? ""), length != body.count { return nil }
        return listed?.text
    }

    // MARK: Writing

    /// Replaces a file.
    package func put(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) {
        try await noteSegments(before: name)
        let response = try await write(name, bytes)
        guard response.isDone else { throw answer(response, name) }
        try await noteWritten(name)
    }

    /// Writes a file that replaces no other: its name is random, or a file that exists has the same content, or the
    /// beginning of it. Servers are asked not to replace it all the same, since some can do that.
    package func create(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) {
        var response = try await write(name, bytes, [("If-None-Match", "*")])
        if response.status == 412 {
            // The response to the same request may have been lost.
            guard let present = try await beginning(of: bytes, in: name) else {
                throw RemoteError(.denied, "\(name) exists already.")
            }
            if present == bytes { return try await noteWritten(name) }
            response = try await write(name, bytes)
        }
        guard response.isDone else {
            if [500, 507].contains(response.status) { await removeBeginning(of: bytes, in: name) }
            throw answer(response, name)
        }
        try await noteWritten(name)
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
        let response = try await send(HTTPRequest("DELETE", address(name)))
        guard response.isDone || response.status == 404 || response.status == 410 else {
            throw answer(response, name)
        }
        await noteRemoved(name)
    }

    /// Writes a file, and creates its folder if that turns out to be missing.
    func write(
        _ name: String, _ bytes: [UInt8], _ headers: [(name: String, value: String)] = []
    ) async throws(RemoteError) -> HTTPResponse {
        let request = HTTPRequest(
            "PUT", address(name), headers: [("Content-Type", "application/octet-stream")] + headers, body: bytes)
        let response = try await send(request)
        guard Self.mayLackFolder(response), let slash = name.lastIndex(of: "/") else { return response }
        let refusal = try await makeFolder(String(name[..<slash]) + "/")
        let second = try await send(request)
        return Self.mayLackFolder(second) ? refusal ?? second : second
    }

    /// Whether the response may mean that the folder is missing. nginx then answers 500. Apache answers 403 whenever it
    /// can't open the file, so also while another device creates or removes the folder.
    private static func mayLackFolder(_ response: HTTPResponse) -> Bool {
        [403, 404, 409, 500].contains(response.status)
    }

    /// Creates a folder in the account's, and that one too if it may be created. A folder that exists is no failure.
    /// - Returns: the response that says why it can't be created; `nil` if none does.
    private func makeFolder(_ folder: String) async throws(RemoteError) -> HTTPResponse? {
        let response = try await send(HTTPRequest("MKCOL", address(folder)))
        guard [404, 409].contains(response.status), state.withLock(\.createsFolder) else { return response.refusal }
        let place = try await send(HTTPRequest("MKCOL", address("")))
        if [404, 409].contains(place.status) {
            throw RemoteError(
                .unavailable,
                "The folder \(url.address.path) can't be made on \(url.address.host): make the one above it first.")
        }
        // Refused or not, try again: Apache answers 403 if another device has just created the same folder.
        let second = try await send(HTTPRequest("MKCOL", address(folder)))
        return [404, 409].contains(second.status) ? place.refusal : second.refusal
    }

    // MARK: Requests

    func send(_ request: HTTPRequest) async throws(RemoteError) -> HTTPResponse {
        do throws(HTTPFailure) { return try await answer(to: request) } catch { throw failure(error) }
    }

    /// Sends a request, and counts the response against the memory budget.
    private func answer(to request: HTTPRequest) async throws(HTTPFailure) -> HTTPResponse {
        var request = request
        request.mayKeep = budget.share().take
        return try await client.send(request)
    }

    /// Returns the address of a file or folder in the account's. Sync tools give copies of heads names with any
    /// characters.
    func address(_ name: String) -> HTTPAddress {
        var address = url.address
        let base = address.path == "/" ? "" : address.path
        address.path = base + (name.hasPrefix("/") ? "" : "/") + PercentCoding.encode(name, keeping: "/")
        return address
    }

    // MARK: Failures

    /// Returns the error for a missing response.
    func failure(_ failure: HTTPFailure) -> RemoteError {
        RemoteError(webDAV: failure, isSecure: url.address.isSecure)
    }

    /// Returns the error for a response about the account's folder itself.
    func failure(_ response: HTTPResponse) -> RemoteError { answer(response, "") }

    func answer(_ response: HTTPResponse, _ name: String) -> RemoteError {
        if response.isPage, response.status < 400 { return page }
        // Where there is no WebDAV, users look for the path that they gave.
        let place = response.status == 405 || response.status == 501 ? url.address : address(name)
        return RemoteError(response, from: place, hasCredentials: hasCredentials)
    }

    /// The error if something other than the WebDAV server answers at its address.
    var notWebDAV: RemoteError {
        RemoteError(
            .unavailable,
            "\(url.address.host) is not a WebDAV server at \(url.address.path) just now: it is under maintenance, or "
                + "this is not a WebDAV address.")
    }

    var missingFolder: RemoteError {
        RemoteError(
            .unavailable,
            "There is no folder \(url.address.path) on \(url.address.host).", reason: .folderMissing)
    }

    func wrongPath(below above: String) -> RemoteError {
        RemoteError(
            .unavailable,
            "The path is wrong: \(url.address.host) has no folder \(above) in which \(url.address.path) could be "
                + "created. Check the spelling; on Nextcloud, the user's name follows /files/, and upper and lower case "
                + "matter.")
    }

    private var page: RemoteError {
        RemoteError(
            .unavailable,
            "\(url.address.host) answered with a web page: log in to the network in a browser, or check whether "
                + "\(url.address.path) is a WebDAV address.")
    }

    func corrupt(_ flaw: XMLScanner.Flaw) -> RemoteError {
        RemoteError(.unavailable, "The listing from \(url.address.host) is invalid: \(flaw.clause).")
    }
}

extension HTTPResponse {
    /// Whether the request was carried out.
    var isDone: Bool { status == 201 || status == 204 || (status == 200 && !isPage) }

    /// The response, if it says why a folder can't be created: not that it exists, or that the one above it doesn't.
    fileprivate var refusal: HTTPResponse? { status < 400 || [404, 405, 409, 501].contains(status) ? nil : self }

    /// Whether the response is a web page, which no blob is.
    var isPage: Bool {
        (mediaType == "text/html" || mediaType == "application/xhtml+xml")
            && body.first { ![0x20, 0x09, 0x0A, 0x0D, 0xEF, 0xBB, 0xBF].contains($0) } == UInt8(ascii: "<")
    }
}
