// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Glibc

/// An open file or directory, closed with its last use.
///
/// Files below a directory are never opened by path: names are looked up in an open directory and links are not
/// followed, so that what was checked is what is used.
struct FileDescriptor: ~Copyable {
    let number: Int32

    init(owning number: Int32) { self.number = number }

    deinit { Glibc.close(number) }

    /// Returns the descriptor, which the caller must close.
    consuming func release() -> Int32 {
        let number = number
        discard self
        return number
    }

    /// Opens a directory by its path, following links.
    static func openDirectory(_ path: String) throws(SystemError) -> FileDescriptor {
        FileDescriptor(owning: try Files.check { Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK) })
    }

    /// Opens a file in this directory.
    borrowing func open(_ name: String, _ flags: Int32, mode: mode_t = 0) throws(SystemError) -> FileDescriptor {
        let number = number
        let flags = flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
        return FileDescriptor(owning: try Files.check { openat(number, name, flags, mode) })
    }

    /// Opens a directory in this one.
    borrowing func openDirectory(_ name: String, flags: Int32 = O_RDONLY) throws(SystemError) -> FileDescriptor {
        try open(name, flags | O_DIRECTORY)
    }

    /// Makes a directory in this one.
    borrowing func makeDirectory(_ name: String, mode: mode_t) throws(SystemError) {
        let number = number
        _ = try Files.check { mkdirat(number, name, mode) }
    }

    /// Throws if this process can't make files in this directory.
    borrowing func checkWriting() throws(SystemError) {
        let number = number
        _ = try Files.check { faccessat(number, ".", W_OK | X_OK, AT_EACCESS) }
    }

    /// The file's status.
    borrowing func status() throws(SystemError) -> stat {
        var status = stat()
        let number = number
        _ = try Files.check { fstat(number, &status) }
        return status
    }

    /// The status of a name in this directory; links are not followed.
    borrowing func status(of name: String) throws(SystemError) -> stat {
        var status = stat()
        let number = number
        _ = try Files.check { fstatat(number, name, &status, AT_SYMLINK_NOFOLLOW) }
        return status
    }

    /// Renames a file, replacing the target.
    borrowing func rename(_ name: String, to target: String) throws(SystemError) {
        let number = number
        _ = try Files.check { renameat(number, name, number, target) }
    }

    /// Links a file under a second name. Fails if the name exists.
    borrowing func link(_ name: String, to target: String) throws(SystemError) {
        let number = number
        _ = try Files.check { linkat(number, name, number, target, 0) }
    }

    /// Removes a file.
    borrowing func remove(_ name: String) throws(SystemError) {
        let number = number
        _ = try Files.check { unlinkat(number, name, 0) }
    }

    /// Syncs the file to disk, if the filesystem supports it.
    borrowing func synchronize() throws(SystemError) {
        let number = number
        do { _ = try Files.check { fsync(number) } } catch {
            if error.number != EINVAL, error.number != ENOTSUP { throw error }
        }
    }

    /// Writes all of the bytes.
    borrowing func write(_ bytes: [UInt8]) throws(SystemError) { try Files.write(number, bytes) }

    /// Reads to the end; `nil` if the file is larger than the limit.
    borrowing func read(atMost limit: Int) throws(SystemError) -> [UInt8]? { try Files.read(number, atMost: limit) }

    /// The names in this directory that are UTF-8. The service never writes others.
    /// - Parameters:
    ///   - limit: the maximum number of names.
    ///   - isWanted: whether to include a name, given as bytes.
    borrowing func names(
        atMost limit: Int = .max, where isWanted: (UnsafeRawBufferPointer) -> Bool = { _ in true }
    ) throws(SystemError) -> [String] {
        // A new descriptor for the stream, because duplicates would share the read position.
        let copy = try openDirectory(".").release()
        guard let stream = fdopendir(copy) else {
            defer { Glibc.close(copy) }
            throw SystemError()
        }
        defer { closedir(stream) }
        var names: [String] = []
        errno = 0
        while names.count < limit, let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes -> String? in
                let end = bytes.firstIndex(of: 0) ?? bytes.endIndex
                let name = UnsafeRawBufferPointer(rebasing: bytes[..<end])
                return isWanted(name) ? String(validating: name, as: UTF8.self) : nil
            }
            if let name, name != ".", name != ".." { names.append(name) }
            errno = 0
        }
        if errno != 0 { throw SystemError() }
        return names
    }
}
