// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import GRDBSQLite
internal import Glibc

/// The file of a user's database.
package enum DatabaseFile {
    /// The file's name in the user's directory. SQLite keeps two more files beside it.
    static let name = "stores.sqlite"
    /// More bytes than a row has in any version. A damaged file can claim that a row has a gigabyte.
    static let longestRow: Int32 = 32 << 20

    /// Returns whether a file in a user's directory is the database, or belongs to it while it is open.
    package static func includes(_ file: String) -> Bool { [name, name + "-wal", name + "-shm"].contains(file) }

    /// Throws if this process may not read and write the files of the database in a directory, and make others there.
    ///
    /// SQLite doesn't say which file it may not use. If it may only read the database, it opens it all the same, and
    /// refuses each write until it is opened again, even if it may write meanwhile.
    static func checkAccess(in directory: String) throws(EngineError) {
        let path = directory + "/" + name
        for file in [directory, path, path + "-wal", path + "-shm"] {
            if access(file, R_OK | W_OK) == 0 { continue }
            let error = SystemError()
            if error.number == EACCES || error.number == EPERM { throw .storage("\(file): \(error)") }
        }
    }

    /// Copies the database in one directory to another, as it is at one moment, even while it is in use.
    ///
    /// If the directory has no database, nothing is copied. Damage is copied as it is.
    package static func copy(from directory: String, to other: String) throws(EngineError) {
        let path = directory + "/" + name
        guard access(path, F_OK) == 0 else { return }
        do {
            try BriefConnection(path, flags: SQLITE_OPEN_READWRITE).copy(to: other + "/" + name)
        } catch {
            throw EngineError(error)
        }
    }
}
