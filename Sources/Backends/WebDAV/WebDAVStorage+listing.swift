// SPDX-License-Identifier: Apache-2.0

package import Blobs
internal import HTTPClient
package import Replication
internal import Synchronization

extension WebDAVStorage {
    /// Lists the names in a folder that may be blobs', with versions if they are heads.
    package func list(_ folder: String) async throws(RemoteError) -> [BlobListing] {
        if state.withLock(\.keepsNames) { return try await listByNames(folder) }
        let reader = Multistatus.Reader(within: budget, keeping: Self.mayBeOurs)
        let isHeads = folder == BlobName.heads
        let properties = isHeads ? Self.versionProperties : Self.kind
        let response = try await propfind(address(folder + "/"), depth: "1", reader, properties)
        switch response.status {
        case 207: break
        case 404, 410: return try await listAbsent(folder)
        case 405, 501:
            if state.withLock(\.hasListed) { throw notWebDAV }
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

    /// Sends a PROPFIND.
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

    /// Makes listings of a folder's members, with versions if they are heads: only heads are ever replaced.
    func listings(of members: [Multistatus.Member], in folder: String) -> [BlobListing] {
        guard folder == BlobName.heads else { return members.map { BlobListing(name: $0.name) } }
        note(members)
        return state.withLock { state in
            members.map { BlobListing(name: $0.name, version: state.versions[$0.name]?.text) }
        }
    }

    /// Notes the heads' versions. They include the length, since some servers use one ETag for everything that is
    /// written within a second, and consecutive heads have different lengths.
    private func note(_ members: [Multistatus.Member]) {
        var versions: [String: Version] = [:]
        let isKept = members.count <= Self.mostVersions
        for member in members where isKept && (member.tag != nil || member.modified != nil) {
            // For a second after a write, Apache's ETag is weak; then it is the same without the mark.
            let tag = member.tag.map { $0.hasPrefix("W/") ? String($0.dropFirst(2)) : $0 }
            let text = [tag, member.length, member.modified].map { $0 ?? "" }.joined(separator: "\n")
            if text.utf8.count > Self.longestVersion { continue }
            versions[member.name] = Version(text: text, length: member.length)
        }
        state.withLock { $0.versions = versions }
    }

    /// The most versions of heads that are kept, and the longest, in bytes. Heads without one are read at each poll.
    private static let (mostVersions, longestVersion) = (8192, 256)

    /// Lists a folder that is not there, and so is empty. If the account's own folder is not there either, this throws:
    /// more likely than that the account was removed, the server's disk is not mounted.
    private func listAbsent(_ folder: String) async throws(RemoteError) -> [BlobListing] {
        guard folder == BlobName.markers || folder.isEmpty else { return [] }
        let createsFolder = state.withLock(\.createsFolder)
        if folder.isEmpty, !createsFolder { throw missingFolder }
        let response = try await look(at: address(""))
        switch (response.status, createsFolder) {
        case (207, _): break
        case (404, true), (410, true): try await lookAbove()
        case (404, false), (410, false): throw missingFolder
        case (405, false), (501, false): throw notWebDAV
        case (_, false): throw answer(response, "")
        // Creating the folder will show what is wrong.
        case (_, true): break
        }
        return []
    }

    /// Sends a PROPFIND for a folder without its members.
    func look(at folder: HTTPAddress) async throws(RemoteError) -> HTTPResponse {
        try await propfind(folder, depth: "0", Multistatus.Reader(within: budget, keeping: { _ in false }))
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

    /// Whether a name may be that of a blob, or of a file that a check writes.
    static func mayBeOurs(_ name: String) -> Bool {
        BlobName.mayBeOurs(name.utf8) || name.hasPrefix(probeName)
    }

    static let probeName = "check-"
}
