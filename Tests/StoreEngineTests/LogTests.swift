// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import Replication
import StoreEngine
import Synchronization
import Testing

/// The size of the write-ahead log.
@Suite struct LogTests {
    @Test func `the log stays short, whatever is written`() throws {
        let directory = NSTemporaryDirectory() + "log-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var environment = Clock().environment
        environment.disk = Disk(run: { $0() }, synchronize: Disk.system.synchronize)
        let database = try UserDatabase(in: directory, runtimeDirectory: nil, environment: environment)
        defer { database.close() }
        _ = try database.enter(account: "A", bringingValues: false)
        var longest = 0
        for number in 0..<200 {
            // A poll that finds something stores a cursor, and writes no change.
            try database.progress.completeDownload(cursor: [UInt8](repeating: UInt8(number), count: 100_000))
            let log = try FileManager.default.attributesOfItem(atPath: directory + "/stores.sqlite-wal")
            longest = max(longest, try #require(log[.size] as? Int))
        }
        #expect(longest > 4 << 20 && longest < 5 << 20, "\(longest)")
    }

    @Test func `what a long or a failed transaction has written leaves no long log`() throws {
        let directory = NSTemporaryDirectory() + "log-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var environment = Clock().environment
        environment.disk = Disk(run: { $0() }, synchronize: Disk.system.synchronize)
        environment.disk.quickCheckpoint = .seconds(3600)
        let database = try UserDatabase(in: directory, runtimeDirectory: nil, environment: environment)
        defer { database.close() }
        func logSize() throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: directory + "/stores.sqlite-wal")[.size] as? Int
        }
        _ = try database.enter(account: "A", bringingValues: false)
        try database.progress.completeDownload(cursor: [UInt8](repeating: 1, count: 6 << 20))
        #expect(try logSize() == 0)
        try database.space.bound(fileSize: 16 << 20)
        #expect(throws: EngineError.diskFull) {
            try database.progress.completeDownload(cursor: [UInt8](repeating: 2, count: 30 << 20))
        }
        #expect(try logSize() == 0)
        #expect(database.account.cursor?.count == 6 << 20)
        try database.progress.completeDownload(cursor: [3])
        #expect(database.account.cursor == [3])
    }

    @Test func `each call syncs the log and its directory anew`() async throws {
        let directory = NSTemporaryDirectory() + "log-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let synced = Mutex<[String]>([])
        var environment = Clock().environment
        environment.disk = Disk(
            run: nil,
            synchronize: { descriptor, path in
                synced.withLock { $0.append(path) }
                return Disk.system.synchronize(descriptor, path)
            })
        let database = try UserDatabase(in: directory, runtimeDirectory: nil, environment: environment)
        defer { database.close() }
        for number in 1...2 {
            try database.store("app").stage(setting: [(key("k"), .integer(Int64(number)))], removing: [])
            try database.commit()
            try await database.synchronize()
            #expect(synced.withLock(\.self).suffix(2) == [directory + "/stores.sqlite-wal", directory])
            #expect(synced.withLock(\.count) == 2 * number)
        }
    }

    @Test func `after the disk has failed, what is committed is durable in the database, not in the log`() async throws
    {
        let directory = NSTemporaryDirectory() + "log-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let fails = Mutex(true)
        var environment = Clock().environment
        environment.disk = Disk(
            run: nil,
            synchronize: { descriptor, path in
                guard fails.withLock({ $0 }) else { return Disk.system.synchronize(descriptor, path) }
                errno = EIO
                return -1
            })
        let database = try UserDatabase(in: directory, runtimeDirectory: nil, environment: environment)
        defer { database.close() }
        try database.store("app").stage(setting: [(key("k"), .integer(1))], removing: [])
        try database.commit()
        await #expect(throws: EngineError.self) { try await database.synchronize() }
        fails.withLock { $0 = false }
        try await database.synchronize()
        let log = try FileManager.default.attributesOfItem(atPath: directory + "/stores.sqlite-wal")
        #expect(log[.size] as? Int == 0)
        // What a power cut leaves if the log's pages were lost.
        let left = directory + "/left"
        try FileManager.default.createDirectory(atPath: left, withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: directory + "/stores.sqlite", toPath: left + "/stores.sqlite")
        let restarted = try UserDatabase(in: left, runtimeDirectory: nil, environment: Clock().environment)
        defer { restarted.close() }
        #expect(try restarted.store("app").value(for: key("k")) == .integer(1))
    }

    @Test func `a disk that falls behind has writes refused until it has caught up`() throws {
        let device = try TemporaryDatabase()
        _ = try device.database.enter(account: "A", bringingValues: false)
        var written = 0
        while written < 2000, (try? device.download()) != nil { written += 1 }
        #expect(written > 600 && written < 800, "64 MiB in pieces of 100 kB: \(written)")
        // A checkpoint that began before the last write does not end it. A refused write begins another one.
        #expect(throws: EngineError.self) { try device.download() }
        #expect(device.work.count == 1)
        device.work.run()
        try device.download()
        try device.database.store("app").stage(setting: [(key("k"), .integer(1))], removing: [])
        try device.database.commit()
    }
}

/// Work that waits until a test has it run, as on a disk that takes long.
private final class SlowWork: Sendable {
    private let pieces = Mutex<[@Sendable () -> Void]>([])

    var count: Int { pieces.withLock(\.count) }

    func add(_ piece: @escaping @Sendable () -> Void) { pieces.withLock { $0.append(piece) } }

    func run() {
        let all = pieces.withLock { pieces in
            defer { pieces = [] }
            return pieces
        }
        for piece in all { piece() }
    }
}

private final class TemporaryDatabase {
    let work = SlowWork()
    let database: UserDatabase
    private var downloads: UInt8 = 0
    private let directory = NSTemporaryDirectory() + "log-" + UUID().uuidString

    init() throws {
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        var environment = Clock().environment
        environment.disk = Disk(run: { [work] in work.add($0) }, synchronize: Disk.system.synchronize)
        database = try UserDatabase(in: directory, runtimeDirectory: nil, environment: environment)
    }

    /// Stores a cursor of 100 kB, which takes 51 pages.
    func download() throws {
        downloads &+= 1
        try database.progress.completeDownload(cursor: [UInt8](repeating: downloads, count: 100_000))
    }

    deinit {
        database.close()
        try? FileManager.default.removeItem(atPath: directory)
    }
}
