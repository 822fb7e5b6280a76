// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import Replication
import StoreEngine
import Testing

@Suite struct ReopeningTests {
    @Test func `memory that is given back in between changes nothing`() throws {
        let device = try Device()
        let store = try device.store()
        try device.write([("a", .integer(1)), ("b", .integer(1))])
        device.database.releaseMemory()
        try device.write([("b", .integer(2))], removing: ["a"])
        device.database.releaseMemory()
        #expect(try device.database.storeIdentifiers() == ["app"])
        let before = Picture(store)
        try device.reopen()
        #expect(try Picture(device.store()) == before)
    }

    @Test func `everything is as it was`() throws {
        let device = try Device()
        _ = try device.database.enter(account: "A", bringingValues: false)
        try device.write([("early", .integer(1))])
        let store = try device.store(local: ["local*"])
        var stranger = Stranger()
        try device.join(
            stranger.plan(["theirs": stranger.entry(.string("s")), "gone": stranger.entry(nil)], in: store),
            cause: .downloaded
        )
        try device.database.progress.completeDownload(cursor: [7])
        try device.write([
            ("b", .boolean(true)), ("i", .integer(-5)), ("r", .real(-0.0)), ("s", .string("e\u{301}")),
            ("d", .data([0, 1, 2])), ("date", .date(1.5)), ("a", .array([.dictionary(["": .array([])])])),
            ("local1", .integer(1)), ("theirs", .integer(3)), ("gone", .integer(4)),
        ])
        try device.database.progress.markPublished(["app": store.snapshot().sequence], under: device.database.origin)
        try device.write([("i", .integer(6))], removing: ["s", "local1"])
        try device.join(stranger.plan(["new": stranger.entry(.integer(1))], dropping: ["d"], in: store))
        let before = Picture(store)
        let vector = store.vector
        let stores = try device.database.progress.publishedStores()
        #expect(before.pending == 2)
        #expect(try device.database.summaries.pendingChanges() == 2)

        try device.reopen()
        let again = try device.store(local: ["local*"])
        #expect(Picture(again) == before)
        #expect(again.vector == vector)
        #expect(try device.database.progress.publishedStores() == stores)
        #expect(try device.database.summaries.pendingChanges() == 2)
        #expect(device.database.account.identifier == "A" && device.database.account.cursor == [7])
        #expect(try device.database.storeIdentifiers() == ["app"])
        #expect(store !== again)
    }

    @Test func `an acknowledgement holds for what was uploaded, and not for what was written meanwhile`() throws {
        let device = try Device()
        _ = try device.database.enter(account: "A", bringingValues: false)
        try device.database.progress.completeDownload(cursor: [1])
        let store = try device.store()
        try device.write([("a", .integer(1)), ("b", .integer(1))])
        let uploaded = store.snapshot()
        try device.write([("b", .integer(2))])
        #expect(uploaded.state.entries[key("b")]?.value == Value.integer(1).encoded())
        try device.database.progress.markPublished(["app": uploaded.sequence], under: device.database.origin)
        #expect(store.pendingChanges == 1)
        #expect(try device.database.summaries.pendingChanges() == 1)
        try device.database.progress.markPublished(["app": 1], under: device.database.origin)
        #expect(store.pendingChanges == 1)
        // An acknowledgement from before the store was forgotten counts more changes than there are now.
        try device.database.progress.markPublished(["app": 1000], under: device.database.origin)
        try device.write([("c", .integer(1))])
        #expect(store.pendingChanges == 1)
        try device.reopen()
        #expect(try device.store().pendingChanges == 1)
        #expect(try device.database.summaries.pendingChanges() == 1)
    }

    @Test func `a database that is closed is one file, and may be opened elsewhere`() throws {
        let device = try Device()
        try device.write([("k", .integer(1))])
        #expect(FileManager.default.fileExists(atPath: device.file + "-wal"))
        device.close()
        #expect(!FileManager.default.fileExists(atPath: device.file + "-wal"))
        #expect(throws: EngineError.self) { try device.write([("k", .integer(2))]) }
    }

    @Test func `writes that never pause do not make the log grow without end`() throws {
        let device = try Device()
        /// Returns the numbers in the log's header that SQLite changes whenever the log begins anew; none of an empty one.
        func beginning() throws -> [UInt8] {
            let log = try #require(FileHandle(forReadingAtPath: device.file + "-wal"))
            return Array((try log.read(upToCount: 24) ?? Data()).dropFirst(12))
        }
        try device.write([("k", .integer(0))])
        let first = try beginning()
        // 160 writes fill 16 MiB, and the checkpoint takes a while.
        for count in 1..<3000 {
            do {
                try device.write([("k", .data([UInt8](repeating: UInt8(count % 256), count: 100_000)))])
            } catch EngineError.storage {
                // Writes are refused while a busy disk is far behind.
                usleep(20_000)
            }
            if try beginning() != first { return }
        }
        Issue.record("the log was never begun anew")
    }

    /// A child process writes, records what was committed, and is killed at some moment.
    @Test(arguments: 0..<6)
    func `every write that was acknowledged survives a kill`(round: Int) async throws {
        let root = NSTemporaryDirectory() + "store-engine-kill-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: root) }
        let notes = root + "/notes"
        await #expect(processExitsWith: .signal(SIGKILL)) {
            [root = root as String, notes = notes as String, round = round as Int] in
            let device = try Device(root: root)
            try Data().write(to: URL(filePath: notes))
            let file = try #require(FileHandle(forWritingAtPath: notes))
            for count in 1... {
                try device.write([("k\(count % 50)", .integer(Int64(count))), ("last", .integer(Int64(count)))])
                try file.write(contentsOf: Data("\(count)\n".utf8))
                // After the first write, because a busy machine may take longer to get here than until the kill.
                guard count == 1 else { continue }
                Thread.detachNewThread {
                    usleep(UInt32(1000 + round * 13_000))
                    kill(getpid(), SIGKILL)
                }
            }
        }
        let acknowledged = try String(contentsOfFile: notes, encoding: .utf8).split(separator: "\n").compactMap {
            Int($0)
        }
        let last = try #require(acknowledged.last)
        let device = try Device(root: root)
        let store = try device.store()
        guard case .integer(let found) = try #require(store.value(for: key("last"))) else {
            Issue.record("another value")
            return
        }
        #expect(found >= last && found <= last + 1)
        for count in max(1, Int(found) - 49)...Int(found) {
            #expect(store.value(for: key("k\(count % 50)")) == .integer(Int64(count)))
        }
    }
}
