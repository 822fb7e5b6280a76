// SPDX-License-Identifier: Apache-2.0

// Blobs as files of a WebDAV server, of which nothing is believed but what is in a file when it is read. Servers ignore
// conditions, take locks for advice, move files in two steps and give two contents one ETag (docs/webdav.md), so there
// are no conditions, locks and moves here, and an ETag only says that a head is worth reading again.

internal import BackendSupport
public import Blobs
internal import HTTPClient
public import Replication
internal import Synchronization

/// A folder of a WebDAV server.
public final class WebDAVStorage: BlobStorage {
    let url: WebDAVURL
    let client: HTTPClient
    private let hasCredentials: Bool
    let state = Mutex(State())
    /// After so long whoever has read a file of names before it was written has written it, too.
    let settling: Duration
    /// For answers, as long as they come.
    let budget: RemoteBudget

    struct State {
        /// The folder itself may be made.
        var makesPlace = false
        /// The server has PROPFIND: without it, it is not itself.
        var hasListed = false
        /// It has an index instead.
        var hasIndex = false
        /// It has neither.
        var keepsNames = false
        /// What is known of each folder then.
        var names: [String: Names] = [:]
        /// The heads' versions at the last listing.
        var versions: [String: String] = [:]
    }

    init(
        _ url: WebDAVURL, _ options: HTTPOptions, settling: Duration = .seconds(1), budget: RemoteBudget = .shared
    ) {
        (self.url, self.settling, self.budget) = (url, settling, budget)
        client = HTTPClient(options)
        hasCredentials = options.credentials != .none
    }

    /// A change waits a little for others: servers keep every version of a file, and every change costs a request.
    public var traits: BackendTraits { BackendTraits(coalescing: .seconds(1), tellsOfChanges: false) }

    /// A server tells of nothing.
    public func hints() -> AsyncStream<Void> { AsyncStream { $0.finish() } }

    /// Ends what is under way.
    public func close() { client.close() }

    /// Asks nothing: whatever comes next finds out whether the server is there. A folder is made when it turns out that
    /// it is missing.
    public func check(makingPlace makesPlace: Bool) async throws(RemoteError) -> [String] {
        state.withLock { $0.makesPlace = makesPlace }
        return [url.warning].compactMap(\.self)
    }

    // MARK: Reading

    /// Reads a file.
    public func get(_ name: String, limit: Int, unless version: String?) async throws(RemoteError) -> BlobContent {
        let request = HTTPRequest("GET", address(name), headers: [("Cache-Control", "no-cache")], limit: limit)
        let response: HTTPResponse
        do throws(HTTPFailure) { response = try await answer(to: request) } catch {
            if case .tooLarge = error { return .unreadable("is too large") }
            throw failure(error)
        }
        switch response.status {
        case 200 where response.isPage: throw page
        case 200, 204:
            // What was listed before it was read: if it changed in between, it is read once more.
            let version = state.withLock { $0.versions[String(name.dropFirst(BlobName.heads.count + 1))] }
            return .content(response.body, version: name.hasPrefix(BlobName.heads + "/") ? version : nil)
        case 404, 410: return .absent
        default: throw answer(response, name)
        }
    }

    // MARK: Writing

    /// Replaces a file.
    public func put(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) {
        try await noteSegments(before: name)
        let response = try await write(name, bytes)
        guard response.isDone else { throw answer(response, name) }
        try await noteWritten(name)
    }

    /// Writes a file that never replaces one: its name is random, or it is the same file. Servers that know how are
    /// asked not to replace it all the same.
    public func create(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) {
        let response = try await write(name, bytes, [("If-None-Match", "*")])
        if response.status == 412 {
            // The answer to the same request may have been lost.
            guard case .content(bytes, _) = try await get(name, limit: bytes.count, unless: nil) else {
                throw RemoteError(.denied, "\(name) is there already.")
            }
        } else if !response.isDone {
            throw answer(response, name)
        }
        try await noteWritten(name)
    }

    /// Removes a file.
    public func delete(_ name: String) async throws(RemoteError) {
        let response = try await send(HTTPRequest("DELETE", address(name)))
        guard response.isDone || response.status == 404 || response.status == 410 else {
            throw answer(response, name)
        }
        await noteRemoved(name)
    }

    /// Writes a file, and makes its folder if it turns out to be missing.
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

    /// nginx answers 500 where there is no folder. Apache answers 403 whenever it can't open the file, so also where
    /// another device makes or removes the folder just then.
    private static func mayLackFolder(_ response: HTTPResponse) -> Bool {
        [403, 404, 409, 500].contains(response.status)
    }

    /// Makes a folder in the place, and the place itself if that is wanted. One that is there already is no failure.
    /// - Returns: the answer that says why it can't be made.
    private func makeFolder(_ folder: String) async throws(RemoteError) -> HTTPResponse? {
        let response = try await send(HTTPRequest("MKCOL", address(folder)))
        guard [404, 409].contains(response.status), state.withLock(\.makesPlace) else { return response.refusal }
        let place = try await send(HTTPRequest("MKCOL", address("")))
        if [404, 409].contains(place.status) {
            throw RemoteError(
                .unavailable,
                "The folder \(url.address.path) can't be made on \(url.address.host): make the one above it first.")
        }
        // Refused or not: Apache answers 403 where another device makes the same folder at that moment, as then it is there.
        let second = try await send(HTTPRequest("MKCOL", address(folder)))
        return [404, 409].contains(second.status) ? place.refusal : second.refusal
    }

    // MARK: Requests

    func send(_ request: HTTPRequest) async throws(RemoteError) -> HTTPResponse {
        do throws(HTTPFailure) { return try await answer(to: request) } catch { throw failure(error) }
    }

    /// Sends a request, and counts what comes.
    private func answer(to request: HTTPRequest) async throws(HTTPFailure) -> HTTPResponse {
        var request = request
        request.mayKeep = budget.share().take
        return try await client.send(request)
    }

    /// The address of something in the place; names need no encoding.
    func address(_ name: String) -> HTTPAddress {
        var address = url.address
        let base = address.path == "/" ? "" : address.path
        address.path = base + (name.hasPrefix("/") ? name : "/" + name)
        return address
    }

    // MARK: Failures

    /// What it means that there is no answer.
    func failure(_ failure: HTTPFailure) -> RemoteError {
        RemoteError(webDAV: failure, isSecure: url.address.isSecure)
    }

    /// What an answer means about the folder itself.
    func failure(_ response: HTTPResponse) -> RemoteError { answer(response, "") }

    func answer(_ response: HTTPResponse, _ name: String) -> RemoteError {
        if response.isPage, response.status < 400 { return page }
        return RemoteError(response, from: address(name), hasCredentials: hasCredentials)
    }

    /// Known, or found out, not to be the server that it was.
    var lapse: RemoteError {
        RemoteError(
            .unavailable,
            "\(url.address.host) is no WebDAV server at \(url.address.path) just now, but shows a page: it is being worked "
                + "on, or that is no WebDAV address.")
    }

    var absence: RemoteError {
        RemoteError(
            .unavailable, "There is no folder \(url.address.path) on \(url.address.host).", lacksPlace: true)
    }

    func wrongPath(below above: String) -> RemoteError {
        RemoteError(
            .unavailable,
            "The path is wrong: on \(url.address.host) there is no \(above) in which \(url.address.path) could be made. "
                + "Look for a typing error; on Nextcloud, what follows /files/ is the user's name, in its capitals.")
    }

    private var page: RemoteError {
        RemoteError(
            .unavailable,
            "\(url.address.host) answered with a web page: the network wants somebody to log in, or "
                + "\(url.address.path) is no WebDAV address.")
    }

    func corrupt(_ flaw: XMLScanner.Flaw) -> RemoteError {
        RemoteError(.unavailable, "What \(url.address.host) lists makes no sense: \(flaw.clause).")
    }
}

extension HTTPResponse {
    /// What was asked for is done.
    var isDone: Bool { status == 201 || status == 204 || (status == 200 && !isPage) }

    /// It says why a folder is not made, other than that it is there or the one above it is not.
    fileprivate var refusal: HTTPResponse? { status < 400 || [404, 405, 409, 501].contains(status) ? nil : self }

    /// It is something for people to read, as no blob is.
    var isPage: Bool {
        (mediaType == "text/html" || mediaType == "application/xhtml+xml")
            && body.first { ![0x20, 0x09, 0x0A, 0x0D, 0xEF, 0xBB, 0xBF].contains($0) } == UInt8(ascii: "<")
    }
}
