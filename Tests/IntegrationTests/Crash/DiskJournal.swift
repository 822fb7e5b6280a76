// SPDX-License-Identifier: Apache-2.0

import Foundation
import UbiquitousStoreTesting

extension Device {
    /// Returns the environment in which a service's writes below the roots are recorded, and faults can be injected (see
    /// DiskJournal.c).
    static func diskEnvironment(
        journal: String, roots: [String], _ further: [String: String] = [:]
    ) throws -> [String: String] {
        let library = URL(filePath: try program()).deletingLastPathComponent().appending(path: "libDiskJournal.so")
        let environment = [
            "LD_PRELOAD": library.path, "DISK_JOURNAL": journal, "DISK_JOURNAL_ROOTS": roots.joined(separator: ":"),
        ]
        return environment.merging(further) { $1 }
    }
}

/// A program's operations on files, in order, as the library DiskJournal has recorded them.
struct DiskJournal {
    /// One operation.
    struct Record {
        /// The inode of the file or directory.
        let inode: UInt64
        let operation: Operation
    }

    /// The kind of operation, with its arguments.
    enum Operation {
        case write(offset: Int, bytes: Data)
        case truncate(length: Int)
        case sync(path: String)
        case create(path: String, mode: UInt32)
        case makeDirectory(path: String, mode: UInt32)
        case rename(from: String, to: String)
        case link(from: String, to: String)
        case unlink(path: String)
        case removeDirectory(path: String)
    }

    let records: [Record]

    /// Reads a journal, without a truncated record at the end: its operation is the one that was killed.
    init(contentsOf path: String) throws {
        let data = try Data(contentsOf: URL(filePath: path))
        var records: [Record] = []
        var start = data.startIndex
        while let (record, end) = Self.record(data, at: start) {
            records.append(record)
            start = end
        }
        self.records = records
    }

    /// Returns how many operations a journal has by now.
    static func count(in path: String) -> Int {
        (try? DiskJournal(contentsOf: path).records.count) ?? 0
    }

    private static let headerBytes = 40

    private static func record(_ data: Data, at start: Int) -> (Record, end: Int)? {
        guard data.endIndex - start >= headerBytes else { return nil }
        func number<T: FixedWidthInteger>(_ type: T.Type, _ offset: Int) -> T {
            data[(start + offset)...].withUnsafeBytes { $0.loadUnaligned(as: T.self) }
        }
        let code = number(UInt32.self, 0)
        let (pathLength, targetLength) = (Int(number(UInt32.self, 4)), Int(number(UInt32.self, 8)))
        let (offset, length) = (number(UInt64.self, 24), Int(number(UInt64.self, 32)))
        let paths = start + headerBytes
        let bytes = paths + pathLength + targetLength
        let end = bytes + (code == 1 ? length : 0)
        guard end <= data.endIndex else { return nil }
        let path = String(decoding: data[paths..<(paths + pathLength)], as: UTF8.self)
        let target = String(decoding: data[(paths + pathLength)..<bytes], as: UTF8.self)
        let operation: Operation
        switch code {
        case 1: operation = .write(offset: Int(offset), bytes: Data(data[bytes..<end]))
        case 2: operation = .truncate(length: Int(offset))
        case 3: operation = .sync(path: path)
        case 4: operation = .create(path: path, mode: UInt32(truncatingIfNeeded: offset))
        case 5: operation = .makeDirectory(path: path, mode: UInt32(truncatingIfNeeded: offset))
        case 6: operation = .rename(from: path, to: target)
        case 7: operation = .link(from: path, to: target)
        case 8: operation = .unlink(path: path)
        case 9: operation = .removeDirectory(path: path)
        default: return nil
        }
        return (Record(inode: number(UInt64.self, 16), operation: operation), end)
    }
}
