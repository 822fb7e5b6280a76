// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Glibc

/// A random word in `/run` that tells how the service left a database, which the disk alone cannot tell.
///
/// A disk can be cloned, restored from a backup or rolled back. Another device may then write under the same origin.
/// `/run` is not on that disk. When the service ends, it writes the same word into the database and here. When it
/// starts, it removes the word here, and keeps the origin only if both are the same. So the processes of an origin form
/// a chain, in which each began with exactly the database that the one before had left, and no dot is used twice. After
/// a crash or a reboot, the device takes a new origin.
struct OriginRecord {
    /// The file's path; `nil` if the system has no such directory, so that every start takes a new origin.
    private let path: String?

    /// Finds the record of the database in `directory`, among those in `runtimeDirectory`.
    ///
    /// It is named for the directory's inode, so that a copy beside the original has another record.
    init(of directory: String, in runtimeDirectory: String?) {
        var status = stat()
        guard let runtimeDirectory, stat(directory, &status) == 0 else {
            path = nil
            return
        }
        path = "\(runtimeDirectory)/origin-\(status.st_dev)-\(status.st_ino)"
    }

    /// Removes the word and returns it; `nil` if there was none, or if it can't be removed.
    func take() -> UInt64? {
        guard let path else { return nil }
        let text = Files.text(of: path, atMost: 64)
        guard unlink(path) == 0, let text else { return nil }
        return UInt64(text, radix: 16)
    }

    /// Leaves a word for the next start. If that fails, the next start takes a new origin.
    func leave(_ word: UInt64) {
        guard let path else { return }
        do throws(SystemError) { try Files.overwrite(path, with: String(word, radix: 16)) } catch { unlink(path) }
    }
}
