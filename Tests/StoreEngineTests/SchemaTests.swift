// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import Replication
import StoreEngine
import Testing

/// Databases of older versions, made by the statements of those versions.
@Suite struct SchemaTests {
    private static let folder = URL(filePath: #filePath).appending(path: "../../../Sources/StoreEngine/Schema")
        .standardized.path
    private static let newest = (try? FileManager.default.contentsOfDirectory(atPath: folder))?.count ?? 0
    private static let older = Array(1..<max(2, newest))

    /// Returns the statements that make a version.
    private static func statements(of version: Int) throws -> String {
        var text = "CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);\n"
        for number in 1...version {
            text += try String(contentsOfFile: "\(folder)/v\(number).sql", encoding: .utf8)
            text += "INSERT INTO grdb_migrations VALUES ('v\(number)');\n"
        }
        return text
    }

    private static func blob(_ value: Value) -> String {
        "x'" + value.encoded().map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() + "'"
    }

    /// Rows that each version has: in the account A, a store with a published value that was replaced since, a value of
    /// another device, and a removed key.
    private static var rows: String {
        let columns = "(id, generation, key, value, provisional, wall, counter, origin, n, cause, time)"
        func change(_ sequence: Int, _ generation: Int, _ key: String, _ value: Value?, n: Int? = nil) -> String {
            let (bytes, number) = (value.map(blob) ?? "NULL", n.map { "\($0)" } ?? "NULL")
            let (origin, cause, time) = (n == nil ? 5 : 9, n == nil ? 0 : 1, 1_799_999_000_000 + sequence)
            return """
                INSERT INTO change \(columns) VALUES (
                    \(1 << 40 | sequence), \(generation), CAST('\(key)' AS BLOB), \(bytes), 0, \(time), 0,
                    \(origin), \(number), \(cause), \(time)000);

                """
        }
        let others = """
            INSERT INTO origin VALUES (1, 5, 2);
            INSERT INTO account VALUES (1, 'A', x'07', 1, 1, 0);
            INSERT INTO property VALUES ('account', 1), ('generation', 3);
            INSERT INTO store (id, identifier, generation, known_from) VALUES (1, 'app', 3, 3);
            INSERT INTO replica (id, store, account, sequence, published, downloaded) VALUES (1, 1, 1, 4, 2, 1);
            INSERT INTO context VALUES (1, 9, 6);

            """
        return others + change(1, 4, "a", .integer(1)) + change(2, 5, "b", .string("theirs"), n: 6)
            + change(3, 6, "a", .integer(3)) + change(4, 7, "c", nil)
    }

    /// What the database defines, without what SQLite makes by itself.
    private func definitions(_ device: Device) throws -> [[String]] {
        try device.sql("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
    }

    @Test(arguments: older)
    func `a database of an older version keeps what it has`(version: Int) throws {
        let device = try Device()
        let present = try definitions(device)
        device.close()
        for name in try FileManager.default.contentsOfDirectory(atPath: device.directory) {
            try FileManager.default.removeItem(atPath: device.directory + "/" + name)
        }
        try device.sql(Self.statements(of: version) + Self.rows)
        #expect(try ClosedDatabase(in: device.directory).isOwn())

        try device.reopen()
        #expect(try definitions(device) == present)
        let store = try device.store()
        #expect(store.values == [key("a"): .integer(3), key("b"): .string("theirs")])
        #expect(store.generation == 7)
        #expect(store.pendingChanges == 2)
        #expect(try device.database.summaries.pendingChanges() == 2)
        #expect(store.vector == VersionVector([Origin(bits: 5): 4, Origin(bits: 9): 6]))
        let removed = try #require(store.snapshot().state.entries[key("c")])
        #expect(removed.value == nil)
        #expect(device.database.account.identifier == "A" && device.database.account.cursor == [7])
        #expect(try device.database.origins.isOwn(Origin(bits: 5)))

        // It can be written, and opened once more.
        try device.write([("d", .boolean(true))])
        let before = Picture(store)
        #expect(before.generation == 8 && before.pending == 3)
        try device.reopen()
        #expect(try Picture(device.store()) == before)
    }
}
