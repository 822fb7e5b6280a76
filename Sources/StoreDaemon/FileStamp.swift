// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The properties of a file that change when it is written or replaced.
struct FileStamp: Equatable {
    private let inode: UInt64
    private let size: Int64
    private let seconds: Int
    private let nanoseconds: Int

    init(_ path: String) {
        var status = stat()
        _ = stat(path, &status)
        inode = UInt64(status.st_ino)
        size = Int64(status.st_size)
        (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
    }
}
