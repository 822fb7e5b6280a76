// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Identifies the file at a path by its device and inode, whatever its contents.
struct FileIdentity: Equatable {
    private let device: dev_t
    private let inode: ino_t

    /// Identifies the file at a path; `nil` if there is none.
    init?(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        (device, inode) = (status.st_dev, status.st_ino)
    }
}
