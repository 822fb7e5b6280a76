// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import Replication
import StoreEngine
import Testing

/// Returns the bytes that this process has written to files.
private func bytesWritten() throws -> Int {
    let lines = try String(contentsOfFile: "/proc/self/io", encoding: .utf8).split(separator: "\n")
    let count = lines.first { $0.hasPrefix("wchar: ") }?.dropFirst("wchar: ".count)
    return try #require(count.flatMap { Int($0) })
}

/// Makes a database of some 20 MB. Its log is never emptied, since that writes as well.
private func makeDatabase(in directory: String) throws -> UserDatabase {
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    var environment = Clock().environment
    environment.disk = Disk(run: { _ in }, synchronize: Disk.system.synchronize)
    let database = try UserDatabase(in: directory, runtimeDirectory: nil, environment: environment)
    let values = (0..<1000).map { number in
        (key("k\(number)"), Value.data([UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 900)))
    }
    for number in 0..<20 {
        try database.store("s\(number)").stage(setting: values, removing: [])
        try database.commit()
    }
    return database
}

/// Transactions that write all of a user's values.
@Suite struct LargeTransactionTests {
    // SQLite counts the memory of all of a process's connections.
    @Test func `to enter an account, SQLite needs little memory and writes what changes once`() async {
        await #expect(processExitsWith: .success) {
            let directory = NSTemporaryDirectory() + "large-" + UUID().uuidString
            defer { try? FileManager.default.removeItem(atPath: directory) }
            let database = try makeDatabase(in: directory)
            let size = try database.space.size()
            #expect(size > 18_000_000)
            _ = SQLite.memoryPeak()
            let before = (memory: SQLite.memoryPeak(), written: try bytesWritten())
            _ = try database.enter(account: "A", bringingValues: false)
            let (memory, written) = (SQLite.memoryPeak() - before.memory, try bytesWritten() - before.written)
            #expect(memory < size / 4, "\(memory) of \(size)")
            #expect(written < size * 3 / 2, "\(written) of \(size)")
            // Of a store at a time, what is copied is sorted.
            _ = try database.enter(account: "B", bringingValues: true)
            let copying = SQLite.memoryPeak() - before.memory
            #expect(copying < size / 4, "\(copying) of \(size)")
            #expect(try database.store("s19").values.count == 1000)
            database.close()
        }
    }
}
