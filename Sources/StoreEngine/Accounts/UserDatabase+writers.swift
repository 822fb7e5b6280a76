// SPDX-License-Identifier: Apache-2.0

internal import GRDB
package import Replication

extension UserDatabase {
    /// The origins of an account whose devices are remembered. Anyone who can write to a remote can name any number.
    private static let mostWriters = 1024

    /// Returns the identifier of the device that wrote to the current account under an origin; `nil` if it is unknown.
    package func writer(under origin: Origin) throws(EngineError) -> String? {
        try read { db in
            try String.fetchOne(
                db.cachedStatement(sql: "SELECT device FROM writer WHERE account = ? AND origin = ?"),
                arguments: [account.id, Int64(bitPattern: origin.bits)])
        }
    }

    /// Remembers under which origins devices write to the current account. The ones found last displace others.
    package func note(writers: [Origin: String]) throws(EngineError) {
        let account = account.id
        try write { db in
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
                        LIMIT 1 OFFSET \(Self.mostWriters))
                    """,
                arguments: ["account": account])
        }
    }
}
