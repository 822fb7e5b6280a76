// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import StoreDaemon

/// The certificates that the settings name for the default account's server.
struct DefaultAuthority {
    /// In PEM; `nil` where none are named, or they can't be read.
    private(set) var bytes: [UInt8]?
    /// What is wrong with the file.
    private(set) var errors: [String] = []

    private static let maximumSize = 256 << 10

    init(_ account: DefaultAccount?) {
        guard let path = account?.authorityFile else { return }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        defer { if descriptor >= 0 { close(descriptor) } }
        var buffer = [UInt8](repeating: 0, count: Self.maximumSize + 1)
        let count = descriptor < 0 ? -1 : read(descriptor, &buffer, buffer.count)
        switch count {
        case 1...Self.maximumSize: bytes = Array(buffer[..<count])
        case ..<0: errors = ["DefaultAuthority=\(path) can't be read: \(String(cString: strerror(errno)))."]
        default: errors = ["DefaultAuthority=\(path) has to have 1 to \(Self.maximumSize) bytes."]
        }
    }
}

/// Whether accounts can be under a folder root.
enum FolderRootCheck {
    /// What keeps them from it, in a sentence.
    static func problem(_ path: String) -> String? {
        var status = stat()
        guard stat(path, &status) == 0 else {
            return "FolderRoot=\(path) can't be used: \(String(cString: strerror(errno)))."
        }
        guard status.st_mode & S_IFMT == S_IFDIR else { return "FolderRoot=\(path) is no folder." }
        // The effective user's: see ``ServiceUser``.
        guard faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0 else {
            return "FolderRoot=\(path) can't be written to by the service's user: \(String(cString: strerror(errno)))."
        }
        return nil
    }
}

/// Whom the package's unit runs the service as.
enum ServiceUser {
    /// Has root go on as that user, for what root could do and the service can't to show.
    static func become() {
        guard geteuid() == 0, let user = getpwnam("_ubiquitous-store") else { return }
        let (uid, gid) = (user.pointee.pw_uid, user.pointee.pw_gid)
        guard initgroups("_ubiquitous-store", gid) == 0, setegid(gid) == 0, seteuid(uid) == 0 else { return }
    }
}
