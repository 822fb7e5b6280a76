// SPDX-License-Identifier: Apache-2.0

internal import Blobs
internal import HTTPClient
internal import Replication
internal import Synchronization

/// Lists the account's folders in the way that the server knows, and keeps what is needed between two listings.
final class WebDAVLister: Sendable {
    private let folder: WebDAVFolder
    private let index: WebDAVIndex
    private let settling: Duration
    private let state = Mutex(State())

    private struct State {
        var way = Way.unknown
        /// What is known of each folder's names, as long as the server may turn out to list nothing.
        var names: [String: WebDAVNames] = [:]
        /// How often the heads were listed by their names.
        var namedLooks = 0
        /// The heads' versions at the last listing.
        var versions = HeadVersions()
    }

    /// How the server says which files a folder has.
    private enum Way {
        case unknown
        /// It answers PROPFIND. If it no longer does, something else is answering in its place.
        case propfind
        /// It has an index that is genuine: it has named a file that exists, as no other page does.
        case index
        /// It doesn't say, so files with the names in them are kept.
        case names
    }

    init(_ folder: WebDAVFolder, settling: Duration) {
        (self.folder, self.settling) = (folder, settling)
        index = WebDAVIndex(folder: folder)
    }

    private var way: Way {
        get { state.withLock(\.way) }
        set { state.withLock { $0.way = newValue } }
    }

    /// Whether the server lists nothing, so that files with the names in them are kept.
    var keepsNames: Bool { way == .names }

    // MARK: Listing

    /// Lists the names in a folder that may be blobs', with versions if they are heads: only heads are ever replaced.
    func list(_ subfolder: String) async throws(RemoteError) -> [BlobListing] {
        let members = try await members(of: subfolder)
        guard subfolder == BlobName.heads else { return members.map { BlobListing(name: $0.name) } }
        let versions = HeadVersions(members)
        state.withLock { $0.versions = versions }
        return members.map { BlobListing(name: $0.name, version: versions[$0.name]) }
    }

    /// Returns the version of a file that was read; `nil` if it is not a head, or has none.
    func version(of path: String, read bytes: Int) -> String? {
        let (subfolder, name) = Self.split(path)
        return subfolder == BlobName.heads ? state.withLock { $0.versions.version(of: name, read: bytes) } : nil
    }

    private func members(of subfolder: String) async throws(RemoteError) -> [Multistatus.Member] {
        if keepsNames {
            if isTimeToAsk(about: subfolder), let heads = try await headsListedAgain() { return heads }
            return try await namedMembers(of: subfolder)
        }
        let (response, members) = try await folder.members(of: subfolder, withVersions: subfolder == BlobName.heads)
        switch response.status {
        case 207:
            way = .propfind
            return members
        case 404, 410:
            try await checkFolder(without: subfolder)
            return []
        case 405, 501:
            if way == .propfind { throw folder.notWebDAV }
            do throws(RemoteError) { return try await indexedMembers(of: subfolder) } catch {
                guard error.code == .unsupported, way != .index else { throw error }
                way = .names
                return try await namedMembers(of: subfolder)
            }
        default: throw folder.failure(response, at: subfolder)
        }
    }

    /// Checks that the account's own folder is there, although one in it is not. If it is missing too, this throws: more
    /// likely than that the account was removed, the server's disk is not mounted.
    private func checkFolder(without subfolder: String) async throws(RemoteError) {
        guard subfolder == BlobName.markers || subfolder.isEmpty else { return }
        if subfolder.isEmpty, !folder.mayBeCreated { throw folder.missingFolder }
        let response = try await folder.look()
        if folder.mayBeCreated {
            // Creating the folder will show whatever else is wrong.
            if [404, 410].contains(response.status) { try await folder.lookAbove() }
            return
        }
        switch response.status {
        case 207: break
        case 404, 410: throw folder.missingFolder
        case 405, 501: throw folder.notWebDAV
        default: throw folder.failure(response)
        }
    }

    private func indexedMembers(of subfolder: String) async throws(RemoteError) -> [Multistatus.Member] {
        let names = try await index.names(in: subfolder)
        let known = state.withLock { $0.names[subfolder] }?.known ?? []
        if let names, !names.isDisjoint(with: known) { trustIndex() }
        if let names, !names.isEmpty { return names.sorted().map { Multistatus.Member(name: $0) } }
        if folder.mayBeCreated { return [] }
        if subfolder == BlobName.markers {
            try await index.check()
            trustIndex()
        }
        if subfolder.isEmpty, names == nil { throw folder.missingFolder }
        return []
    }

    /// Whether to ask again if the server lists: every 20th time that the heads are listed by their names.
    private func isTimeToAsk(about subfolder: String) -> Bool {
        guard subfolder == BlobName.heads else { return false }
        return state.withLock { state in
            state.namedLooks += 1
            return state.namedLooks % 20 == 0
        }
    }

    /// Asks again whether the server lists: it may have learnt to, and devices that sign in then write no names.
    /// - Returns: the heads; `nil` if it still lists nothing.
    private func headsListedAgain() async throws(RemoteError) -> [Multistatus.Member]? {
        let (response, members) = try await folder.members(of: BlobName.heads, withVersions: true)
        if response.status == 207 {
            way = .propfind
            return members
        }
        let known = names(of: BlobName.heads).known
        guard let names = try? await index.names(in: BlobName.heads), !names.isDisjoint(with: known) else { return nil }
        trustIndex()
        return names.sorted().map { Multistatus.Member(name: $0) }
    }

    private func trustIndex() { state.withLock { ($0.way, $0.names) = (.index, [:]) } }

    private func namedMembers(of subfolder: String) async throws(RemoteError) -> [Multistatus.Member] {
        let names = names(of: subfolder)
        let members = try await names.list()
        guard subfolder == BlobName.markers, members.isEmpty, !folder.mayBeCreated else { return members }
        try await checkFolderAcceptsFiles()
        if names.wasRead { return [] }
        // A server that has stopped listing may have an account, and may list again.
        way = .unknown
        throw RemoteError(
            .noAccount, "There is no account here that can be found while \(folder.host) lists no folders.",
            reason: .listsNothing)
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

    // MARK: Changes

    /// Names all new segments at once, before the head that needs them is written.
    func nameSegments(before path: String) async throws(RemoteError) {
        guard keepsNames, Self.split(path).subfolder == BlobName.heads else { return }
        try await state.withLock { $0.names[BlobName.segments] }?.write()
    }

    /// Notes that a file was written. A head is not published before its name is where other devices find it.
    func noteWritten(_ path: String) async throws(RemoteError) {
        let way = way
        guard way == .unknown || way == .names else { return }
        let (subfolder, name) = Self.split(path)
        let names = names(of: subfolder)
        names.insert(name)
        if way == .names { try await names.publish(name) }
    }

    /// Notes that a file was removed. If its name stays listed, that only costs a request with each listing.
    func noteRemoved(_ path: String) async {
        let (subfolder, name) = Self.split(path)
        guard let names = state.withLock({ $0.names[subfolder] }) else { return }
        if names.remove(name), keepsNames, subfolder == BlobName.heads { do { try await names.write() } catch {} }
    }

    private func names(of subfolder: String) -> WebDAVNames {
        state.withLock { state in
            let names = state.names[subfolder] ?? WebDAVNames(of: subfolder, in: folder, settling: settling)
            state.names[subfolder] = names
            return names
        }
    }

    private static func split(_ path: String) -> (subfolder: String, name: String) {
        guard let slash = path.lastIndex(of: "/") else { return ("", path) }
        return (String(path[..<slash]), String(path[path.index(after: slash)...]))
    }
}
