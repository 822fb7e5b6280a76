// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import Blobs
internal import HTTPClient
internal import RemoteAddress
internal import Replication
internal import Synchronization

/// The account's folder on a server: requests for it and for what is in it, and the errors that responses mean.
final class WebDAVFolder: Sendable {
    let url: WebDAVURL
    let client: HTTPClient
    private let hasCredentials: Bool
    /// The memory for responses, while they arrive.
    private let budget: RemoteBudget
    private let creation = Atomic(false)

    init(_ url: WebDAVURL, _ options: HTTPOptions, budget: RemoteBudget) {
        (self.url, self.budget) = (url, budget)
        client = HTTPClient(options)
        hasCredentials = options.credentials != .none
    }

    /// The server, as messages name it.
    var host: String { url.address.host }
    /// The folder's path on the server.
    var path: String { url.address.path }

    /// Whether the folder may be created once it turns out to be missing.
    var mayBeCreated: Bool {
        get { creation.load(ordering: .relaxed) }
        set { creation.store(newValue, ordering: .relaxed) }
    }

    /// Returns the address of a file or folder in this folder. Sync tools give copies of heads names with any
    /// characters.
    func address(_ name: String) -> HTTPAddress {
        var address = url.address
        let base = address.path == "/" ? "" : address.path
        address.path = base + (name.hasPrefix("/") ? "" : "/") + PercentCoding.encode(name, keeping: "/")
        return address
    }

    /// Whether a name may be that of a blob, or of a file that a check writes.
    static func mayBeOurs(_ name: String) -> Bool {
        BlobName.mayBeOurs(name.utf8) || name.hasPrefix(probeName)
    }

    static let probeName = "check-"

    // MARK: Requests

    func send(_ request: HTTPRequest) async throws(RemoteError) -> HTTPResponse {
        do throws(HTTPFailure) { return try await response(to: request) } catch { throw failure(error) }
    }

    /// Sends a request, and counts the response against the memory budget.
    func response(to request: HTTPRequest) async throws(HTTPFailure) -> HTTPResponse {
        var request = request
        request.mayKeep = budget.share().take
        return try await client.send(request)
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
        guard [404, 409].contains(response.status), mayBeCreated else { return response.refusal }
        let place = try await send(HTTPRequest("MKCOL", address("")))
        if [404, 409].contains(place.status) {
            throw RemoteError(
                .unavailable,
                "The folder \(path) can't be made on \(host): make the one above it first.")
        }
        // Refused or not, try again: Apache answers 403 if another device has just created the same folder.
        let second = try await send(HTTPRequest("MKCOL", address(folder)))
        return [404, 409].contains(second.status) ? place.refusal : second.refusal
    }

    /// Removes a file. One that is absent is no failure.
    func delete(_ name: String) async throws(RemoteError) {
        let response = try await send(HTTPRequest("DELETE", address(name)))
        guard response.isDone || response.status == 404 || response.status == 410 else {
            throw failure(response, at: name)
        }
    }

    // MARK: Looking

    private static let kind = "<D:resourcetype/>"
    private static let versionProperties = "<D:getetag/><D:getcontentlength/><D:getlastmodified/>"

    /// Asks for the files in a folder that may be ours.
    /// - Returns: the response, with the files if it is a list.
    func members(
        of folder: String, withVersions: Bool
    ) async throws(RemoteError) -> (response: HTTPResponse, members: [Multistatus.Member]) {
        let reader = Multistatus.Reader(within: budget, keeping: Self.mayBeOurs)
        let properties = withVersions ? Self.versionProperties : Self.kind
        let response = try await propfind(address(folder + "/"), depth: "1", reader, properties)
        guard response.status == 207 else { return (response, []) }
        let members: [Multistatus.Member]
        do throws(XMLScanner.Flaw) { members = try await reader.members() } catch { throw corrupt(error) }
        return (response, members.filter { !$0.isFolder })
    }

    /// Asks for the account's folder, without its members.
    func look() async throws(RemoteError) -> HTTPResponse { try await look(at: address("")) }

    private func look(at folder: HTTPAddress) async throws(RemoteError) -> HTTPResponse {
        try await propfind(folder, depth: "0", Multistatus.Reader(within: budget, keeping: { _ in false }), Self.kind)
    }

    /// Checks that the folder above the account's is there: only the last folder of the path is created. Some servers
    /// would create all of them, even for a mistyped path.
    /// - Returns: whether it is there; false if the server doesn't say.
    @discardableResult
    func lookAbove() async throws(RemoteError) -> Bool {
        guard let above = url.above else { throw missingFolder }
        let status = try await look(at: above).status
        guard ![404, 409, 410].contains(status) else { throw wrongPath(below: above.path) }
        return status == 207
    }

    private func propfind(
        _ address: HTTPAddress, depth: String, _ reader: Multistatus.Reader, _ properties: String
    ) async throws(RemoteError) -> HTTPResponse {
        let body =
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
            + "<D:propfind xmlns:D=\"DAV:\"><D:prop>\(properties)</D:prop></D:propfind>"
        let request = HTTPRequest(
            "PROPFIND", address,
            headers: [("Depth", depth), ("Content-Type", "application/xml; charset=utf-8")], body: Array(body.utf8),
            sink: reader.sink)
        let response: HTTPResponse
        do throws(HTTPFailure) { response = try await client.send(request) } catch {
            if let flaw = await reader.flaw { throw corrupt(flaw) }
            throw await reader.refusal ?? failure(error)
        }
        if let refusal = await reader.refusal { throw refusal }
        return response
    }

    // MARK: Failures

    /// Returns the error for a missing response.
    func failure(_ failure: HTTPFailure) -> RemoteError {
        RemoteError(webDAV: failure, isSecure: url.address.isSecure)
    }

    /// Returns the error for a response about a file or folder, or about the account's folder itself.
    func failure(_ response: HTTPResponse, at name: String = "") -> RemoteError {
        if response.isPage, response.status < 400 { return page }
        // Where there is no WebDAV, users look for the path that they gave.
        let place = response.status == 405 || response.status == 501 ? url.address : address(name)
        return RemoteError(response, from: place, hasCredentials: hasCredentials)
    }

    /// The error if something other than the WebDAV server answers at its address.
    var notWebDAV: RemoteError {
        RemoteError(
            .unavailable,
            "\(host) is not a WebDAV server at \(path) just now: it is under maintenance, or this is not a WebDAV "
                + "address.")
    }

    var missingFolder: RemoteError {
        RemoteError(.unavailable, "There is no folder \(path) on \(host).", reason: .folderMissing)
    }

    private func wrongPath(below above: String) -> RemoteError {
        RemoteError(
            .unavailable,
            "The path is wrong: \(host) has no folder \(above) in which \(path) could be created. Check the spelling; "
                + "on Nextcloud, the user's name follows /files/, and upper and lower case matter.")
    }

    private var page: RemoteError {
        RemoteError(
            .unavailable,
            "\(host) answered with a web page: log in to the network in a browser, or check whether \(path) is a "
                + "WebDAV address.")
    }

    private func corrupt(_ flaw: XMLScanner.Flaw) -> RemoteError {
        RemoteError(.unavailable, "The listing from \(host) is invalid: \(flaw.clause).")
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
