// SPDX-License-Identifier: Apache-2.0

internal import GRDBSQLite
internal import Glibc

extension UserDatabase {
    /// Whether a file of a user's directory is the database, or belongs to it while it is open.
    public static func isFile(_ name: String) -> Bool {
        name == fileName || name == fileName + "-wal" || name == fileName + "-shm"
    }

    /// Copies the database of a directory to another directory, as it is at one moment, while others use it.
    ///
    /// A directory without a database gives one without. Damage is copied as it is.
    public static func copy(from directory: String, to other: String) throws(EngineError) {
        let path = directory + "/" + fileName
        guard access(path, F_OK) == 0 else { return }
        do {
            try BriefConnection(path, flags: SQLITE_OPEN_READWRITE).copy(to: other + "/" + fileName)
        } catch {
            throw EngineError(error)
        }
    }
}
