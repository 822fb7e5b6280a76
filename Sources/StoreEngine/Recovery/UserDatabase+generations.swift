// SPDX-License-Identifier: Apache-2.0

internal import GRDB
internal import Replication

extension UserDatabase {
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
                    UPDATE OR FAIL store
                        SET generation = max(generation + 1, :base), known_from = max(generation + 1, :base)
                    """,
                arguments: ["base": Int64(base)])
            try db.setProperty("generation", Int64(base))
        }
        generationBase = base
    }
}
