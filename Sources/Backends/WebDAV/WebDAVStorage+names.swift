// SPDX-License-Identifier: Apache-2.0

// If a server lists nothing, each folder has a file of names (docs/remote-format.md). It names files that may exist,
// and each of them is asked for. Nothing keeps two devices from writing it at the same time, so it may lose a name; a
// device that knows the name adds it again.

internal import Blobs
internal import HTTPClient
internal import Replication
internal import Synchronization

extension WebDAVStorage {
    /// What this process knows of the names in a folder.
    struct Names {
        /// The names that the file had when it was last read; `nil` if it was never read.
        var listed: Set<String>?
        /// The files that this process has found or written.
        var known: Set<String> = []
        /// In how many listings in a row a listed name was absent.
        var absences: [String: Int] = [:]

        /// The names to drop when the file is next written.
        var gone: Set<String> { Set(absences.filter { $0.value > 1 }.keys).subtracting(known) }
    }

    private static let file = "names"
    private static let mostTries = 4

    /// Lists a folder by asking for everything that may be there.
    func listByNames(_ subfolder: String) async throws(RemoteError) -> [BlobListing] {
        let wasNamed = names(subfolder).listed != nil
        let isNamed = try await readNames(subfolder)
        var members: [Multistatus.Member] = []
        for name in names(subfolder).known.union(names(subfolder).listed ?? []).sorted() {
            if let member = try await look(at: name, in: subfolder) { members.append(member) }
        }
        note(members.map(\.name), in: subfolder)
        if [BlobName.markers, BlobName.heads].contains(subfolder) {
            // This process knows the names without the file, and the next listing tries again.
            do { try await writeNames(subfolder) } catch {}
        }
        if subfolder == BlobName.markers, members.isEmpty {
            try await checkFolderAcceptsFiles(wasNamed: wasNamed || isNamed)
        }
        return listings(of: members, in: subfolder)
    }

    /// Notes that a file was written. A head is not published before its name is where other devices find it.
    func noteWritten(_ path: String) async throws(RemoteError) {
        let (subfolder, name) = Self.parts(path)
        let isListed = state.withLock { state in
            if [.unknown, .names].contains(state.way) { state.names[subfolder, default: Names()].known.insert(name) }
            return state.way != .names || state.names[subfolder]?.listed?.contains(name) == true
        }
        if isListed || subfolder.isEmpty || subfolder == BlobName.segments { return }
        for _ in 0..<Self.mostTries {
            try await writeNames(subfolder)
            // By then, any device that read the file before this write has written it too.
            await folder.client.pause(for: settling)
            if try await readNames(subfolder), names(subfolder).listed?.contains(name) == true { return }
        }
        throw RemoteError(
            .unavailable,
            "Other devices changed the list of names on \(folder.host) each time that this one tried to write to it.")
    }

    /// Lists all new segments at once, before the head that names them is written.
    func noteSegments(before path: String) async throws(RemoteError) {
        if way == .names, Self.parts(path).subfolder == BlobName.heads {
            try await writeNames(BlobName.segments)
        }
    }

    /// Notes that a file was removed. If its name stays listed, that only costs a request with each listing.
    func noteRemoved(_ path: String) async {
        let (subfolder, name) = Self.parts(path)
        let isNamed = state.withLock { state in
            state.names[subfolder]?.known.remove(name)
            state.names[subfolder]?.absences[name] = 2
            return state.way == .names && state.names[subfolder]?.listed?.contains(name) == true
        }
        if isNamed, subfolder == BlobName.heads { do { try await writeNames(subfolder) } catch {} }
    }

    // MARK: The file

    /// Reads a folder's file of names.
    /// - Returns: whether the file exists.
    @discardableResult
    private func readNames(_ subfolder: String) async throws(RemoteError) -> Bool {
        let path = subfolder + "/" + Self.file
        let response = try await folder.send(
            HTTPRequest(
                "GET", folder.address(path), headers: [("Cache-Control", "no-cache")], limit: NamesFile.mostBytes))
        switch response.status {
        case 200 where !response.isPage:
            guard let listed = NamesFile.decode(response.body) ?? names(subfolder).listed.map({ _ in [] }) else {
                throw RemoteError(
                    .unavailable,
                    "The file \(folder.address(path).path) on \(folder.host) is damaged, or has not arrived "
                        + "completely.")
            }
            state.withLock { $0.names[subfolder, default: Names()].listed = listed }
            return true
        case 404, 410:
            // Nothing is listed any more.
            state.withLock { if $0.names[subfolder]?.listed != nil { $0.names[subfolder]?.listed = [] } }
            return false
        default: throw folder.failure(response, at: path)
        }
    }

    /// Adds known names to a folder's file, and drops absent ones, if that changes anything. Other devices' names stay.
    private func writeNames(_ subfolder: String) async throws(RemoteError) {
        let known = names(subfolder)
        if known.known.isSubset(of: known.listed ?? []), known.gone.isDisjoint(with: known.listed ?? []) { return }
        try await readNames(subfolder)
        let listed = names(subfolder).listed ?? []
        let all = listed.union(known.known).subtracting(known.gone)
        if all == listed { return }
        let path = subfolder + "/" + Self.file
        let response = try await folder.write(path, NamesFile.encode(all))
        guard response.isDone else { throw folder.failure(response, at: path) }
        state.withLock { state in
            for name in known.gone { state.names[subfolder]?.absences[name] = nil }
            // For other folders, the next reading of the file decides.
            if subfolder == BlobName.segments { state.names[subfolder]?.listed = all }
        }
    }

    private func names(_ subfolder: String) -> Names { state.withLock { $0.names[subfolder] ?? Names() } }

    private func note(_ present: [String], in subfolder: String) {
        state.withLock { state in
            var names = state.names[subfolder] ?? Names()
            names.known = Set(present)
            for name in names.listed ?? [] {
                names.absences[name] = names.known.contains(name) ? nil : names.absences[name, default: 0] + 1
            }
            // A server can list others each time.
            if names.absences.count > BlobName.mostListed {
                names.absences = names.absences.filter { names.listed?.contains($0.key) == true }
            }
            state.names[subfolder] = names
        }
    }

    private static func parts(_ path: String) -> (subfolder: String, name: String) {
        guard let slash = path.lastIndex(of: "/") else { return ("", path) }
        return (String(path[..<slash]), String(path[path.index(after: slash)...]))
    }

    // MARK: Checking for files

    /// Asks for a file; returns its version's properties, or `nil` if it is absent.
    private func look(at name: String, in subfolder: String) async throws(RemoteError) -> Multistatus.Member? {
        let path = subfolder.isEmpty ? name : subfolder + "/" + name
        let response = try await folder.send(
            HTTPRequest("HEAD", folder.address(path), headers: [("Cache-Control", "no-cache")]))
        switch response.status {
        case 200, 204:
            return Multistatus.Member(
                name: name, tag: response.headers["etag"], length: response.headers["content-length"],
                modified: response.headers["last-modified"])
        case 404, 410: return nil
        // The server has accepted a file there.
        case 405, 501: throw folder.notWebDAV
        default: throw folder.failure(response, at: path)
        }
    }

    /// Checks that the folder accepts a file. Only then does an empty list mean that it has no account.
    private func checkFolderAcceptsFiles(wasNamed: Bool) async throws(RemoteError) {
        if folder.mayBeCreated { return }
        let name = WebDAVFolder.probeName + Self.file
        let response = try await folder.write(name, [1])
        if [405, 501].contains(response.status) { throw folder.notWebDAV }
        if [404, 409, 500].contains(response.status) { throw folder.missingFolder }
        guard response.isDone else { throw folder.failure(response, at: name) }
        try await folder.delete(name)
        if wasNamed { return }
        // A server that has stopped listing may have an account, and may list again.
        way = .unknown
        throw RemoteError(
            .noAccount,
            "There is no account here yet, or none that was made while \(folder.host) lists no folders.")
    }
}
