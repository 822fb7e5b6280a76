// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A system call that failed.
package struct SystemError: Error, Equatable, CustomStringConvertible {
    /// The errno.
    package let number: Int32

    /// An error of an errno.
    package init(_ number: Int32) { self.number = number }

    /// The error of the call that has just failed.
    package init() { number = errno }

    /// What the C library says about it.
    package var description: String { String(cString: strerror(number)) }
}

/// Reading and writing files as a whole, on descriptors: a call that a signal interrupts is repeated, and one that did
/// less than it was to do is continued.
package enum Files {
    /// Reads a descriptor to its end.
    /// - Parameter limit: the most bytes.
    /// - Returns: `nil` if there is more.
    /// - Throws: why it can't be read.
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

    /// Reads a small file that is not a link.
    /// - Returns: `nil` if it is not there, can't be read or is larger.
    package static func text(of path: String, atMost limit: Int) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        guard let bytes = try? read(descriptor, atMost: limit) else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Writes all of the bytes.
    /// - Throws: why not all of them could be written.
    package static func write(_ descriptor: Int32, _ bytes: some Collection<UInt8>) throws(SystemError) {
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            let count = try check { rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) } }
            // A call that writes nothing and does not fail would go on for ever.
            if count == 0 { throw SystemError(EIO) }
            rest = rest.dropFirst(count)
        }
    }

    /// Writes a file over the one that is there, which only its owner may read from then on. A crash may leave a part of
    /// it.
    package static func overwrite(_ path: String, with text: String) throws(SystemError) {
        let descriptor = try check { open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600) }
        defer { close(descriptor) }
        try write(descriptor, text.utf8)
    }

    /// Puts a file in place that only its owner may read, whole or not at all, so that it survives a power cut.
    /// - Parameter temporary: where it is written first, in the same directory.
    package static func replace(_ path: String, with bytes: [UInt8], by temporary: String) throws(SystemError) {
        let descriptor = try check { open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600) }
        defer { close(descriptor) }
        do throws(SystemError) {
            try write(descriptor, bytes)
            _ = try check { fsync(descriptor) }
            _ = try check { rename(temporary, path) }
        } catch {
            unlink(temporary)
            throw error
        }
        try synchronize(directory: String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)]))
    }

    /// Waits until the names in a directory are on the disk.
    package static func synchronize(directory: String) throws(SystemError) {
        let descriptor = try check { open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        defer { close(descriptor) }
        _ = try check { fsync(descriptor) }
    }

    /// Repeats a call that a signal interrupts.
    package static func check<Result: FixedWidthInteger>(_ body: () -> Result) throws(SystemError) -> Result {
        while true {
            let result = body()
            if result >= 0 { return result }
            if errno != EINTR { throw SystemError() }
        }
    }
}
