// SPDX-License-Identifier: Apache-2.0

// Which folders a URL may lead to. A service for one user uses that user's own folders. A service for all users must
// not lend them its own permissions: it uses only roots that an administrator configured, and in them a folder per
// user, which it creates.

internal import BackendSupport
internal import Files
internal import Glibc
internal import Replication

/// An open folder that passed the checks.
struct OpenFolder: ~Copyable {
    let directory: FileDescriptor
    /// Its path, for messages.
    let path: String
    /// Its device number. Another number at the same path means another drive.
    let device: dev_t
    /// Warnings for the user.
    let notes: [String]
}

extension FolderAccess {
    /// Opens the folder of a URL.
    /// - Parameter createsFolder: whether to create the user's folder in a root.
    /// - Throws: `RemoteError.noAccount` if there is none and `createsFolder` is false.
    func open(_ url: FolderURL, creatingFolder createsFolder: Bool) throws(RemoteError) -> OpenFolder {
        switch self {
        case .own(let uid, let stateDirectory): try Self.openOwn(url.path, uid: uid, besides: stateDirectory)
        case .roots(let roots, let uid, let lookUp):
            try Self.open(
                url.path, in: roots, FolderOwner(uid: uid, place: "\(url.path)/u\(uid)", lookUp: lookUp),
                creatingFolder: createsFolder)
        }
    }

    /// The mode of new files. In a root, the group's bits are the mask of the access control list.
    var fileMode: mode_t {
        switch self {
        case .own: 0o600
        case .roots: 0o660
        }
    }

    /// The mode of new directories.
    var directoryMode: mode_t {
        switch self {
        case .own: 0o700
        case .roots: 0o770
        }
    }

    private static func openOwn(
        _ path: String, uid: UInt32, besides stateDirectory: String?
    ) throws(RemoteError) -> OpenFolder {
        if let stateDirectory, RealPath.components(of: path).starts(with: RealPath.components(of: stateDirectory)) {
            throw RemoteError(.denied, "\(path) can't be used, because the service's own data is there.")
        }
        let directory = try naming(path) { () throws(SystemError) in try FileDescriptor.openDirectory(path) }
        let status = try naming(path) { () throws(SystemError) in try directory.status() }
        guard status.st_uid == uid else { throw RemoteError(.denied, "\(path) belongs to another user.") }
        return OpenFolder(directory: directory, path: path, device: status.st_dev, notes: [])
    }

    private static func open(
        _ path: String,
        in roots: [String],
        _ owner: FolderOwner,
        creatingFolder createsFolder: Bool
    ) throws(RemoteError) -> OpenFolder {
        let roots = roots.compactMap { try? FolderURL.withoutTrailingSlashes($0) }
        guard let above = root(of: path, in: roots) else { throw RemoteError(.denied, refusal(of: path, roots)) }
        let (name, place) = ("u\(owner.uid)", owner.place)
        let root = try walk(to: path, from: above)
        let unrecorded = try owner.check(in: root, isSigningIn: createsFolder)
        if createsFolder {
            try naming(place) { () throws(SystemError) in try makeDirectory(name, in: root) }
        }
        let directory = try openPlace(name, in: root, path, place)
        let status = try naming(place) { () throws(SystemError) in try directory.status() }
        guard status.st_uid == geteuid() else {
            throw RemoteError(.denied, "\(place) was not created by this service.")
        }
        if let unrecorded { try owner.record(unrecorded, in: root, isSigningIn: createsFolder) }
        let handover = FolderHandover(user: owner.uid, service: geteuid())
        try naming(place) { () throws(SystemError) in try handover.runIfDue(on: directory) }
        var notes: [String] = []
        if createsFolder {
            do throws(SystemError) { try handover.list.apply(to: directory) } catch {
                notes.append("\(place) can't be opened by its user: there are no access control lists here.")
            }
        }
        return OpenFolder(directory: directory, path: place, device: status.st_dev, notes: notes)
    }

    private static func openPlace(
        _ name: String,
        in root: borrowing FileDescriptor,
        _ path: String,
        _ place: String
    ) throws(RemoteError) -> FileDescriptor {
        do { return try root.openDirectory(name) } catch {
            if error.number != ENOENT { throw RemoteError(error, at: place) }
            // Whether one can be created is known now.
            try naming(path) { () throws(SystemError) in try root.checkWriting() }
            throw RemoteError(
                .noAccount,
                "\(place) doesn't exist; signing in creates it the first time.", reason: .folderMissing)
        }
    }

    /// Returns the root that a path is, or that it is inside of without being in a user's folder; `nil` if there is none.
    private static func root(of path: String, in roots: [String]) -> String? {
        if RealPath.split(path).contains(where: { $0 == ".." || $0 == "." }) { return nil }
        return roots.first { root in
            if root.utf8.elementsEqual(path.utf8) { return true }
            guard path.utf8.starts(with: (root + "/").utf8) else { return false }
            return !path.utf8.dropFirst(root.utf8.count).split(separator: UInt8(ascii: "/")).contains { isUsers($0) }
        }
    }

    /// Whether a folder has a name like those made for users: `u` and digits. A file system that ignores case takes `U` for
    /// the same, and no notice of invisible characters.
    private static func isUsers(_ name: some Collection<UInt8>) -> Bool {
        let name = name.filter { $0 < 0x80 }
        return name.count > 1 && name[0] | 0x20 == UInt8(ascii: "u")
            && name.dropFirst().allSatisfy { (0x30...0x39).contains($0) }
    }

    private static func refusal(of path: String, _ roots: [String]) -> String {
        guard let first = roots.first else {
            return "\(path) can't be used: the administrator has allowed no folders (FolderRoot=)."
        }
        let others = roots.dropFirst().map { ", \($0)" }.joined()
        return "\(path) can't be used: accounts may be in \(first)\(others), or in a subfolder that doesn't belong to "
            + "another user."
    }

    private static func makeDirectory(_ name: String, in root: borrowing FileDescriptor) throws(SystemError) {
        do { try root.makeDirectory(name, mode: 0o700) } catch {
            if error.number != EEXIST { throw error }
        }
    }

    /// Opens a path component by component without following any link, as openat2(2) does with RESOLVE_NO_SYMLINKS.
    /// glibc has no function for that, and older kernels lack the call.
    ///
    /// The root, and what is below it, are checked: whoever may write there could put a folder of their own in the place
    /// of a user's.
    private static func walk(to path: String, from root: String) throws(RemoteError) -> FileDescriptor {
        let depth = RealPath.split(root).count
        var directory = try naming(path) { () throws(SystemError) in try FileDescriptor.openDirectory("/") }
        var place = ""
        for (index, component) in RealPath.split(path).enumerated() {
            place += "/" + component
            let status: stat
            do throws(SystemError) {
                directory = try directory.openDirectory(component, flags: pathOnly)
                status = try directory.status()
            } catch {
                throw RemoteError(error, at: path)
            }
            if index + 1 < depth { continue }
            guard status.st_uid == 0 || status.st_uid == geteuid() else {
                throw RemoteError(
                    .denied,
                    "\(place) belongs neither to root nor to the service's user, so accounts can't be kept there. "
                        + "Change its owner.")
            }
            guard status.st_mode & (S_IWGRP | S_IWOTH) == 0 else {
                throw RemoteError(
                    .denied,
                    "Others than root and the service's user may write to \(place), and so exchange users' folders. "
                        + "Let the service's user own it, and take that away with \"chmod go-w\".")
            }
        }
        return directory
    }

    /// O_PATH, which the C library declares only with _GNU_SOURCE. With it, directories on the way need not be
    /// readable.
    private static let pathOnly: Int32 = 0o10000000
}

/// Adds the path to the error of a failed call.
func naming<Result: ~Copyable>(
    _ path: String,
    _ body: () throws(SystemError) -> Result
) throws(RemoteError) -> Result {
    do { return try body() } catch { throw RemoteError(error, at: path) }
}
