// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// What `/run` remembers of a database's origin, and the disk cannot: how often it was published.
///
/// A disk can be cloned, restored from a backup or rolled back, and then has an origin that somebody else
/// goes on writing under. `/run` is not on that disk. The device goes on under an origin only if `/run` names
/// the same one and has not seen more publications of it than the database; every publication is recorded in
/// both before it leaves. So a dot that left the device is never used again. After a reboot `/run` is empty,
/// and the origin is a new one.
struct OriginRecord {
    /// The file, or `nil` where the system has no such place: then every start has a new origin.
    private let path: String?

    /// The record of the database in `directory`, among those in `runtimeDirectory`.
    ///
    /// It is named for the directory's inode, so that a copy beside the original is not taken for it.
    init(of directory: String, in runtimeDirectory: String?) {
        var status = stat()
        guard let runtimeDirectory, stat(directory, &status) == 0 else {
            path = nil
            return
        }
        path = "\(runtimeDirectory)/origin-\(status.st_dev)-\(status.st_ino)"
    }

    /// Whether the device may go on under the origin, of which the database has seen so many publications.
    func allows(_ origin: Origin, publications: UInt64) -> Bool {
        guard let path, let text = readFile(path) else { return false }
        let words = text.split(whereSeparator: \.isWhitespace)
        guard words.count == 2, let recorded = Origin(words[0]), let count = UInt64(words[1]) else { return false }
        return recorded == origin && count <= publications
    }

    /// Remembers a publication that is about to leave.
    ///
    /// If that fails the record is removed instead, so that the next start has a new origin.
    func remember(_ origin: Origin, publications: UInt64) {
        guard let path else { return }
        if !replaceFile(path, with: "\(origin) \(publications)\n") { unlink(path) }
    }

    private func readFile(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = read(descriptor, &bytes, bytes.count)
        return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
    }

    private func replaceFile(_ path: String, with text: String) -> Bool {
        let temporary = path + ".new"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return false }
        let bytes = Array(text.utf8)
        let written = write(descriptor, bytes, bytes.count)
        close(descriptor)
        return written == bytes.count && rename(temporary, path) == 0
    }
}
