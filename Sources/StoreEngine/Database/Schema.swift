// SPDX-License-Identifier: Apache-2.0

internal import GRDB
internal import GRDBSQLite
internal import Glibc

/// The versions of the database's schema. A version that was released never changes.
enum Schema {
    private static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        let versions = [
            PackageResources.v1_sql, PackageResources.v2_sql, PackageResources.v3_sql, PackageResources.v4_sql,
            PackageResources.v5_sql,
        ]
        for (index, version) in versions.enumerated() {
            migrator.registerMigration("v\(index + 1)") { db in
                try db.execute(sql: String(decoding: version, as: UTF8.self))
            }
        }
        return migrator
    }

    /// Checks that this program knows the version of the database at a path, if there is one.
    /// - Throws: `EngineError.newer` if it doesn't; the database is untouched.
    static func check(_ path: String) throws {
        guard access(path, F_OK) == 0 else { return }
        do {
            let known = Set(migrator.migrations)
            let applied = try BriefConnection(path, flags: SQLITE_OPEN_READONLY).strings(
                "SELECT identifier FROM grdb_migrations")
            if !known.isSuperset(of: applied) { throw EngineError.newer }
        } catch let error as DatabaseError where error.extendedResultCode == .SQLITE_READONLY_ROLLBACK {
            // A rollback journal exists only until the database is in WAL mode. So its creation was interrupted, and it
            // has no version yet. The next connection that writes rolls it back.
        }
    }

    /// Brings a database to the newest version.
    static func migrate(_ queue: DatabaseQueue) throws {
        try migrator.migrate(queue)
    }
}
