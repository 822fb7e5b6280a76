// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Glibc

/// A random word in `/run` that says how the service left a database, which the disk alone cannot tell.
///
/// A disk can be cloned, restored from a backup or rolled back, and then has an origin that somebody else goes on
/// writing under. `/run` is not on that disk. When the service ends it writes one word both into the database and here;
/// when it starts it goes on under the origin only if both are the same, and takes the one here away. So the processes
/// of an origin are a chain, in which each began with the very database that the one before had left, and no dot is
/// used twice. After a crash, or a reboot, the origin is a new one.
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

    /// The word that was left, and is there no more; `nil` if there was none, or it can't be taken away.
    func take() -> UInt64? {
        guard let path else { return nil }
        let text = Files.text(of: path, atMost: 64)
        guard unlink(path) == 0, let text else { return nil }
        return UInt64(text, radix: 16)
    }

    /// Leaves a word for the next start. If that fails there is none, and the next start has a new origin.
    func leave(_ word: UInt64) {
        guard let path else { return }
        do throws(SystemError) { try Files.overwrite(path, with: String(word, radix: 16)) } catch { unlink(path) }
    }
}
