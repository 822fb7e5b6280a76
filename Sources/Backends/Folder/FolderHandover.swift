// SPDX-License-Identifier: Apache-2.0

// A user's folder in a root has the user's id for a name and in its access control list. After the id was changed, an
// administrator renames the folder, but the lists of the folder and of everything in it still name the former id, which
// may be given to another person.

internal import Blobs
internal import Files
internal import Glibc

/// Gives a folder in a root to the user whose name it has.
struct FolderHandover {
    let user: UInt32
    let service: UInt32

    /// How deep the folder is searched. The service makes two levels, and sync tools put theirs above these.
    private static let mostLevels = 8

    /// The list of the folder.
    var list: AccessControlList { AccessControlList(user: user, service: service) }

    /// Replaces the lists if the folder's own names others in the user's place. A list that names nobody is what an
    /// administrator has made of it.
    func runIfDue(on folder: borrowing FileDescriptor) throws(SystemError) {
        let others = AccessControlList.users(of: folder).subtracting([service])
        if others.isEmpty || others.contains(user) { return }
        giveContents(of: folder, levels: Self.mostLevels)
        // The folder comes last, so that the next opening begins again if this one doesn't get there.
        try list.apply(to: folder)
    }

    /// Gives away what is in a directory, as far as that is possible.
    private func giveContents(of directory: borrowing FileDescriptor, levels: Int) {
        guard levels > 0, let names = try? directory.names(atMost: BlobName.mostListed) else { return }
        for name in names {
            do throws(SystemError) { try give(name, in: directory, levels: levels) } catch {}
        }
    }

    private func give(_ name: String, in directory: borrowing FileDescriptor, levels: Int) throws(SystemError) {
        // Anything else isn't even opened, because opening a device can have effects.
        guard try [S_IFREG, S_IFDIR].contains(directory.status(of: name).st_mode & S_IFMT) else { return }
        let file = try directory.open(name, O_RDONLY)
        let status = try file.status()
        let isFile = status.st_mode & S_IFMT != S_IFDIR
        // The user's own files are not the service's to give, nor is a file that has a second name elsewhere.
        if status.st_uid == service, !isFile || status.st_nlink == 1 {
            try AccessControlList(user: user, service: service, isFile: isFile).apply(to: file)
        }
        if !isFile { giveContents(of: file, levels: levels - 1) }
    }
}
