// SPDX-License-Identifier: Apache-2.0

internal import GRDB
package import Replication

/// Which devices have written to the current account, and under which origins, as far as this device remembers.
package struct KnownWriters {
    let database: UserDatabase

    /// The origins of an account that are remembered. Anyone who can write to a remote can name any number.
    private static let most = 1024

    /// Returns the identifier of the device that wrote to the account under an origin; `nil` if it is unknown.
    package func device(under origin: Origin) throws(EngineError) -> String? {
        let account = database.account.id
        return try database.read { db in
            try String.fetchOne(
                db.cachedStatement(sql: "SELECT device FROM writer WHERE account = ? AND origin = ?"),
                arguments: [account, Int64(bitPattern: origin.bits)])
        }
    }

    /// Remembers under which origins devices write to the account. The ones found last displace others.
    package func note(_ writers: [Origin: String]) throws(EngineError) {
        let account = database.account.id
        try database.write { db in
            for (origin, device) in writers.sorted(by: { $0.key < $1.key }) {
                try db.run(
                    sql: """
                        INSERT INTO writer (account, origin, device) VALUES (?, ?, ?)
                        ON CONFLICT DO UPDATE SET device = excluded.device WHERE device <> excluded.device
                        """,
                    arguments: [account, Int64(bitPattern: origin.bits), device])
            }
            try db.run(
                sql: """
                    DELETE FROM writer WHERE account = :account AND id <= (
                        SELECT id FROM writer WHERE account = :account ORDER BY id DESC
                        LIMIT 1 OFFSET \(Self.most))
                    """,
                arguments: ["account": account])
        }
    }
}
