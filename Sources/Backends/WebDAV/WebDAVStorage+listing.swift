// SPDX-License-Identifier: Apache-2.0

public import Blobs
internal import HTTPClient
public import Replication
internal import Synchronization

extension WebDAVStorage {
    /// The names in a folder that may be those of blobs; with versions if they are heads.
    public func list(_ folder: String) async throws(RemoteError) -> [BlobListing] {
        if state.withLock(\.keepsNames) { return try await listByNames(folder) }
        let reader = Multistatus.Reader(within: budget, keeping: Self.mayBeOurs)
        let isHeads = folder == BlobName.heads
        let properties = isHeads ? Self.versionProperties : Self.kind
        let response = try await propfind(address(folder + "/"), depth: "1", reader, properties)
        switch response.status {
        case 207: break
        case 404, 410: return try await listAbsent(folder)
        case 405, 501:
            if state.withLock(\.hasListed) { throw lapse }
            do { return try await listByIndex(folder) } catch
                where error.code == .unsupported && !state.withLock(\.hasIndex)
            {
                state.withLock { $0.keepsNames = true }
                return try await listByNames(folder)
            }
        default: throw answer(response, folder)
        }
        let members: [Multistatus.Member]
        do throws(XMLScanner.Flaw) { members = try await reader.members().filter { !$0.isFolder } } catch {
            throw corrupt(error)
        }
        state.withLock { $0.hasListed = true }
        return listings(of: members, in: folder)
    }

    private static let kind = "<D:resourcetype/>"
    private static let versionProperties = "<D:getetag/><D:getcontentlength/><D:getlastmodified/>"

    /// Asks what is there.
    func propfind(
        _ address: HTTPAddress, depth: String, _ reader: Multistatus.Reader, _ properties: String = kind
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

    /// What is in a folder, with versions if these are heads: only those are ever replaced.
    func listings(of members: [Multistatus.Member], in folder: String) -> [BlobListing] {
        guard folder == BlobName.heads else { return members.map { BlobListing(name: $0.name) } }
        note(members)
        return state.withLock { state in
            members.map { BlobListing(name: $0.name, version: state.versions[$0.name]) }
        }
    }

    /// Remembers the heads' versions. The length is in them, since some servers give all that is written in a second the
    /// same ETag, and no head is as long as the one before it.
    private func note(_ members: [Multistatus.Member]) {
        var versions: [String: String] = [:]
        for member in members where member.tag != nil || member.modified != nil {
            // Apache's ETag of a file is weak for a second after it was written, and then the same without its mark.
            let tag = member.tag.map { $0.hasPrefix("W/") ? String($0.dropFirst(2)) : $0 }
            let parts = [tag, member.length, member.modified].map { $0 ?? "" }
            versions[member.name] = parts.joined(separator: "\n")
        }
        state.withLock { $0.versions = versions }
    }

    /// A folder in the place that is not there has nothing in it, and nobody has removed the account if the place
    /// itself is not there: rather the server's disk is not mounted.
    private func listAbsent(_ folder: String) async throws(RemoteError) -> [BlobListing] {
        guard folder == BlobName.markers || folder.isEmpty else { return [] }
        let makesPlace = state.withLock(\.makesPlace)
        if folder.isEmpty, !makesPlace { throw absence }
        let response = try await look(at: address(""))
        switch (response.status, makesPlace) {
        case (207, _): break
        case (404, true), (410, true): try await lookAbove()
        case (404, false), (410, false): throw absence
        case (405, false), (501, false): throw lapse
        case (_, false): throw answer(response, "")
        // Making it will show what is wrong.
        case (_, true): break
        }
        return []
    }

    /// Asks for a folder itself.
    func look(at folder: HTTPAddress) async throws(RemoteError) -> HTTPResponse {
        try await propfind(folder, depth: "0", Multistatus.Reader(within: budget, keeping: { _ in false }))
    }

    /// Looks for the folder above the place: the place is made, and none above it. Some servers would make them all, for
    /// whoever has mistyped one.
    /// - Returns: whether it is there; some servers don't say.
    @discardableResult
    func lookAbove() async throws(RemoteError) -> Bool {
        guard let above = url.above else { throw absence }
        let status = try await look(at: above).status
        guard ![404, 409, 410].contains(status) else { throw wrongPath(below: above.path) }
        return status == 207
    }

    /// Names of blobs, and of what a check writes.
    static func mayBeOurs(_ name: String) -> Bool {
        BlobName.mayBeOurs(name.utf8) || name.hasPrefix(probeName)
    }

    static let probeName = "check-"
}
