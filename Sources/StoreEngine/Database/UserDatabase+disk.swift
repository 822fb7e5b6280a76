// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension UserDatabase {
    /// The bytes of the log's file.
    package var logBytes: Int { maintenance.logBytes }

    /// Has the log emptied, on another thread, if its file has more than so many bytes.
    package func emptyLog(beyond bytes: Int) { maintenance.emptyLog(beyond: bytes) }

    /// Checks that the disk has room for a transaction that writes the changes of some replicas again. They are in the log
    /// first, and then in the database as well, or in temporary files meanwhile.
    /// - Parameter replicas: SQL: which rows of `replica`.
    /// - Throws: `EngineError.noRoom` if it hasn't.
    func checkDisk(forChangesOf replicas: String) throws(EngineError) {
        let room = roomOnDisk()
        // To count the changes is to read them all.
        if try space.size() <= room / 2 { return }
        let bytes = try read { db in
            try Int.fetchOne(
                db,
                sql: """
                    SELECT sum(\(Self.rowBytes) + length(key) + coalesce(length(value), 0))
                    FROM replica JOIN change ON \(ChangeID.isOf("replica.id")) WHERE \(replicas)
                    """) ?? 0
        }
        if bytes > room / 2 { throw .noRoom(missing: 2 * bytes - room) }
    }

    /// About the bytes of a row of `change` besides its key and value.
    private static let rowBytes = 64
}
