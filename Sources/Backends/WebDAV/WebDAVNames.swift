// SPDX-License-Identifier: Apache-2.0

// If a server lists nothing, each folder has a file of names (docs/remote-format.md). It names files that may exist,
// and each of them is asked for. Nothing keeps two devices from writing it at the same time, so it may lose a name; a
// device that knows the name adds it again.

internal import Blobs
internal import HTTPClient
internal import Replication
internal import Synchronization

/// The names in one folder of the account: those in its file of names, and those that this process knows.
final class WebDAVNames: Sendable {
    private let subfolder: String
    private let folder: WebDAVFolder
    private let settling: Duration
    private let state = Mutex(State())

    private struct State {
        /// The names that the file had when it was last read; `nil` if it was never read.
        var listed: Set<String>?
        /// The files that this process has found or written.
        var known: Set<String> = []
        /// In how many listings in a row a listed name was absent.
        var absences: [String: Int] = [:]

        /// The names to drop when the file is next written.
        var gone: Set<String> { Set(absences.filter { $0.value > 1 }.keys).subtracting(known) }
    }

    /// - Parameter settling: the time after which a device that read the file before it was written has written it too.
    init(of subfolder: String, in folder: WebDAVFolder, settling: Duration) {
        (self.subfolder, self.folder, self.settling) = (subfolder, folder, settling)
    }

    private var file: String { subfolder + "/names" }

    /// Whether a name is written to the file at once. Those of segments are written together.
    private var isWrittenAtOnce: Bool { [BlobName.markers, BlobName.heads].contains(subfolder) }

    /// Whether the file was ever read.
    var wasRead: Bool { state.withLock { $0.listed != nil } }

    /// The files that this process has found or written.
    var known: Set<String> { state.withLock(\.known) }

    // MARK: Files

    /// Asks for every file that may be there.
    func list() async throws(RemoteError) -> [Multistatus.Member] {
        try await read()
        var members: [Multistatus.Member] = []
        for name in state.withLock({ $0.known.union($0.listed ?? []) }).sorted() {
            if let member = try await look(at: name) { members.append(member) }
        }
        note(Set(members.map(\.name)))
        if isWrittenAtOnce {
            // This process knows the names without the file, and the next listing tries again.
            do { try await write() } catch {}
        }
        return members
    }

    /// Asks for a file; returns its version's properties, or `nil` if it is absent.
    private func look(at name: String) async throws(RemoteError) -> Multistatus.Member? {
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

    private func note(_ present: Set<String>) {
        state.withLock { state in
            let listed = state.listed ?? []
            state.known = present
            for name in listed {
                state.absences[name] = present.contains(name) ? nil : state.absences[name, default: 0] + 1
            }
            // A server can list others each time.
            if state.absences.count > BlobName.mostListed {
                state.absences = state.absences.filter { listed.contains($0.key) }
            }
        }
    }

    /// Notes that a file was written.
    func insert(_ name: String) { state.withLock { _ = $0.known.insert(name) } }

    /// Notes that a file was removed.
    /// - Returns: whether its name is listed.
    func remove(_ name: String) -> Bool {
        state.withLock { state in
            state.known.remove(name)
            state.absences[name] = 2
            return state.listed?.contains(name) == true
        }
    }

    // MARK: The file of names

    /// Has the file name a head or marker that was written, and returns when other devices find it there.
    func publish(_ name: String) async throws(RemoteError) {
        if isListed(name) || !isWrittenAtOnce { return }
        for _ in 0..<Self.mostTries {
            try await write()
            // By then, any device that read the file before this write has written it too.
            await folder.client.pause(for: settling)
            try await read()
            if isListed(name) { return }
        }
        throw RemoteError(
            .unavailable,
            "Other devices changed the list of names on \(folder.host) each time that this one tried to write to it.")
    }

    private static let mostTries = 4

    private func isListed(_ name: String) -> Bool { state.withLock { $0.listed?.contains(name) == true } }

    private func read() async throws(RemoteError) {
        let request = HTTPRequest(
            "GET", folder.address(file), headers: [("Cache-Control", "no-cache")], limit: NamesFile.mostBytes)
        let response = try await folder.send(request)
        switch response.status {
        case 200 where !response.isPage:
            guard let listed = NamesFile.decode(response.body) ?? (wasRead ? [] : nil) else {
                throw RemoteError(
                    .unavailable,
                    "The file \(folder.address(file).path) on \(folder.host) is damaged, or has not arrived "
                        + "completely.")
            }
            state.withLock { $0.listed = listed }
        case 404, 410:
            // Nothing is listed any more.
            state.withLock { if $0.listed != nil { $0.listed = [] } }
        default: throw folder.failure(response, at: file)
        }
    }

    /// Adds known names to the file, and drops absent ones, if that changes anything. Other devices' names stay.
    func write() async throws(RemoteError) {
        let before = state.withLock(\.self)
        if before.known.isSubset(of: before.listed ?? []), before.gone.isDisjoint(with: before.listed ?? []) { return }
        try await read()
        let listed = state.withLock(\.listed) ?? []
        let all = listed.union(before.known).subtracting(before.gone)
        if all == listed { return }
        let response = try await folder.write(file, NamesFile.encode(all))
        guard response.isDone else { throw folder.failure(response, at: file) }
        state.withLock { state in
            for name in before.gone { state.absences[name] = nil }
            // For other folders, the next reading of the file decides.
            if subfolder == BlobName.segments { state.listed = all }
        }
    }
}
