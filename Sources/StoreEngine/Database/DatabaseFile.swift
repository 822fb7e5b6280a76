// SPDX-License-Identifier: Apache-2.0

internal import GRDBSQLite
internal import Glibc

/// The file of a user's database.
public enum DatabaseFile {
    /// Its name in the user's directory; SQLite keeps two more beside it.
    static let name = "stores.sqlite"

    /// Whether a file of a user's directory is the database, or belongs to it while it is open.
    public static func includes(_ file: String) -> Bool { [name, name + "-wal", name + "-shm"].contains(file) }

    /// Copies the database of a directory to another directory, as it is at one moment, while others use it.
    ///
    /// A directory without a database gives one without. Damage is copied as it is.
    public static func copy(from directory: String, to other: String) throws(EngineError) {
        let path = directory + "/" + name
        guard access(path, F_OK) == 0 else { return }
        do {
            try BriefConnection(path, flags: SQLITE_OPEN_READWRITE).copy(to: other + "/" + name)
        } catch {
            throw EngineError(error)
        }
    }
}
