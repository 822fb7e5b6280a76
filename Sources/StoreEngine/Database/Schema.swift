// SPDX-License-Identifier: Apache-2.0

internal import GRDB
internal import GRDBSQLite
internal import Glibc

/// The versions of the database's schema. A version that was released never changes.
enum Schema {
    /// The statements that make each version from the one before. Not even a comment in one of a released version changes:
    /// ``isOwn(_:)`` compares them.
    private static let versions = [
        PackageResources.v1_sql, PackageResources.v2_sql, PackageResources.v3_sql, PackageResources.v4_sql,
        PackageResources.v5_sql,
    ].map { String(decoding: $0, as: UTF8.self) }

    private static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        for (index, version) in versions.enumerated() {
            migrator.registerMigration("v\(index + 1)") { db in try db.execute(sql: version) }
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

    /// More than any version has.
    private static let mostDefinitions = 100

    /// Returns whether the database at a path defines nothing but what a version of this program does.
    ///
    /// Anything else may have been put there to do harm: a query of a view that stands in a table's place need not end.
    /// If the definitions can be read only up to a damaged place, those before it decide. A salvage uses no others.
    static func isOwn(_ path: String) throws -> Bool {
        guard access(path, F_OK) == 0 else { return true }
        var found: [String] = []
        do {
            try BriefConnection(path, flags: SQLITE_OPEN_READONLY).definitions(atMost: mostDefinitions) {
                found.append($0)
            }
        } catch let error as DatabaseError {
            switch error.resultCode {
            case .SQLITE_CORRUPT, .SQLITE_NOTADB: break
            // There is no end to them.
            case .SQLITE_INTERRUPT: return false
            default: throw error
            }
        }
        let model = try BriefConnection(":memory:", flags: SQLITE_OPEN_READWRITE)
        try model.execute("CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY)")
        // What SQLite's ANALYZE leaves.
        var own: Set = [
            "table\0sqlite_stat1\0CREATE TABLE sqlite_stat1(tbl,idx,stat)",
            "table\0sqlite_stat4\0CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
        ]
        for version in versions {
            try model.execute(version)
            try model.definitions(atMost: mostDefinitions) { own.insert($0) }
        }
        return found.count < mostDefinitions && own.isSuperset(of: found)
    }

    /// Returns what is wrong with the structure of the database at a path; `nil` if nothing is, or there is none.
    static func damage(_ path: String) throws -> String? {
        guard access(path, F_OK) == 0 else { return nil }
        do { return try BriefConnection(path, flags: SQLITE_OPEN_READONLY).damage() } catch let error as DatabaseError
            where [.SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_INTERRUPT, .SQLITE_TOOBIG].contains(error.resultCode)
        { return error.message ?? "it can't be read" }
    }

    /// Returns the table of the database at a path that has more than any version writes, so that reading it would take too
    /// much memory or time; `nil` if none has, or there is no database. It must be ``isOwn(_:)``.
    static func excess(_ path: String) throws -> String? {
        guard access(path, F_OK) == 0 else { return nil }
        let database = try BriefConnection(path, flags: SQLITE_OPEN_READONLY)
        database.bound(steps: 1_000_000_000)
        for table in try database.strings("SELECT name FROM sqlite_schema WHERE type = 'table'") {
            let columns = try database.strings("SELECT name FROM pragma_table_info('\(table)') WHERE type <> 'INTEGER'")
            if try database.finds("SELECT 1 WHERE \(isExcessive(table, columns))") { return table }
        }
        return nil
    }

    /// SQL: whether a table has too much. Those of which the service reads one replica at a time may have more in all.
    /// - Parameter columns: the columns that don't hold integers.
    private static func isExcessive(_ table: String, _ columns: [String]) -> String {
        let (rows, bytes) = (1 << 18, 64 << 20)
        func inReplica(_ condition: String, _ isOf: String) -> String {
            "EXISTS (SELECT 1 FROM replica WHERE (SELECT \(condition) FROM \(table) WHERE \(isOf)))"
        }
        switch table {
        case "context": return inReplica("count(*) > \(rows)", "context.replica = replica.id")
        case "change":
            // Besides its key and its value, a change takes about 256 bytes of memory.
            let isTooMuch = "sum(256 + length(key) + coalesce(length(value), 0)) > \(bytes)"
            let isTooLong = "max(coalesce(length(value), 0)) > \(DatabaseFile.longestRow)"
            return inReplica("\(isTooMuch) OR \(isTooLong)", ChangeID.isOf("replica.id"))
        default:
            // To C, a text ends with its first zero byte, which length() believes.
            let lengths = columns.map { "coalesce(length(CAST(\($0) AS BLOB)), 0)" }
            let sum = (["0"] + lengths).joined(separator: " + ")
            return "(SELECT count(*) > \(rows) OR sum(\(sum)) > \(bytes) FROM \(table))"
        }
    }

    /// Brings a database to the newest version.
    static func migrate(_ queue: DatabaseQueue) throws {
        try migrator.migrate(queue)
    }
}
