// SPDX-License-Identifier: Apache-2.0

internal import HTTPClient
public import SyncEngine
internal import Synchronization

extension WebDAVStorage {
    /// The names in a folder that may be those of blobs; with versions if they are heads.
    public func list(_ folder: String) async throws(RemoteError) -> [BlobListing] {
        if state.withLock(\.listsByIndex) { return try await listByIndex(folder) }
        let reader = Multistatus.Reader(keeping: Self.mayBeOurs)
        let isHeads = folder == BlobName.heads
        let response = try await propfind(folder, depth: "1", reader, isHeads ? Self.versionProperties : Self.kind)
        switch response.status {
        case 207: break
        case 404, 410: return try await listAbsent(folder)
        case 405, 501: return try await listByIndex(folder)
        default: throw answer(response, folder)
        }
        let members: [Multistatus.Member]
        do throws(XMLScanner.Flaw) { members = try reader.members().filter { !$0.isFolder } } catch {
            throw senseless(error)
        }
        if isHeads { note(members) }
        return state.withLock { state in
            members.map { BlobListing(name: $0.name, version: isHeads ? state.versions[$0.name] : nil) }
        }
    }

    private static let kind = "<D:resourcetype/>"
    private static let versionProperties = "<D:getetag/><D:getcontentlength/><D:getlastmodified/>"

    /// Asks what is there.
    func propfind(
        _ folder: String, depth: String, _ reader: Multistatus.Reader, _ properties: String = kind
    ) async throws(RemoteError) -> HTTPResponse {
        let body =
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
            + "<D:propfind xmlns:D=\"DAV:\"><D:prop>\(properties)</D:prop></D:propfind>"
        let request = HTTPRequest(
            "PROPFIND", address(folder + "/"),
            headers: [("Depth", depth), ("Content-Type", "application/xml; charset=utf-8")], body: Array(body.utf8),
            sink: reader.sink)
        do throws(HTTPFailure) { return try await client.send(request) } catch {
            if let flaw = reader.flaw { throw senseless(flaw) }
            throw RemoteError(error)
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
        guard folder == BlobName.markers || folder.isEmpty, !state.withLock(\.makesPlace) else { return [] }
        let response =
            folder.isEmpty ? nil : try await propfind("", depth: "0", Multistatus.Reader(keeping: { _ in false }))
        guard response.map({ $0.status == 404 || $0.status == 410 }) ?? true else { return [] }
        throw RemoteError(.unavailable, "There is no folder \(url.address.path) on \(url.address.host).")
    }

    /// Reads the page that many servers have for a folder, or the list in JSON: whatever in it looks like a name may
    /// be one.
    private func listByIndex(_ folder: String) async throws(RemoteError) -> [BlobListing] {
        let response = try await send(HTTPRequest("GET", address(folder + "/"), limit: Self.mostIndexBytes))
        switch response.status {
        case 200: break
        case 404, 410: return []
        case 401, 423, 429, 500...: throw answer(response, folder)
        default:
            throw RemoteError(
                .unsupported,
                "\(url.address.host) lists no folders: it has neither PROPFIND nor an index "
                    + "(for nginx: the module dav-ext, or autoindex).")
        }
        state.withLock { $0.listsByIndex = true }
        let isPartOfName: (UInt8) -> Bool = { byte in
            Character(Unicode.Scalar(byte)).isLetter && byte < 0x80 || (0x30...0x39).contains(byte) || byte == 0x2D
        }
        let words = response.body.split { !isPartOfName($0) }.map { String(decoding: $0, as: UTF8.self) }
        return Set(words.filter(Self.mayBeOurs)).sorted().map { BlobListing(name: $0) }
    }

    private static let mostIndexBytes = 4 << 20

    /// Names of blobs, and of what a check writes.
    static func mayBeOurs(_ name: String) -> Bool {
        BlobName.mayBeOurs(name.utf8) || name.hasPrefix(trialName)
    }

    static let trialName = "check-"
}
