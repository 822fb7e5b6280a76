// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import RemoteAddress
internal import StoreDaemon

/// The certificates to trust for the default account's server, from the file in the settings.
struct DefaultAuthority {
    /// The certificates in PEM; `nil` if no file is named or it can't be read.
    private(set) var bytes: [UInt8]?
    /// What is wrong with the file, in sentences.
    private(set) var errors: [String] = []

    private static let maximumSize = 64 << 10

    init(_ account: DefaultAccount?) {
        guard let path = account?.authorityFile else { return }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        defer { if descriptor >= 0 { close(descriptor) } }
        var buffer = [UInt8](repeating: 0, count: Self.maximumSize + 1)
        let count = descriptor < 0 ? -1 : read(descriptor, &buffer, buffer.count)
        guard count >= 0 else {
            errors = ["DefaultAuthority=\(path) can't be read: \(String(cString: strerror(errno)))."]
            return
        }
        let content = Array(buffer[..<count])
        if !BackendCredentials.isBounded(authority: content) {
            errors = ["DefaultAuthority=\(path) has \(BackendCredentials.authorityBound)."]
        } else if PEM.simpleCertificates(in: content) == nil {
            errors = ["DefaultAuthority=\(path) has no certificate in PEM, or one that takes too long to read."]
        } else {
            bytes = content
        }
    }
}

/// Checks whether a folder root can have accounts.
enum FolderRootCheck {
    /// Returns the reason in a sentence if a symbolic link is on the way to a folder; `nil` if there is none.
    static func link(_ path: String) -> String? {
        guard let real = realpath(path, nil) else { return nil }
        defer { free(real) }
        let place = String(cString: real)
        if path.split(separator: "/").filter({ $0 != "." }) == place.split(separator: "/") { return nil }
        return "FolderRoot=\(path) leads through a symbolic link, and these are not followed. Name \(place) instead."
    }

    /// Returns what prevents that, in a sentence; `nil` if nothing does.
    static func problem(_ path: String, besides stateDirectory: String) -> String? {
        if let link = link(path) { return link }
        if Configuration.overlap(path, stateDirectory) {
            return
                "FolderRoot=\(path) is not used, because it isn't apart from the service's own data in "
                + "\(stateDirectory)."
        }
        var status = stat()
        guard stat(path, &status) == 0 else {
            return "FolderRoot=\(path) can't be used: \(String(cString: strerror(errno)))."
        }
        guard status.st_mode & S_IFMT == S_IFDIR else { return "FolderRoot=\(path) is not a folder." }
        guard status.st_uid == 0 || status.st_uid == geteuid() else {
            return "FolderRoot=\(path) is not used, because it belongs neither to root nor to the service's user."
        }
        guard status.st_mode & (S_IWGRP | S_IWOTH) == 0 else {
            return
                "FolderRoot=\(path) is not used, because others than root and the service's user may write to it, and so "
                + "exchange users' folders. Let the service's user own it, and take that away with \"chmod go-w\"."
        }
        // For the effective user: see ``ServiceUser``.
        guard faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0 else {
            return "FolderRoot=\(path) can't be written to by the service's user: \(String(cString: strerror(errno)))."
        }
        return nil
    }
}

/// The user as whom the package's unit runs the service.
enum ServiceUser {
    /// If root runs this process, continues as that user, to find what root could do and the service can't.
    static func become() {
        guard geteuid() == 0, let user = getpwnam("_ubiquitous-store") else { return }
        let (uid, gid) = (user.pointee.pw_uid, user.pointee.pw_gid)
        guard initgroups("_ubiquitous-store", gid) == 0, setegid(gid) == 0, seteuid(uid) == 0 else { return }
    }
}
