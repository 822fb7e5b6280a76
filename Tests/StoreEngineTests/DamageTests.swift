// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import Replication
import StoreEngine
import Testing

@Suite struct DamageTests {
    let device: Device

    init() throws { device = try Device() }

    @Test(arguments: [
        "CREATE VIEW v AS SELECT 1", "CREATE TABLE t (y, x AS (hex(zeroblob(y))))",
        "CREATE TRIGGER t INSERT ON change BEGIN SELECT 1; END",
        "ALTER TABLE grdb_migrations RENAME TO m; CREATE VIEW grdb_migrations AS SELECT identifier FROM m",
    ])
    func `a database that defines more than the service does isn't its own`(definition: String) throws {
        try fill()
        #expect(try ClosedDatabase(in: device.directory).isOwn())
        device.close()
        #expect(try ClosedDatabase(in: device.directory).isOwn())
        try device.sql("ANALYZE; VACUUM")
        #expect(try ClosedDatabase(in: device.directory).isOwn())
        try device.sql(definition)
        #expect(try !ClosedDatabase(in: device.directory).isOwn())
        try Data([1, 2, 3]).write(to: URL(filePath: device.file))
        #expect(try ClosedDatabase(in: device.directory).isOwn())
        try FileManager.default.removeItem(atPath: device.file)
        #expect(try ClosedDatabase(in: device.directory).isOwn())
    }

    @Test(.enabled(if: geteuid() != 0, "root may write to everything"), arguments: ["/stores.sqlite", ""])
    func `a database that may not be written to is named, and opened once it may`(name: String) throws {
        try fill()
        device.close()
        let path = device.directory + name
        let mode: mode_t = name.isEmpty ? 0o700 : 0o600
        for forbidden in [mode & 0o500, 0] {
            chmod(path, forbidden)
            #expect(throws: EngineError.storage("\(path): Permission denied")) { try device.open() }
            chmod(path, mode)
        }
        let database = try device.open()
        defer { database.close() }
        #expect(try database.storeIdentifiers() != [])
    }

    /// A zero byte ends what C takes for the text.
    @Test func `a zero byte hides no definition`() throws {
        try fill()
        device.close()
        try device.sql(
            """
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET type = type || char(0) || name || char(0) || sql || char(0),
                sql = 'CREATE VIEW store AS SELECT 1' WHERE name = 'store'
            """)
        #expect(try !ClosedDatabase(in: device.directory).isOwn())
    }

    @Test func `a salvage keeps which accounts are encrypted, and their former names`() throws {
        _ = try device.database.enter(account: "K", bringingValues: false)
        try device.database.progress.completeDownload(cursor: [1])
        try device.database.names.noteEncrypted()
        try device.database.rename(accountTo: "K", aliases: ["P"])
        _ = try device.database.enter(account: "other", bringingValues: false)
        device.close()
        _ = try ClosedDatabase(in: device.directory).setAside(at: 5)
        let database = try device.open()
        defer { database.close() }
        #expect(try database.names.encrypted(among: ["K", "P", "other"]) == ["K"])
        #expect(try database.names.accounts(formerly: ["P"]) == ["K"])
    }

    /// SQLite keeps what it has read of a schema before the damage, and answers queries with it.
    @Test func `what stands before the damage in a schema counts`() throws {
        device.close()
        try FileManager.default.removeItem(atPath: device.file)
        let other = (0..<30).map { "CREATE TABLE t\($0) (x);" }.joined()
        try device.sql("PRAGMA page_size = 512; CREATE VIEW store AS SELECT 1 AS id;" + other)
        var file = try bytes()
        #expect(file[100] == 5, "the schema has one page")
        let last = file[108..<112].reduce(0) { $0 << 8 | Int($1) }
        file[(last - 1) * 512] = 0xFF
        try put(file)
        #expect(try !ClosedDatabase(in: device.directory).isOwn())
    }

    @Test func `the database of a salvage that was interrupted takes its place before it is checked`() throws {
        _ = try device.store("one")
        try device.write([("k", .string("v"))], to: "one")
        device.close()
        try device.sql("CREATE VIEW v AS SELECT 1")
        try FileManager.default.moveItem(atPath: device.file, toPath: device.file + ".new")
        try ClosedDatabase(in: device.directory).prepareForeign()
        #expect(try !ClosedDatabase(in: device.directory).isOwn())
        #expect(ClosedDatabase(in: device.directory).size > 0)
        // There is a database already.
        try Data([1]).write(to: URL(filePath: device.file + ".new"))
        try ClosedDatabase(in: device.directory).prepareForeign()
        #expect(!FileManager.default.fileExists(atPath: device.file + ".new"))
    }

    /// SQLite doesn't check that each page has one parent, so a query of such a file need not end.
    @Test func `a database whose few pages lead to rows without end is damaged`() throws {
        _ = try device.store("one")
        try device.write([("k", .string("v"))], to: "one")
        device.close()
        try device.sql("VACUUM")
        #expect(try ClosedDatabase(in: device.directory).damage() == nil)
        try knot("change", levels: 6)
        #expect(try ClosedDatabase(in: device.directory).damage() != nil)
        #expect(try ClosedDatabase(in: device.directory).setAside(at: 5).salvagedValues == 1)
        #expect(try ClosedDatabase(in: device.directory).damage() == nil)
        #expect(try device.sql("SELECT count(*) FROM change") == [["1"]])
    }

    @Test(arguments: [
        // A row of 40 MB, many of a few MB, a text that ends for C before it does, and 262,145 rows.
        "INSERT INTO property VALUES ('x', zeroblob(40000000))",
        "UPDATE change SET value = zeroblob(40000000)",
        "INSERT INTO property SELECT value, zeroblob(4000000) FROM SERIES LIMIT 17",
        "INSERT INTO property SELECT value, char(0) || printf('%.*c', 4000000, 'a') FROM SERIES LIMIT 17",
        "INSERT INTO property SELECT value, 1 FROM SERIES",
        "INSERT INTO context SELECT (SELECT min(id) FROM replica), value, 1 FROM SERIES",
        """
        INSERT INTO change (id, generation, key, value, provisional, wall, counter, origin, cause, time)
            SELECT id + n.value, generation, key, change.value, 0, wall, 0, origin, cause, time
            FROM change, SERIES AS n WHERE id = (SELECT max(id) FROM change)
        """,
        """
        INSERT INTO change (id, generation, key, value, provisional, wall, counter, origin, cause, time)
            SELECT id + n.value, generation, key, zeroblob(30000000), 0, wall, 0, origin, cause, time
            FROM change, (SELECT value FROM SERIES LIMIT 3) AS n WHERE id = (SELECT max(id) FROM change)
        """,
    ])
    func `a database that has more than a version writes is recognized`(statement: String) throws {
        for store in ["one", "two"] { try device.write([("k", .string("v"))], to: store) }
        device.close()
        #expect(try ClosedDatabase(in: device.directory).excess() == nil)
        try device.sql(statement.replacing("SERIES", with: Self.series))
        #expect(try ClosedDatabase(in: device.directory).isOwn())
        #expect(try ClosedDatabase(in: device.directory).excess() != nil)
    }

    @Test func `a row that is too long to be read is damage`() throws {
        for store in ["one", "two"] { try device.write([("k", .string("v"))], to: store) }
        device.close()
        try device.sql("UPDATE change SET value = zeroblob(40000000) WHERE id = (SELECT max(id) FROM change)")
        let database = try device.open()
        #expect(try database.store("one", localKeys: LocalKeys([])).values == [key("k"): .string("v")])
        #expect {
            _ = try database.store("two", localKeys: LocalKeys([]))
        } throws: { error in
            if case EngineError.corrupt = error { true } else { false }
        }
        database.close()
        #expect(try ClosedDatabase(in: device.directory).setAside(at: 5).salvagedValues == 1)
    }

    private static let series = """
        (WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n LIMIT 262145) SELECT value FROM n)
        """

    /// Puts pages above the only page of a table, each of which leads to the one below a hundred times.
    private func knot(_ table: String, levels: Int) throws {
        let root = try #require(
            Int(try device.sql("SELECT rootpage FROM sqlite_schema WHERE name = '\(table)'")[0][0]))
        var file = try bytes()
        let size = Int(file[16]) << 8 | Int(file[17])
        func numbers(_ value: Int, _ count: Int) -> [UInt8] {
            (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        }
        /// Returns an interior page of a table (https://www.sqlite.org/fileformat2.html, 1.6).
        func interior(_ child: Int) -> [UInt8] {
            let cell = numbers(child, 4) + [1]
            let starts = (1...100).map { size - $0 * cell.count }
            let head = [5, 0, 0] + numbers(100, 2) + numbers(starts[99], 2) + [0] + numbers(child, 4)
            let page = head + starts.flatMap { numbers($0, 2) }
            return page + Array(repeating: 0, count: starts[99] - page.count) + (1...100).flatMap { _ in cell }
        }
        let range = (root - 1) * size..<root * size
        #expect(file[range.lowerBound] == 13, "the table has more than one page")
        file += file[range]
        for _ in 1..<levels { file += interior(file.count / size) }
        file.replaceSubrange(range, with: interior(file.count / size))
        file.replaceSubrange(28..<32, with: numbers(file.count / size, 4))
        try put(file)
    }

    /// Fills three stores, with local values, a history and, unless refused, an account.
    private func fill(account: Bool = true) throws {
        if account {
            _ = try device.database.enter(account: "A", bringingValues: false)
            try device.database.progress.completeDownload(cursor: [1])
        }
        for identifier in ["one", "two", "three"] {
            let store = try device.store(identifier, local: ["local*"])
            for round in 0..<4 {
                try device.write(
                    (0..<60).map { ("k\($0)", .string(Text("value \(round) \($0)"))) }
                        + [("local", .integer(Int64(round)))],
                    to: identifier
                )
            }
            try device.database.progress.markPublished(
                [identifier: store.snapshot().sequence], under: device.database.origin)
            try device.write([("pending", .string("pending")), ("k1", .string("pending"))], to: identifier)
        }
    }

    private func bytes() throws -> [UInt8] { [UInt8](try Data(contentsOf: URL(filePath: device.file))) }

    private func put(_ bytes: [UInt8]) throws { try Data(bytes).write(to: URL(filePath: device.file)) }

    /// Uses every part of the database, and returns the error, if there is one.
    private func use() -> EngineError? {
        do throws(EngineError) {
            let database = try device.open()
            defer { database.close() }
            for identifier in ["one", "two", "three"] {
                let store = try database.store(identifier, localKeys: LocalKeys(["local*"]))
                try store.stage(
                    setting: [(key("k0"), .string("new")), (key("local"), .integer(-1))],
                    removing: [key("k5")]
                )
                try database.commit()
                _ = store.snapshot().state
                _ = try database.history.values(of: key("k0"), in: store)
                _ = store.overflow
            }
            _ = try database.summaries.pendingChanges()
            _ = try database.progress.publishedStores()
            _ = try database.enter(account: "B", bringingValues: true)
            try database.progress.completeDownload(cursor: [2])
            _ = try database.clearAccount()
            return nil
        } catch {
            return error
        }
    }

    @Test func `a file that is no database is corrupt`() throws {
        device.close()
        for bytes in [[UInt8](repeating: 0x5A, count: 8192), Array("SQLite format 3\0 and then nothing".utf8)] {
            try put(bytes)
            let error = #expect(throws: EngineError.self) { _ = try device.open() }
            guard case .corrupt = error else {
                Issue.record("\(String(describing: error))")
                continue
            }
        }
    }

    @Test func `a database whose schema is another one is corrupt`() throws {
        device.close()
        try device.sql("ALTER TABLE change RENAME COLUMN counter TO something")
        let error = #expect(throws: EngineError.self) { _ = try device.open() }
        guard case .corrupt = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test(arguments: [
        "UPDATE change SET id = id | 1099511627775 WHERE sequence = 3",
        "UPDATE change SET generation = -1 WHERE sequence = 3",
        "UPDATE change SET cause = 77 WHERE sequence = 3",
        "UPDATE store SET generation = -1", "UPDATE store SET known_from = -9223372036854775807",
        "UPDATE replica SET published = -1", "UPDATE replica SET sequence = 9223372036854775807",
        "UPDATE property SET value = 'text' WHERE name = 'generation'",
        "UPDATE property SET value = -1 WHERE name = 'generation'",
        "UPDATE property SET value = 99 WHERE name = 'account'",
        "UPDATE origin SET publications = -1",
        "INSERT INTO store VALUES (9223372036854775807, 'last', 1, 1, 0, 1)",
    ])
    func `rows that nobody could have written are corrupt`(damage: String) throws {
        try fill()
        device.close()
        try device.sql(damage)
        guard case .corrupt = use() else {
            Issue.record("\(damage)")
            return
        }
    }

    @Test(arguments: [
        "UPDATE change SET wall = -1", "UPDATE change SET wall = 9223372036854775807, counter = 65535",
        "UPDATE change SET counter = 9000000", "UPDATE change SET value = x'FF00' WHERE value IS NOT NULL",
        "UPDATE change SET key = x'FFFE' WHERE sequence = 2", "UPDATE change SET n = -1",
        "UPDATE context SET n = -1", "UPDATE change SET time = -1", "UPDATE account SET cursor = x''",
    ])
    func `rows that are only strange do no harm`(damage: String) throws {
        try fill()
        device.close()
        try device.sql(damage)
        #expect(use() == nil)
    }

    @Test(arguments: 0..<4)
    func `bits that flip are an error or nothing, and no crash`(part: UInt64) throws {
        try fill()
        device.close()
        let intact = try bytes()
        var choices = Choices(seed: 100 + part)
        var errors = 0
        for _ in 0..<40 {
            var damaged = intact
            for _ in 0..<Int.random(in: 1...20, using: &choices) {
                damaged[Int.random(in: 100..<damaged.count, using: &choices)] ^=
                    1 << UInt8.random(in: 0..<8, using: &choices)
            }
            try put(damaged)
            if let error = use() {
                errors += 1
                if case .newer = error { Issue.record("newer") }
                // What can be read is salvaged.
                let report = try ClosedDatabase(in: device.directory).setAside(at: device.clock.time)
                #expect(report.salvagedValues <= 3 * 62)
                #expect(use() == nil)
            }
            removeFiles()
        }
        #expect(errors > 0)
    }

    @Test func `a page that is overwritten or a file that is cut short is an error or nothing, and no crash`() throws {
        try fill()
        device.close()
        let intact = try bytes()
        var errors = 0
        for page in 0..<(intact.count / 4096) {
            for filler in [0, 0xFF, 0x0D] as [UInt8] {
                var damaged = intact
                for index in (page * 4096)..<(page * 4096 + 4096) { damaged[index] = filler }
                try put(damaged)
                if use() != nil { errors += 1 }
                removeFiles()
            }
            try put(Array(intact.prefix(page * 4096 + 1000)))
            if use() != nil { errors += 1 }
            removeFiles()
        }
        #expect(errors > intact.count / 4096)
    }

    private func removeFiles() {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: device.directory)) ?? [] {
            try? FileManager.default.removeItem(atPath: device.directory + "/" + name)
        }
    }

    @Test func `a database of a newer version is refused, and not touched`() throws {
        try fill()
        try device.sql("INSERT INTO grdb_migrations VALUES ('v99')")
        device.close()
        try device.sql("PRAGMA journal_mode = DELETE")
        let before = try bytes()
        let files = try Set(FileManager.default.contentsOfDirectory(atPath: device.directory))
        #expect(throws: EngineError.newer) { _ = try device.open() }
        #expect(try bytes() == before)
        #expect(try Set(FileManager.default.contentsOfDirectory(atPath: device.directory)) == files)
    }

    // MARK: Setting aside

    @Test func `a database that was set aside has another name with its date, and none is overwritten`() throws {
        device.clock.time = 1_795_000_000_000_000
        device.close()
        var names: [String] = []
        for round in 0..<3 {
            try put(Array("garbage \(round)".utf8))
            try Data("log".utf8).write(to: URL(filePath: device.file + "-wal"))
            let report = try ClosedDatabase(in: device.directory).setAside(at: device.clock.time)
            let name = try #require(report.fileName)
            names.append(name)
            #expect(report.salvagedValues == 0 && report.account == nil)
            #expect(FileManager.default.fileExists(atPath: device.directory + "/" + name + "-wal"))
        }
        #expect(
            names == [
                "stores.sqlite.damaged-2026-11-18T110640Z", "stores.sqlite.damaged-2026-11-18T110640Z-2",
                "stores.sqlite.damaged-2026-11-18T110640Z-3",
            ]
        )
        for (round, name) in names.enumerated() {
            let file = URL(filePath: device.directory + "/" + name)
            #expect(try Data(contentsOf: file) == Data("garbage \(round)".utf8))
        }
        try device.reopen()
        #expect(try device.store().values.isEmpty)
    }

    @Test func `without an account every value is saved, and those that stay on the device`() throws {
        let store = try device.store(local: ["local", "pre*"])
        try device.write([("k", .integer(1)), ("gone", .integer(1)), ("local", .integer(5)), ("pre*", .integer(6))])
        try device.write([("k", .integer(2))], removing: ["gone"])
        try device.write([("k", .string("other"))], to: "other")
        let (generation, origin) = (store.generation, device.database.origin)
        device.close()
        let report = try ClosedDatabase(in: device.directory).setAside(at: device.clock.time)
        #expect(report.salvagedValues == 4)
        try device.reopen()
        let saved = try device.store(local: ["local", "pre*"])
        #expect(saved.values == [key("k"): .integer(2), key("local"): .integer(5), key("pre*"): .integer(6)])
        #expect(try device.store("other").values == [key("k"): .string("other")])
        #expect(saved.generation > generation && !saved.knowsChanges(since: generation))
        #expect(saved.entry(for: key("local")) == nil)
        let entry = try #require(saved.entry(for: key("k")))
        #expect(entry.stamp.origin != origin && saved.vector.contains(entry.dot))
        #expect(saved.vector[origin] == 0)
        #expect(!device.database.isAwaitingRemote && !device.database.hasAccount)
        try device.write([("k", .integer(3))])
        try device.reopen()
        #expect(try device.store().value(for: key("k")) == .integer(3))
    }

    @Test func `of an account what was pending is saved, and the rest is awaited from the remote`() throws {
        try fill()
        let states = try ["one", "two"].map { try device.store($0).snapshot().state }
        device.close()
        let report = try ClosedDatabase(in: device.directory).setAside(at: device.clock.time)
        #expect(report.salvagedValues == 3 * 3 && report.account == "A")
        try device.reopen()
        #expect(device.database.isAwaitingRemote)
        #expect(device.database.account.identifier == "A" && !device.database.account.isDownloaded)
        for identifier in ["one", "two", "three"] {
            let store = try device.store(identifier, local: ["local*"])
            #expect(
                store.values == [
                    key("pending"): .string("pending"), key("k1"): .string("pending"), key("local"): .integer(3),
                ]
            )
            #expect(!store.isProvisionalHere(key("pending")) && store.pendingChanges == 2)
        }
        #expect(try device.database.progress.storesAwaitingDownload() == ["one", "three", "two"])
        // The database awaits the remote even after a restart, until the download, where the account's values win.
        try device.reopen()
        #expect(device.database.isAwaitingRemote)
        let store = try device.store("one")
        let entries = states[0].entries.filter { $0.key != key("pending") }
        var vector = store.vector
        vector.formUnion(states[0].vector)
        try device.join(JoinPlan(taken: entries, vector: vector), cause: .downloaded, to: "one")
        try device.database.progress.completeDownload(cursor: [2])
        #expect(!device.database.isAwaitingRemote)
        #expect(store.value(for: key("pending")) == .string("pending"))
        try device.reopen()
        #expect(!device.database.isAwaitingRemote)
    }

    @Test func `what was pending in an account that this device has left is saved for it`() throws {
        _ = try device.database.enter(account: "A", bringingValues: false)
        try device.database.progress.completeDownload(cursor: [1])
        try device.write([("uploaded", .integer(1))])
        try device.database.progress.markPublished(["app": 1], under: device.database.origin)
        try device.write([("pending", .integer(2))])
        _ = try device.database.enter(account: "B", bringingValues: false)
        try device.database.progress.completeDownload(cursor: [1])
        device.close()
        let report = try ClosedDatabase(in: device.directory).setAside(at: device.clock.time)
        #expect(report.salvagedValues == 1 && report.account == "B")
        try device.reopen()
        #expect(try device.store().values.isEmpty)
        _ = try device.database.enter(account: "A", bringingValues: false)
        #expect(!device.database.account.isDownloaded)
        #expect(try device.store().values == [key("pending"): .integer(2)])
        #expect(try !device.store().isProvisionalHere(key("pending")))
    }

    @Test(arguments: [false, true])
    func `what was pending follows what it has replaced, be it a value or a removal`(isExcluded: Bool) throws {
        _ = try device.database.enter(account: "A", bringingValues: false)
        try device.database.progress.completeDownload(cursor: [1])
        try device.write([("changed", .integer(1)), ("removed", .integer(1)), ("kept", .integer(1))])
        try device.write([("later", .integer(1)), ("gone", .integer(1)), ("back", .integer(1))])
        try device.store().stage(setting: [], removing: [key("back")])
        try device.database.commit()
        try device.database.progress.markPublished(["app": 7], under: device.database.origin)
        let published = try device.store().snapshot().state
        if isExcluded { try device.database.synchronize(store: "app", false) }
        try device.write([("changed", .integer(2))])
        try device.store().stage(setting: [], removing: [key("removed")])
        try device.database.commit()
        device.close()
        let report = try ClosedDatabase(in: device.directory).setAside(at: device.clock.time)
        // Of an excluded store, what was published is only here as well.
        #expect(report.salvagedValues == (isExcluded ? 4 : 1))
        try device.reopen()
        let store = try device.store()
        #expect(store.values[key("changed")] == .integer(2) && store.values[key("removed")] == nil)
        #expect(store.pendingChanges == (isExcluded ? 6 : 2))
        var expected: [Key: Value] = [key("changed"): .integer(2), key("kept"): .integer(1)]
        if isExcluded {
            // What is written after the salvage follows as well.
            try device.write([("later", .integer(2)), ("back", .integer(2))])
            try store.stage(setting: [], removing: [key("gone")])
            try device.database.commit()
            expected.merge([key("later"): .integer(2), key("back"): .integer(2)]) { $1 }
            try device.database.synchronize(store: "app", true)
        } else {
            expected.merge([key("later"): .integer(1), key("gone"): .integer(1)]) { $1 }
        }
        try device.join(Join.plan(store, taking: published, isFirstDownload: true), cause: .downloaded)
        #expect(store.values == expected)
    }

    @Test func `what was pending before the account had arrived gives way to it`() throws {
        _ = try device.database.enter(account: "A", bringingValues: false)
        try device.write([("key", .integer(1))])
        device.close()
        #expect(try ClosedDatabase(in: device.directory).setAside(at: device.clock.time).salvagedValues == 1)
        try device.reopen()
        #expect(try device.store().isProvisionalHere(key("key")))
    }

    @Test func `after signing out everything that was kept is saved, and nothing is awaited`() throws {
        _ = try device.database.enter(account: "A", bringingValues: false)
        try device.database.progress.completeDownload(cursor: [1])
        try device.write([("published", .integer(1)), ("pending", .integer(1))])
        try device.database.progress.markPublished(["app": 1], under: device.database.origin)
        device.close()
        let report = try ClosedDatabase(in: device.directory).setAside(at: device.clock.time, isSignedIn: false)
        #expect(report.salvagedValues == 2)
        try device.reopen()
        #expect(try device.store().values == [key("published"): .integer(1), key("pending"): .integer(1)])
        #expect(!device.database.isAwaitingRemote && device.database.hasAccount)
    }

    @Test func `an account that the damaged database can't name is taken from who knows it`() throws {
        device.close()
        try put([UInt8](repeating: 1, count: 5000))
        let report = try ClosedDatabase(in: device.directory).setAside(at: device.clock.time, account: "A")
        #expect(report.account == "A" && report.salvagedValues == 0)
        try device.reopen()
        #expect(device.database.isAwaitingRemote && device.database.account.identifier == "A")
    }

    @Test func `stores that are excluded from sync stay so, whatever the damage`() throws {
        try fill()
        try device.database.synchronize(store: "app", false)
        device.close()
        try put([UInt8](repeating: 1, count: 5000))
        _ = try ClosedDatabase(in: device.directory).setAside(at: device.clock.time, account: "A")
        try device.reopen()
        #expect(try !device.database.store("app").isSynchronized)
        try device.database.synchronize(store: "app", true)
        device.close()
        try put([UInt8](repeating: 1, count: 5000))
        _ = try ClosedDatabase(in: device.directory).setAside(at: device.clock.time + 1_000_000, account: "A")
        try device.reopen()
        #expect(try device.database.store("app").isSynchronized)
    }

    @Test func `a disk that fails again much later is waited for again`() throws {
        device.close()
        let note = device.directory + "/stores.unreadable"
        try "5".write(toFile: note, atomically: true, encoding: .utf8)
        try device.reopen()
        #expect(!FileManager.default.fileExists(atPath: note))
    }

    @Test func `a salvage finds no account's row, and keeps what was pending for the account that is known`() throws {
        _ = try device.database.enter(account: "A", bringingValues: false)
        try device.database.progress.completeDownload(cursor: [1])
        try device.write([("k", .integer(1))])
        device.close()
        try device.sql("DELETE FROM account")
        let report = try ClosedDatabase(in: device.directory).setAside(at: device.clock.time, account: "A")
        #expect(report.salvagedValues == 1)
    }

    @Test func `what is in the log and not yet in the file is saved as well`() throws {
        try device.write([("k", .integer(1))])
        let copy = device.root + "/copy"
        try FileManager.default.copyItem(atPath: device.directory, toPath: copy)
        #expect(FileManager.default.fileExists(atPath: copy + "/stores.sqlite-wal"))
        #expect(try ClosedDatabase(in: copy).setAside(at: device.clock.time).salvagedValues == 1)
    }

    @Test func `around a page that can't be read the rest is read`() throws {
        let values = (0..<2000).map { ("k\($0)", Value.string(Text("value \($0)"))) }
        let roomy = try Device(limits: Limits(keys: 5000))
        try roomy.write(values)
        roomy.close()
        let file = URL(filePath: roomy.file)
        let intact = [UInt8](try Data(contentsOf: file))
        // A leaf page of a table begins with 0x0D, and has its number of rows three bytes on.
        func rows(_ page: Int) -> Int { Int(intact[page + 3]) * 256 + Int(intact[page + 4]) }
        let pages = Array(stride(from: 4096, to: intact.count, by: 4096))
        let leaves: [Int] = pages.filter { intact[$0] == 0x0D && rows($0) > 10 }
        try #require(leaves.count > 12)
        let lost: [Int] = [leaves[2], leaves[3], leaves[8]]
        var damaged = intact
        for leaf in lost { for index in leaf..<(leaf + 8) { damaged[index] = 0xFF } }
        try Data(damaged).write(to: file)
        let report = try ClosedDatabase(in: roomy.directory).setAside(at: roomy.clock.time)
        let rowsLost = lost.map(rows).reduce(0, +)
        #expect(report.salvagedValues >= 2000 - rowsLost - 6 && report.salvagedValues < 2000)
        try roomy.reopen()
        let store = try roomy.store()
        #expect(store.values.count == report.salvagedValues)
        #expect(store.values.allSatisfy { $1 == .string(Text("value \($0.string.dropFirst())")) })
    }

    @Test(arguments: [0.25, 0.5, 0.75, 0.9])
    func `of a file that was cut short every row that SQLite still reads is saved`(part: Double) throws {
        for round in 0..<8 {
            try device.write((0..<100).map { ("k\(round * 100 + $0)", .string(Text("value \($0)"))) }, to: "one")
            try device.write([("k\(round)", .string("value"))], to: "two")
        }
        device.close()
        let intact = try bytes()
        let cut = Int(Double(intact.count) * part) / 2048 * 2048
        try put(Array(intact.prefix(cut)))
        // The number of rows that SQLite can read, one by one.
        let readable = (1...2).flatMap { replica in
            (1...800).filter { sequence in
                let row = try? device.sql(
                    "PRAGMA writable_schema = ON; SELECT value FROM change WHERE id = \(replica << 40 | sequence)")
                return row?.isEmpty == false
            }
        }.count
        let report = try ClosedDatabase(in: device.directory).setAside(at: device.clock.time)
        #expect(report.salvagedValues == readable && (part < 0.75 || readable > 300), "\(readable)")
        try device.reopen()
        #expect(try device.store("one").values.count + device.store("two").values.count == readable)
    }

    @Test(arguments: ["empty", "gone", "gone with its log"])
    func `a database that is empty or gone is damage where there was one`(damage: String) throws {
        try device.write([("k", .integer(1))])
        let generation = try device.store().generation
        device.close()
        if damage == "empty" {
            try put([])
        } else {
            for suffix in damage == "gone" ? [""] : ["", "-wal", "-shm"] {
                try? FileManager.default.removeItem(atPath: device.file + suffix)
            }
        }
        let error = #expect(throws: EngineError.self) { _ = try device.open() }
        guard case .corrupt = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        device.clock.time += Clock.day
        let report = try ClosedDatabase(in: device.directory).setAside(at: device.clock.time, account: "A")
        #expect(report.salvagedValues == 0 && (report.fileName != nil) == (damage == "empty"))
        try device.reopen()
        #expect(device.database.isAwaitingRemote)
        #expect(try device.store().generation > generation)
        try device.reopen()
    }

    @Test func `a database whose making was cut short is made anew`() throws {
        device.close()
        removeFiles()
        try put([])
        try device.reopen()
        try device.write([("k", .integer(1))])
        try device.reopen()
        #expect(try device.store().value(for: key("k")) == .integer(1))
    }

    @Test func `a clock behind the old generations does not bring them back`() throws {
        try device.write([("k", .integer(1))])
        let generation = try device.store().generation
        device.close()
        device.clock.time = 1_000_000
        _ = try ClosedDatabase(in: device.directory).setAside(at: device.clock.time)
        try device.reopen()
        #expect(try device.store().generation > generation)
        #expect(try device.store("new").generation > generation)
    }

    @Test func `what is refused because the files were moved away is not in them when they are back`() throws {
        try device.write([("k", .integer(1))])
        try FileManager.default.moveItem(atPath: device.directory, toPath: device.directory + ".away")
        #expect(throws: EngineError.self) { try device.write([("k", .integer(2))]) }
        #expect(throws: EngineError.self) { try device.database.noteGarbageCollection() }
        device.close()
        try FileManager.default.moveItem(atPath: device.directory + ".away", toPath: device.directory)
        try device.reopen()
        #expect(try device.store().value(for: key("k")) == .integer(1))
    }

    @Test func `a crash between the renames is finished at the next start`() throws {
        try device.write([("k", .integer(1))])
        device.close()
        // The files after the damaged one was renamed, and before its log and the new one were.
        _ = try ClosedDatabase(in: device.directory).setAside(at: device.clock.time)
        try FileManager.default.moveItem(atPath: device.file, toPath: device.file + ".new")
        try Data([UInt8](repeating: 7, count: 5000)).write(to: URL(filePath: device.file + "-wal"))
        try device.reopen()
        #expect(try device.store().value(for: key("k")) == .integer(1))
        // If the crash came before that, a half-written new database does no harm.
        device.close()
        try Data("half".utf8).write(to: URL(filePath: device.file + ".new"))
        try device.reopen()
        #expect(try device.store().value(for: key("k")) == .integer(1))
        device.close()
        #expect(try ClosedDatabase(in: device.directory).setAside(at: device.clock.time).salvagedValues == 1)
    }
}
