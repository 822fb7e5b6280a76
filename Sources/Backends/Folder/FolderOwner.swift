// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Glibc
internal import Replication

/// The user whose folder in a root it is. The folder has the user's id for a name, and an id may be given to another
/// person. So the name is recorded beside it, in a file that only the service may write.
struct FolderOwner {
    let uid: UInt32
    /// The folder's path, for messages.
    let place: String
    let lookUp: (UserEntry.Key) -> UserEntry.Answer

    private var file: String { "u\(uid).user" }
    private static let longestName = 4096

    /// Checks that the folder is not a former user's.
    /// - Parameter isSigningIn: whether the user has just chosen the folder. An account that is signed in already goes
    ///   on while names can't be looked up.
    /// - Returns: the user's name, if it is to be recorded because none is yet.
    func check(in root: borrowing FileDescriptor, isSigningIn: Bool) throws(RemoteError) -> String? {
        let recorded = try recorded(in: root)
        switch RecordedOwner(of: uid, recorded: recorded, lookUp: lookUp) {
        case .user(let name): return recorded == nil ? name : nil
        case .former(let owner, let name): throw belongs(to: owner, not: name)
        case .perhapsFormer: throw unknown
        case .perhapsUser where isSigningIn: throw unknown
        // Without a name, nothing tells a uid's users apart.
        case .nameless where isSigningIn && recorded != nil: throw unknown
        case .nameless, .perhapsUser: return nil
        }
    }

    /// Records the user's name beside the folder, which exists.
    func record(_ name: String, in root: borrowing FileDescriptor, isSigningIn: Bool) throws(RemoteError) {
        do { try record(name, in: root) } catch {
            // The next opening tries again.
            if isSigningIn { throw RemoteError(error, at: "\(place).user") }
        }
    }

    private var unknown: RemoteError {
        RemoteError(
            .unavailable,
            "It can't be found out whether \(place) is yours, because users can't be looked up now. Try again later.")
    }

    private func belongs(to owner: String, not name: String) -> RemoteError {
        RemoteError(
            .denied,
            "\(place) is \(owner)'s, who had the user id \(uid) before. An administrator can move it away together with "
                + "\(place).user, or remove only the latter if \(name) is a new name of the same person.")
    }

    /// The recorded name; `nil` if there is none.
    private func recorded(in root: borrowing FileDescriptor) throws(RemoteError) -> String? {
        let (status, bytes): (stat, [UInt8]?)
        do throws(SystemError) {
            let descriptor = try root.open(file, O_RDONLY)
            (status, bytes) = (try descriptor.status(), try descriptor.read(atMost: Self.longestName))
        } catch {
            if error.number == ENOENT { return nil }
            throw RemoteError(error, at: "\(place).user")
        }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid() || status.st_uid == 0, let bytes else {
            throw RemoteError(.denied, "\(place).user is not a file of the service's user or of root.")
        }
        var name = String(decoding: bytes, as: UTF8.self)
        // Editors end a line.
        if name.last?.isNewline == true { name.removeLast() }
        if name.isEmpty { throw RemoteError(.denied, "\(place).user is empty; it should have the name of the user.") }
        return name
    }

    private func record(_ name: String, in root: borrowing FileDescriptor) throws(SystemError) {
        let temporary = ".\(file).new"
        let descriptor = try root.open(temporary, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600)
        try descriptor.write(Array(name.utf8))
        try descriptor.synchronize()
        try root.rename(temporary, to: file)
    }
}
