// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import Replication
import StoreEngine
import Testing

@Suite struct WriteTests {
    let device: Device
    let store: Store

    init() throws {
        device = try Device()
        store = try device.store()
    }

    private var rows: Int {
        get throws { Int(try device.sql("SELECT count(*) FROM change")[0][0]) ?? -1 }
    }

    @Test func `writing the value that is there takes no generation, stamp or row`() throws {
        try device.write([("k", .string("v"))])
        let before = Picture(store)
        device.clock.time += 5_000_000
        #expect(try device.write([("k", .string("v"))]).isEmpty)
        #expect(Picture(store) == before)
        #expect(try rows == 1)
    }

    @Test func `removing an absent key and an empty call do nothing`() throws {
        try device.write([("k", .integer(1))])
        let before = Picture(store)
        #expect(try device.write(removing: ["other"]).isEmpty)
        #expect(try device.write().isEmpty)
        try device.write(removing: ["k"])
        let removed = Picture(store)
        #expect(removed != before)
        try device.write(removing: ["k"])
        #expect(Picture(store) == removed)
    }

    @Test func `one, one point zero and true replace each other`() throws {
        for value in [Value.integer(1), .real(1), .boolean(true), .date(1), .string("1"), .data([49])] {
            let generation = store.generation
            #expect(try device.write([("k", value)]) == ["k"])
            #expect(store.generation == generation + 1)
            #expect(store.value(for: key("k")) == value)
        }
    }

    @Test func `a call is one generation, whatever it sets and removes`() throws {
        try device.write([("a", .integer(1)), ("b", .integer(1)), ("c", .integer(1))])
        let generation = store.generation
        let changed = try device.write(
            [("a", .integer(2)), ("b", .integer(1)), ("d", .integer(4))],
            removing: ["c", "x"]
        )
        #expect(Set(changed) == ["a", "d", "c"])
        #expect(store.generation == generation + 1)
        #expect(
            store.changes(since: generation)
                == [key("a"): Value?.some(.integer(2)), key("d"): Value?.some(.integer(4)), key("c"): Value?.none]
        )
    }

    @Test func `calls that commit together have a generation each`() throws {
        let generation = store.generation
        try store.stage(setting: [(key("a"), .integer(1))], removing: [])
        try store.stage(setting: [(key("a"), .integer(2))], removing: [])
        try device.database.commit()
        #expect(store.generation == generation + 2)
        try device.reopen()
        #expect(try device.store().generation == generation + 2)
        #expect(try device.store().value(for: key("a")) == .integer(2))
    }

    @Test func `a write that expects another generation is refused`() throws {
        try device.write([("k", .integer(1))])
        let before = Picture(store)
        #expect(throws: EngineError.conflict(generation: before.generation)) {
            try store.stage(
                setting: [(key("k"), .integer(2))],
                removing: [],
                ifGeneration: before.generation - 1
            )
        }
        #expect(Picture(store) == before)
        try store.stage(setting: [(key("k"), .integer(2))], removing: [], ifGeneration: before.generation)
        try device.database.commit()
        #expect(store.value(for: key("k")) == .integer(2))
    }

    @Test func `what breaks the rules of a key or a value is not staged`() throws {
        let before = Picture(store)
        var deep = Value.array([])
        for _ in 0..<16 { deep = .array([deep]) }
        #expect(throws: EngineError.value(key("k"), .tooDeep(limit: 16))) { try device.write([("k", deep)]) }
        #expect(throws: EngineError.value(key("k"), .containsNUL)) { try device.write([("k", .string("\0"))]) }
        #expect(throws: EngineError.value(key("k"), .containsNoncharacter)) {
            try device.write([("k", .string("\u{FFFF}"))])
        }
        #expect(throws: EngineError.value(key("k"), .dateNotFinite)) { try device.write([("k", .date(.infinity))]) }
        #expect(throws: EngineError.key(.empty)) { try device.write([("a", .integer(1)), ("", .integer(1))]) }
        #expect(!device.database.hasStagedChanges)
        #expect(Picture(store) == before)
    }

    @Test func `canonically equivalent keys are two`() throws {
        try device.write([("\u{E9}", .integer(1)), ("e\u{301}", .integer(2))])
        try device.reopen()
        #expect(try device.store().values == [key("\u{E9}"): .integer(1), key("e\u{301}"): .integer(2)])
    }

    // MARK: Failing commits

    /// Makes writes of rows with the key fail from now on.
    private func refuse(_ key: String) throws {
        try device.sql(
            """
            CREATE TRIGGER refusal BEFORE INSERT ON change WHEN CAST(new.key AS TEXT) = '\(key)'
                BEGIN SELECT RAISE(ABORT, 'refused'); END
            """
        )
    }

    @Test func `a commit that fails takes everything of the call back`() throws {
        try device.write([("a", .integer(1)), ("b", .integer(1))])
        let before = Picture(store)
        try refuse("z")
        #expect(throws: EngineError.self) {
            try device.write([("a", .integer(2)), ("n", .integer(3)), ("z", .integer(1))], removing: ["b"])
        }
        #expect(Picture(store) == before)
        #expect(!device.database.hasStagedChanges)
        try device.write([("a", .integer(5))])
        let after = Picture(store)
        try device.reopen()
        #expect(Picture(try device.store()) == after)
        #expect(after.state.entries[key("a")]?.n == before.sequence + 1)
    }

    @Test func `a failed commit of several stores takes all of them back, the new ones too`() throws {
        try device.write([("k", .integer(1))])
        let other = try device.store("other")
        let (before, otherBefore) = (Picture(store), Picture(other))
        try refuse("z")
        try store.stage(setting: [(key("k"), .integer(2))], removing: [])
        try other.stage(setting: [(key("k"), .integer(2))], removing: [])
        try store.stage(setting: [(key("k"), .integer(3)), (key("z"), .integer(3))], removing: [])
        #expect(throws: EngineError.self) { try device.database.commit() }
        #expect(Picture(store) == before)
        #expect(Picture(other) == otherBefore)

        try device.write([("k", .integer(9))], to: "other")
        try device.reopen()
        #expect(try device.store("other").values == [key("k"): .integer(9)])
        #expect(Picture(try device.store()) == before)
    }

    @Test func `a failed commit of a join takes its vector and its arrival back`() throws {
        _ = try device.database.enter(account: "A", bringingValues: false)
        try device.write([("k", .integer(1))])
        let before = Picture(store)
        var stranger = Stranger()
        let plan = stranger.plan(["k": stranger.entry(.integer(2)), "z": stranger.entry(.integer(2))], in: store)
        try refuse("z")
        #expect(throws: EngineError.self) { try device.join(plan, cause: .downloaded) }
        #expect(Picture(store) == before)
        try device.sql("DROP TRIGGER refusal")
        try device.join(plan, cause: .downloaded)
        #expect(store.isDownloaded)
        #expect(store.vector.contains(Dot(origin: stranger.origin, n: 2)))
    }

    @Test func `a join that changes nothing leaves nothing behind to take back`() throws {
        _ = try device.database.enter(account: "A", bringingValues: false)
        try device.write([("k", .integer(1))])
        try device.join(Stranger().plan(in: store))
        try device.join(Stranger().plan(in: store), cause: .downloaded)
        try device.join(Stranger().plan(in: store))
        try device.write([("k", .integer(2))])
        let before = Picture(store)
        try refuse("k")
        #expect(throws: EngineError.self) { try device.write([("k", .integer(3))]) }
        #expect(Picture(store) == before)
    }

    @Test func `a store that nobody holds is let go, after a join without news too`() throws {
        weak var gone: Store?
        do {
            let other = try device.store("other")
            gone = other
            try device.join(Stranger().plan(in: other), to: "other")
        }
        #expect(gone == nil)
    }

    @Test func `another connection that keeps the lock makes the commit fail and nothing else`() throws {
        try device.write([("k", .integer(1))])
        let before = Picture(store)
        // The engine's connection waits five seconds for a lock.
        let locker = Process()
        locker.executableURL = URL(filePath: "/usr/bin/env")
        locker.arguments = [
            "python3", "-c",
            """
            import sqlite3, sys
            c = sqlite3.connect(sys.argv[1], isolation_level=None)
            c.execute('BEGIN IMMEDIATE'); print('locked', flush=True); sys.stdin.read()
            """, device.file,
        ]
        let (input, output) = (Pipe(), Pipe())
        locker.standardInput = input
        locker.standardOutput = output
        try locker.run()
        #expect(output.fileHandleForReading.availableData.count > 0)
        #expect(throws: EngineError.self) { try device.write([("k", .integer(2)), ("l", .integer(2))]) }
        #expect(Picture(store) == before)
        // The test waits neither for the end of the process's pipe nor for its exit, because programs of other tests
        // may have inherited the descriptors that show them. The next write waits for the lock.
        kill(locker.processIdentifier, SIGKILL)
        try device.write([("k", .integer(3))])
        try device.reopen()
        #expect(try device.store().values == [key("k"): .integer(3)])
    }

    @Test(.enabled(if: getuid() == 0, "mounting needs root"))
    func `a full disk fails the write, and what was there stays`() throws {
        try withSmallDisk { root in
            let small = try Device(root: root)
            let store = try small.store()
            try small.write([("k", .integer(1))])
            var last = Picture(store)
            let failure = #expect(throws: EngineError.self) {
                for index in 0..<100 {
                    try small.write([("k\(index)", .data([UInt8](repeating: UInt8(index), count: 50_000)))])
                    last = Picture(store)
                }
            }
            #expect(failure == .diskFull)
            #expect(Picture(store) == last)
            try small.reopen()
            #expect(Picture(try small.store()) == last)
            small.close()
        }
    }

    @Test(.enabled(if: getuid() == 0, "mounting needs root"))
    func `what was written can be read where others have filled the disk before the start`() throws {
        try withSmallDisk { root in
            let small = try Device(root: root)
            try small.write([("k", .integer(1))])
            let last = Picture(try small.store())
            // Closing the database leaves no room that only the log had.
            small.close()
            let others = try Self.fill(root)
            try small.reopen()
            #expect(Picture(try small.store()) == last)
            #expect(throws: EngineError.diskFull) {
                for number in 0..<100 { try small.write([("k", .data([UInt8](repeating: 0, count: number * 1000)))]) }
            }
            #expect(Picture(try small.store()).values.count == 1)
            try FileManager.default.removeItem(atPath: others)
            try small.write([("k", .integer(2))])
            small.close()
        }
    }

    @Test(.enabled(if: getuid() == 0, "mounting needs root"))
    func `a disk that is too full for a new database is said to be full`() throws {
        for free in stride(from: 0, through: 320_000, by: 16_000) {
            try withSmallDisk { root in
                try Data(count: 1 << 20 - free).write(to: URL(filePath: root + "/others"))
                do {
                    let small = try Device(root: root)
                    defer { small.close() }
                    try small.write([("k", .integer(1))])
                } catch {
                    #expect(error as? EngineError == .diskFull, "\(free) bytes are free: \(error)")
                }
            }
        }
    }

    /// Writes a file that takes all that is left.
    private static func fill(_ root: String) throws -> String {
        let path = root + "/others"
        let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        defer { close(file) }
        for size in [4096, 1] {
            let bytes = [UInt8](repeating: 1, count: size)
            while Glibc.write(file, bytes, size) > 0 {}
        }
        return path
    }

    private func withSmallDisk(_ body: (_ root: String) throws -> Void) throws {
        let root = NSTemporaryDirectory() + "store-engine-full-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        try #require(shell("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", root))
        defer {
            _ = shell("umount", "-l", root)
            try? FileManager.default.removeItem(atPath: root)
        }
        try body(root)
    }

    private func shell(_ words: String...) -> Bool {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = words
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}
