// SPDX-License-Identifier: Apache-2.0

internal import Files
package import Glibc

/// Reads a file that decides about what apps may do, if it is from somebody who may decide.
package enum ManifestFile {
    /// The file's bytes; an empty file is one that masks another.
    ///
    /// - Parameters:
    ///   - owner: a user besides root whose file it may be.
    ///   - maximumSize: a larger file is refused.
    /// - Throws: why the file is not trusted, or could not be read.
    package static func read(
        _ path: String, trusting owner: uid_t, maximumSize: Int = Manifest.maximumSize
    ) throws(Manifest.Refusal) -> [UInt8] {
        // Not blocking: what is named like a manifest may be a FIFO.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw refusal(errno == ELOOP ? "it is a symbolic link" : "it can't be opened: \(reason(errno))")
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw refusal("it can't be examined: \(reason(errno))") }
        guard status.st_mode & S_IFMT == S_IFREG else { throw refusal("it is no regular file") }
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
