// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A system call that failed.
package struct SystemError: Error, Equatable, CustomStringConvertible {
    /// The errno.
    package let number: Int32

    /// Makes an error from an errno.
    package init(_ number: Int32) { self.number = number }

    /// Makes an error from the `errno` of the call that has just failed.
    package init() { number = errno }

    /// The C library's text for the errno.
    package var description: String { String(cString: strerror(number)) }
}

/// Reads and writes whole files through descriptors. Calls interrupted by a signal are repeated, and short reads and
/// writes are continued.
package enum Files {
    /// Reads a descriptor to its end.
    /// - Parameter limit: the maximum number of bytes.
    /// - Returns: `nil` if there are more.
    /// - Throws: the reason why it can't be read.
    package static func read(_ descriptor: Int32, atMost limit: Int) throws(SystemError) -> [UInt8]? {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: min(64 << 10, max(1, limit + 1)))
        while true {
            let count = try check { buffer.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) } }
            if count == 0 { return bytes }
            bytes += buffer[..<count]
            if bytes.count > limit { return nil }
        }
    }

    /// Reads a file to its end, to find out whether the disk returns all of it.
    /// - Throws: the reason why not, unless there is no such file.
    package static func readThrough(_ path: String) throws(SystemError) {
        guard let descriptor = try openExisting(path) else { return }
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: 256 << 10)
        while try check({ buffer.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) } }) > 0 {}
    }

    /// Reads a small file; symbolic links are not followed.
    /// - Returns: `nil` if it is missing, unreadable, or larger than `limit` bytes.
    package static func bytes(of path: String, atMost limit: Int) -> [UInt8]? {
        try? contents(of: path, atMost: limit)
    }

    /// Reads a small file; symbolic links are not followed.
    /// - Returns: `nil` if it is missing, or larger than `limit` bytes.
    /// - Throws: the reason why it can't be read.
    package static func contents(of path: String, atMost limit: Int) throws(SystemError) -> [UInt8]? {
        guard let descriptor = try openExisting(path) else { return nil }
        defer { close(descriptor) }
        return try read(descriptor, atMost: limit)
    }

    /// Opens a file for reading; `nil` if it is missing.
    private static func openExisting(_ path: String) throws(SystemError) -> Int32? {
        do throws(SystemError) {
            return try check { open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) }
        } catch {
            if error.number == ENOENT { return nil }
            throw error
        }
    }

    /// Reads a small text file, as ``bytes(of:atMost:)`` does.
    package static func text(of path: String, atMost limit: Int) -> String? {
        bytes(of: path, atMost: limit).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Writes all of the bytes.
    /// - Throws: the reason why not all were written.
    package static func write(_ descriptor: Int32, _ bytes: some Collection<UInt8>) throws(SystemError) {
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            let count = try check { rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) } }
            // A call that writes nothing without failing would repeat for ever.
            if count == 0 { throw SystemError(EIO) }
            rest = rest.dropFirst(count)
        }
    }

    /// Overwrites a file in place, readable by its owner only. A crash may leave it incomplete.
    package static func overwrite(_ path: String, with text: String) throws(SystemError) {
        let descriptor = try check { open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600) }
        defer { close(descriptor) }
        try write(descriptor, text.utf8)
    }

    /// Writes a file that only its owner may read, and syncs it to the disk. If that fails, there is no file.
    package static func write(_ path: String, _ bytes: [UInt8]) throws(SystemError) {
        let descriptor = try check { open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600) }
        defer { close(descriptor) }
        do throws(SystemError) {
            try write(descriptor, bytes)
            _ = try check { fsync(descriptor) }
        } catch {
            unlink(path)
            throw error
        }
    }

    /// Atomically replaces a file with one that only its owner may read, so that it survives a power cut.
    /// - Parameter temporary: the path to write first, in the same directory.
    package static func replace(_ path: String, with bytes: [UInt8], by temporary: String) throws(SystemError) {
        try write(temporary, bytes)
        do throws(SystemError) { _ = try check { rename(temporary, path) } } catch {
            unlink(temporary)
            throw error
        }
        try synchronize(directory: String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)]))
    }

    /// `SEEK_DATA` and `SEEK_HOLE` of <unistd.h>, which declares them only with GNU's extensions. Swift doesn't enable
    /// these.
    private static let (seekData, seekHole): (Int32, Int32) = (3, 4)

    /// Copies a file to a new one that only its owner may read. Holes stay holes, so the copy takes no more space.
    package static func copy(_ path: String, to new: String) throws(SystemError) {
        let source = try check { open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) }
        defer { close(source) }
        let target = try check { open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600) }
        defer { close(target) }
        var status = stat()
        _ = try check { fstat(source, &status) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw SystemError(EINVAL) }
        let size = status.st_size
        _ = try check { ftruncate(target, size) }
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        var position: off_t = 0
        while position < size {
            let start = lseek(source, position, seekData)
            // Only a hole follows.
            if start < 0, errno == ENXIO { return }
            position = start < 0 ? position : start
            let hole = lseek(source, position, seekHole)
            let end = hole < 0 ? size : hole
            while position < end {
                let wanted = Int(min(end - position, off_t(buffer.count)))
                let count = try check {
                    buffer.withUnsafeMutableBytes { pread(source, $0.baseAddress, wanted, position) }
                }
                // The file has shrunk.
                if count == 0 {
                    _ = try check { ftruncate(target, position) }
                    return
                }
                _ = try check { lseek(target, position, SEEK_SET) }
                try write(target, buffer[..<count])
                position += off_t(count)
            }
        }
    }

    /// Makes a directory that only its owner may use, and those above it that are missing.
    /// - Parameter path: from the root on.
    /// - Throws: why there is no such directory.
    package static func makeDirectories(_ path: String) throws(SystemError) {
        var made = ""
        var failure: SystemError?
        for part in path.split(separator: "/") {
            made += "/" + part
            if mkdir(made, 0o700) != 0, errno != EEXIST { failure = SystemError() }
        }
        if let failure, access(path, F_OK) != 0 { throw failure }
    }

    /// Returns how many bytes this user may still write to a file system; `nil` if it doesn't tell.
    /// - Parameter path: a file or directory in it.
    package static func freeBytes(at path: String) -> UInt64? {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return nil }
        return UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize)).partialValue
    }

    /// Syncs a directory, so that its names are on disk.
    package static func synchronize(directory: String) throws(SystemError) {
        let descriptor = try check { open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        defer { close(descriptor) }
        _ = try check { fsync(descriptor) }
    }

    /// Repeats a call while signals interrupt it, 1000 times at most, because a user's filesystem may always answer so.
    package static func check<Result: FixedWidthInteger>(_ body: () -> Result) throws(SystemError) -> Result {
        var attempts = 0
        while true {
            let result = body()
            attempts += 1
            if result >= 0 { return result }
            if errno != EINTR || attempts == 1000 { throw SystemError() }
        }
    }
}
