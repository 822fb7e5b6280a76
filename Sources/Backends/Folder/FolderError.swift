// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Glibc
internal import Replication

extension RemoteError {
    /// Converts the error of a failed call into one for the user who chose this folder.
    init(_ error: SystemError, at path: String) {
        switch error.number {
        case ENOENT:
            self.init(.unavailable, "\(path) doesn't exist. If the folder was deleted, create it again.")
        case EACCES:
            self.init(
                .denied,
                "\(path) can't be used: \(error.description). The service's user must be able to enter the folders "
                    + "above it, and to read and write it. If it is on another disk, check that the disk is mounted.")
        case EPERM:
            self.init(.denied, "\(path) can't be used: \(error.description).")
        case EROFS:
            // Retrying can't help with a read-only mount.
            self.init(
                .denied,
                "\(path) can't be written to: \(error.description). Its file system may be mounted read-only, or "
                    + "ReadWritePaths= of the service's unit may lack it.")
        case ELOOP:
            self.init(.denied, "\(path) is, or is behind, a symbolic link, and is not followed.")
        case ENOTDIR, EISDIR, ENOTEMPTY, EEXIST:
            let hint =
                error.number == ENOTDIR ? " It is a file, or a symbolic link that the service doesn't follow." : ""
            self.init(.denied, "\(path) exists, but is not what was expected: \(error.description).\(hint)")
        case ENOSPC, EDQUOT, EFBIG:
            self.init(.full, "There is no space left for \(path): \(error.description).")
        default:
            self.init(.unavailable, "\(path) can't be used now: \(error.description).")
        }
    }
}
