// SPDX-License-Identifier: Apache-2.0

import Foundation
import Replication
import StoreEngine
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
            try database.completeDownload(cursor: [UInt8](repeating: UInt8(number), count: 100_000))
            let log = try FileManager.default.attributesOfItem(atPath: directory + "/stores.sqlite-wal")
            longest = max(longest, try #require(log[.size] as? Int))
        }
        #expect(longest > 4 << 20 && longest < 5 << 20, "\(longest)")
    }
}
