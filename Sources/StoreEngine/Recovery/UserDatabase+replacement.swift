// SPDX-License-Identifier: Apache-2.0

internal import GRDB
internal import GRDBSQLite
internal import Glibc
internal import Replication

extension UserDatabase {
    /// Prepares a directory's database that another program may have made. Before this, SQLite must not read it.
    ///
    /// A rollback journal can name any file, which SQLite then deletes. The service's databases have one only while
    /// they are being made. A database from a salvage that was interrupted takes its place now, so that it is checked.
    package static func prepareForeign(in directory: String) throws(EngineError) {
        do { try Salvage.finishForeign(in: directory) } catch { throw EngineError(error) }
    }

    /// Returns the size of a directory's database in bytes, as its file or its log says; zero if it has none.
    package static func size(in directory: String) -> Int {
        let path = "\(directory)/\(DatabaseFile.name)"
        var status = stat()
        let size = stat(path, &status) == 0 ? Int(status.st_size) : 0
        let said = try? BriefConnection(path, flags: SQLITE_OPEN_READONLY).size()
        return max(size, said ?? 0)
    }

    /// Returns whether a directory's database, if it has one, defines only what this program does.
    package static func isOwn(in directory: String) throws(EngineError) -> Bool {
        do { return try Schema.isOwn("\(directory)/\(DatabaseFile.name)") } catch { throw EngineError(error) }
    }

    /// Returns what is wrong with the structure of a directory's database; `nil` if nothing is, or there is none. This
    /// reads the whole file.
    ///
    /// Queries of a file whose pages are no tree need not end. What a salvage reads of it is bounded.
    package static func damage(in directory: String) throws(EngineError) -> String? {
        do { return try Schema.damage("\(directory)/\(DatabaseFile.name)") } catch { throw EngineError(error) }
    }

    /// Returns the table of a directory's database that has more than any version of this program writes; `nil` if none
    /// has, or there is no database. It must be own (``isOwn(in:)``). If it has damage (``damage(in:)``), this may throw
    /// although there is an excess.
    package static func excess(in directory: String) throws(EngineError) -> String? {
        do { return try Schema.excess("\(directory)/\(DatabaseFile.name)") } catch { throw EngineError(error) }
    }

    /// Returns the greatest generation that programs may know.
    package func greatestGeneration() throws(EngineError) -> UInt64 {
        let stored = try read { db in try Int64.fetchOne(db, sql: "SELECT max(generation) FROM store") }
        return loadedStores.map(\.generation).reduce(max(UInt64(clamping: stored ?? 0), generationBase), max)
    }

    /// Gives every store a generation that no program knows, from which alone changes are known.
    ///
    /// For a database that has replaced another one under running programs, such as a restored backup: its generations
    /// are lower than those that the programs know, and would be taken for changes that they have seen.
    /// - Parameter generation: the greatest one that programs may know. No store may be loaded yet.
    package func raiseGenerations(above generation: UInt64) throws(EngineError) {
        let base = min(max(environment.time(), generation + 1, generationBase + 1), 1 << 61)
        try write { db in
            try db.execute(
                sql: """
                    UPDATE store SET generation = max(generation + 1, :base), known_from = max(generation + 1, :base)
                    """,
                arguments: ["base": Int64(base)])
            try db.setProperty("generation", Int64(base))
        }
        generationBase = base
    }
}
