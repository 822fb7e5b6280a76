// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Glibc
internal import Replication

/// What a directory has beside its database, and a salvage needs to know when the database can't tell it: that there was
/// one, which stores are excluded from sync, and since when the disk has not returned it.
struct DatabaseTraces {
    let directory: String

    private var database: String { directory + "/" + DatabaseFile.name }

    // MARK: Presence

    /// An empty file, if a database was made. Without it, an empty or missing one would be taken for new.
    private var presence: String { directory + "/stores.made" }

    /// Checks whether the database was lost.
    /// - Throws: `EngineError.corrupt` if it was.
    func checkPresence() throws {
        // An empty file without a trace is what an interrupted creation leaves. With a log beside it, it is damage:
        // SQLite would remove the log.
        guard Self.isEmpty(database), Self.exists(presence) || !Self.isEmpty(database + "-wal") else { return }
        throw EngineError.corrupt(Self.exists(database) ? "its file is empty" : "its file is gone")
    }

    /// Notes that the database exists and could be opened. If that fails, the next start tries again.
    func noteOpened() {
        if !Self.exists(presence) { close(open(presence, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)) }
        noteReadable()
    }

    // MARK: Stores that are excluded from sync

    /// A file with the identifiers of the stores that are excluded from sync, one per line. A salvage must not have them
    /// uploaded, even if it can't read which they are.
    private var exclusion: String { directory + "/stores.excluded" }

    /// Records which stores are excluded from sync.
    func recordExcluded(_ stores: [String]) throws(SystemError) {
        if stores == excludedStores { return }
        let text = stores.joined(separator: "\n")
        try Files.replace(exclusion, with: Array(text.utf8), by: exclusion + ".new")
    }

    var excludedStores: [String] {
        let text = Files.text(of: exclusion, atMost: 1 << 20) ?? ""
        return text.split(separator: "\n").map(String.init)
    }

    // MARK: The disk

    /// A file with the time since which the disk has not returned all of the database.
    private var unreadable: String { directory + "/stores.unreadable" }
    /// How long to wait for the disk, in microseconds: ten minutes, in which a drive or a connection is reset.
    static let patience: UInt64 = 600_000_000

    /// Throws if the disk doesn't return all of the database, and hasn't for less than ``patience``.
    func checkDisk(at time: UInt64) throws {
        for path in [database, database + "-wal"] {
            do { try Files.readThrough(path) } catch {
                let noted = Files.text(of: unreadable, atMost: 32).flatMap { UInt64($0) }
                // An older one is of another failure, or the clock was wrong.
                let since = noted.flatMap { $0 <= time && time - $0 < Retention.day ? $0 : nil } ?? time
                if noted != since { try? Files.overwrite(unreadable, with: "\(since)") }
                if time - since >= Self.patience { return }
                throw EngineError.storage("the disk does not return \(path): \(error)")
            }
        }
        noteReadable()
    }

    /// Notes that the disk returns the database. What it does not return later is another failure.
    private func noteReadable() { unlink(unreadable) }

    // MARK: Files

    /// Returns whether a file is empty or missing.
    static func isEmpty(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_size == 0 : errno == ENOENT
    }

    private static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }
}
