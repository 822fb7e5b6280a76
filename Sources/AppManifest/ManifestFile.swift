// SPDX-License-Identifier: Apache-2.0

internal import Files
package import Glibc

/// Reads a manifest file, if its owner and mode can be trusted.
package enum ManifestFile {
    /// Reads the file's bytes. An empty file masks another one.
    ///
    /// - Parameters:
    ///   - owner: a user besides root who may own the file.
    ///   - maximumSize: larger files are refused.
    /// - Throws: the reason why the file is not trusted or can't be read.
    package static func read(
        _ path: String, trusting owner: uid_t, maximumSize: Int = Manifest.maximumSize
    ) throws(Manifest.Refusal) -> [UInt8] {
        // Non-blocking, because the file may be a FIFO.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw refusal(errno == ELOOP ? "it is a symbolic link" : "it can't be opened: \(reason(errno))")
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw refusal("it can't be examined: \(reason(errno))") }
        guard status.st_mode & S_IFMT == S_IFREG else { throw refusal("it is not a regular file") }
        guard status.st_uid == 0 || status.st_uid == owner else {
            throw refusal("it is owned by the user \(status.st_uid), and not by root or the service's user")
        }
        guard status.st_mode & (S_IWGRP | S_IWOTH) == 0 else { throw refusal("others may write to it") }
        guard status.st_size <= maximumSize else {
            throw refusal("it has \(status.st_size) bytes, and may have \(maximumSize) at most")
        }
        return try readAll(descriptor, size: Int(status.st_size))
    }

    private static func readAll(_ descriptor: Int32, size: Int) throws(Manifest.Refusal) -> [UInt8] {
        let bytes: [UInt8]?
        do throws(SystemError) { bytes = try Files.read(descriptor, atMost: size) } catch {
            throw refusal("it can't be read: \(error)")
        }
        guard let bytes, bytes.count == size else { throw refusal("it can't be read: it is being written") }
        return bytes
    }

    private static func refusal(_ text: String) -> Manifest.Refusal { Manifest.Refusal(key: nil, reason: text) }
    private static func reason(_ code: Int32) -> String { String(cString: strerror(code)) }
}
