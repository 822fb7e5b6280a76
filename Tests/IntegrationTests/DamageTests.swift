// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// Damaged databases and full disks.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct DamageTests {
    private func directory(_ machine: Machine, _ client: BusClient) -> String {
        "\(machine.device.stateDirectory)/u\(client.uid)"
    }

    /// Returns the names of the database's files.
    private func files(_ machine: Machine, _ client: BusClient) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory(machine, client)).sorted()
    }

    private func write(_ bytes: [UInt8], at offset: Int, of path: String) {
        let descriptor = open(path, O_WRONLY)
        pwrite(descriptor, bytes, bytes.count, off_t(offset))
        close(descriptor)
    }

    private enum Damage: String, CaseIterable {
        case header, schema, middle, everything, truncated, empty, page
    }

    private func damage(_ path: String, _ damage: Damage) {
        let size = Int((try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0)
        let garbage = [UInt8](repeating: 0xa5, count: 4096)
        switch damage {
        case .header: write(Array(garbage[..<100]), at: 0, of: path)
        case .schema: write(Array(garbage[..<3900]), at: 100, of: path)
        case .middle: write(garbage, at: size / 2 / 4096 * 4096, of: path)
        case .everything: for page in 0..<(size / 4096) { write(garbage, at: page * 4096, of: path) }
        case .truncated: truncate(path, off_t(size / 2 / 4096 * 4096))
        case .empty: truncate(path, 0)
        case .page: write(garbage, at: 4096, of: path)
        }
    }

    @Test(arguments: Damage.allCases)
    private func `a database that was damaged while the service was off is set aside, and the service goes on`(
        damage: Damage
    ) async throws {
        try await withMachine { machine in
            let store = try machine.store()
            for number in 0..<200 {
                try await store.set("key \(number)", .string(Text("\(secret) \(String(repeating: "x", count: 200))")))
            }
            let generation = try await store.generation()
            try await machine.device.stop()
            self.damage(directory(machine, store.client) + "/stores.sqlite", damage)
            try await machine.device.start()
            // Salvaged values are intact; how many there are depends on the damage.
            let values = try await store.everything()
            #expect(values.allSatisfy { $0.value == .string(Text("\(secret) \(String(repeating: "x", count: 200))")) })
            #expect(try await store.set("new", .integer(1)) > generation)
            #expect(try await store.value("new") == .integer(1))
            let log = machine.device.log
            #expect(
                try files(machine, store.client).contains { $0.hasPrefix("stores.sqlite.damaged-") }
                    || values.count == 200
            )
            #expect(log.contains("was set aside as stores.sqlite.damaged-") || values.count == 200, "\(log)")
            try await machine.device.restart()
            #expect(try await store.value("new") == .integer(1))
            #expect(try await store.everything().count == values.count + 1)
        }
    }

    @Test(arguments: [Damage.header, .everything, .page, .middle])
    private func `a database that is damaged under the running service loses no more than it must`(damage: Damage)
        async throws
    {
        try await withMachine { machine in
            let store = try machine.store()
            for number in 0..<200 { try await store.set("key \(number)", .integer(Int64(number))) }
            let path = directory(machine, store.client) + "/stores.sqlite"
            // Restarts the service, so that the log's contents are in the file before it is damaged.
            try await machine.device.stop()
            try await machine.device.start()
            _ = try await store.everything()
            self.damage(path, damage)
            var names: Set<String> = []
            for number in 0..<50 {
                names.insert(await errorName { try await store.set("new", .integer(Int64(number))) })
            }
            #expect(names.isSubset(of: ["", "Corrupt", "IOError"]), "\(names)")
            try await eventually("it is written again") {
                await errorName { try await store.set("new", .integer(99)) } == ""
            }
            // If the file is lost, later writes to its log are lost too.
            try await machine.device.restart()
            #expect(["", "NoSuchKey"].contains(await errorName { _ = try await store.value("new") }))
            try await store.set("new", .integer(100))
            #expect(try await store.value("new") == .integer(100))
        }
    }

    @Test func `a database of a newer version is refused and not touched`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            try await store.set("key", .integer(1))
            try await machine.device.stop()
            let path = directory(machine, store.client) + "/stores.sqlite"
            let migrated = try await run([
                "python3", "-c",
                """
                import sqlite3, sys
                db = sqlite3.connect(sys.argv[1])
                db.execute("INSERT INTO grdb_migrations VALUES ('v99')")
                db.execute("PRAGMA user_version = 99")
                db.commit()
                """, path,
            ])
            try #require(migrated.exit == .code(0), "\(migrated)")
            chown(path, Users.service ?? geteuid(), gid_t.max)
            let before = FileManager.default.contents(atPath: path)
            try await machine.device.start()
            let error = await failure { _ = try await store.value("key") }
            #expect(
                error?.name.hasSuffix(".Corrupt") == true && error?.message.contains("newer") == true,
                "\(String(describing: error))"
            )
            #expect(await errorName { try await store.set("key", .integer(2)) } == "Corrupt")
            try await machine.device.stop()
            #expect(FileManager.default.contents(atPath: path) == before)
            #expect(try files(machine, store.client).contains { $0.contains("damaged") } == false)
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `a full disk is an error, nothing half is done, and with space it goes on`() async throws {
        let place = try TemporaryDirectory()
        let disk = try place.mountSmallDisk("disk", bytes: 3 << 20, owner: Users.service)
        try await withMachine {
            $0.stateDirectory = disk
        } _: { machine in
            let store = try machine.store()
            var expected: [Text: Value] = [:]
            func set(_ key: String, _ value: Value) async -> String {
                let name = await errorName { try await store.set(key, value) }
                if name.isEmpty { expected[Text(key)] = value }
                return name
            }
            _ = await set("first", .string(Text(secret)))
            // Others fill the disk. The log and the database have some room left.
            let filled = try await run(["sh", "-c", "head -c 3M /dev/zero > \(disk)/others 2>&-; true"])
            try #require(filled.exit == .code(0))
            var name = ""
            for round in 0..<200 where name.isEmpty {
                name = await set("key \(round % 10)", .data([UInt8](repeating: UInt8(round), count: 60_000)))
            }
            let generation = try await store.generation()
            #expect(name == "IOError")
            let error = await failure {
                try await store.apply(["a": .integer(1), "b": .data([UInt8](repeating: 1, count: 90_000))])
            }
            #expect(error?.name == "org.freedesktop.DBus.Error.IOError")
            #expect(error?.message.contains("no space left") == true, "\(String(describing: error))")
            #expect(try await store.everything() == expected)
            #expect(try await store.generation() == generation)
            #expect(try await run(["mount", "-o", "remount,size=64m", disk]).exit == .code(0))
            try await eventually("it writes again") { await set("after", .integer(1)).isEmpty }
            #expect(try await store.everything() == expected)
            try await machine.device.restart()
            #expect(try await store.everything() == expected)
        }
        withExtendedLifetime(place) {}
    }

    @Test(arguments: ["file", "directory", "everything"])
    func `what is removed under the running service takes no write that was acknowledged along`(what: String)
        async throws
    {
        try await withMachine { machine in
            let store = try machine.store()
            try await store.set("before", .integer(1))
            let removed =
                switch what {
                case "file": [directory(machine, store.client) + "/stores.sqlite"]
                case "directory": [directory(machine, store.client)]
                default:
                    try FileManager.default.contentsOfDirectory(atPath: machine.device.stateDirectory)
                        .filter { $0 != "lock" }.map { machine.device.stateDirectory + "/" + $0 }
                }
            for path in removed { try FileManager.default.removeItem(atPath: path) }
            #expect(await errorName { try await store.set("lost", .integer(1)) } == "Corrupt")
            try await store.set("after", .integer(2))
            #expect(try await store.everything() == ["after": .integer(2)])
            #expect(machine.device.log.contains("replaced or removed while it was open"))
            try await machine.device.restart()
            #expect(try await store.everything() == ["after": .integer(2)])
        }
    }

    @Test func `a database that is replaced under the running service is gone on with`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            try await store.set("backup", .integer(1))
            try await machine.device.stop()
            let path = directory(machine, store.client)
            try FileManager.default.copyItem(atPath: path, toPath: path + "-backup")
            try await machine.device.start()
            let known = try await store.set("backup", .integer(2))
            let reader = try machine.store()
            try await reader.subscribe()
            // As after `mv` or `cp -a`, with the old database's log still there.
            try FileManager.default.removeItem(atPath: path + "/stores.sqlite")
            try FileManager.default.moveItem(atPath: path + "-backup/stores.sqlite", toPath: path + "/stores.sqlite")
            chown(path + "/stores.sqlite", Users.service ?? geteuid(), gid_t.max)
            #expect(await errorName { try await store.set("lost", .integer(1)) } == "Corrupt")
            #expect(try await store.everything() == ["backup": .integer(1)])
            // A program that knows later generations is told, and would not take the new ones for old.
            try await eventually("the reader is told") { reader.received.first?.keys == ["backup"] }
            #expect(reader.received.first.map { $0.generation > known } == true)
            #expect(try await store.set("after", .integer(2)) > known)
            try await machine.device.restart()
            #expect(try await store.everything() == ["backup": .integer(1), "after": .integer(2)])
            #expect(try files(machine, store.client).contains { $0.contains("damaged") } == false)
        }
    }

    @Test func `a database that can't be replaced at first is replaced by a later call`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            try await store.set("before", .integer(1))
            let path = directory(machine, store.client) + "/stores.sqlite"
            // A new database can't be made, as on a full disk.
            try FileManager.default.removeItem(atPath: path)
            try FileManager.default.createDirectory(atPath: path + "/x", withIntermediateDirectories: true)
            for _ in 0..<3 { #expect(await errorName { try await store.set("lost", .integer(1)) } == "Corrupt") }
            #expect(try await store.value("before") == .integer(1))
            try FileManager.default.removeItem(atPath: path)
            try await eventually("it is replaced") {
                await errorName { try await store.set("after", .integer(2)) } == ""
            }
            try await machine.device.restart()
            #expect(try await store.everything() == ["after": .integer(2)])
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `a disk that is full at the start is an error of the calls, and the service goes on when there is space`()
        async throws
    {
        let place = try TemporaryDirectory()
        let disk = try place.mountSmallDisk("disk", bytes: 1 << 20, owner: Users.service)
        try await withMachine(started: false) {
            $0.stateDirectory = disk
        } _: { machine in
            let filler = disk + "/filler"
            try "".write(toFile: disk + "/lock", atomically: false, encoding: .utf8)
            chown(disk + "/lock", Users.service ?? 0, gid_t.max)
            _ = try await run(["dd", "if=/dev/zero", "of=\(filler)", "bs=4096"])
            try await machine.device.start()
            let store = try machine.store()
            #expect(await errorName { try await store.set("key", .integer(1)) } == "IOError")
            unlink(filler)
            try await store.set("key", .integer(1))
            #expect(try await store.value("key") == .integer(1))
            // What users with little may still write is no more than there is.
            _ = try await run(["dd", "if=/dev/zero", "of=\(filler)", "bs=4096"])
            let free = try await store.client.property(
                BusNames.accountPath(uid: store.client.uid), BusNames.accountInterface, "FreeBytes")
            guard case .integer(..<100_000) = free else { throw BusError.failed("the disk has room: \(free)") }
        }
        withExtendedLifetime(place) {}
    }

    @Test func `the user's name is kept, and a uid that is somebody else's now finds nothing`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            try await store.set("key", .string(Text(secret)))
            try await machine.device.stop()
            let file = directory(machine, store.client) + "/user"
            try "predecessor".write(toFile: file, atomically: false, encoding: .utf8)
            try await machine.device.start()
            #expect(try await store.everything().isEmpty)
            #expect(machine.device.log.contains("predecessor"))
            let names = try FileManager.default.contentsOfDirectory(atPath: machine.device.stateDirectory)
            #expect(names.contains { $0.hasPrefix("u\(store.client.uid).predecessor.") }, "\(names)")
        }
    }
}
