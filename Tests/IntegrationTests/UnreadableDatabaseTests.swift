// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import Testing
import UbiquitousStoreTesting

/// A disk that doesn't return the database for a moment, which SQLite takes for damage.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct UnreadableDatabaseTests {
    /// - Parameter most: how many reads fail; `nil` if all do.
    @Test(arguments: [1, 2, 7, 40, nil])
    func `reads that fail for a moment lose nothing, and no deleted key comes back`(most: Int?) async throws {
        let temporary = try TemporaryDirectory()
        let file = temporary.path + "/faults"
        let environment = try Device.diskEnvironment(
            journal: temporary.path + "/journal", roots: [FileManager.default.temporaryDirectory.path],
            ["DISK_FAULTS": file])
        try await withTwoDevices({
            if $0.name == "laptop" { $0.environment = environment }
        }) { devices in
            try await devices.join()
            let large = Value.data([UInt8](repeating: 1, count: 50_000))
            try await devices.store(devices.laptop).apply(["a": .integer(1), "b": .integer(1), "large": large])
            _ = try await devices.converge()
            try await devices.account(devices.laptop).setPaused(true)
            try await devices.store(devices.laptop).apply(
                ["a": .integer(2), "c": .integer(1)], removing: ["b"])
            try await devices.laptop.stop()
            let fault = "read \(EIO)" + (most.map { " \($0)" } ?? "")
            try fault.write(toFile: file, atomically: true, encoding: .utf8)
            try await devices.laptop.start()
            for _ in 0..<3 {
                let name = await errorName { _ = try await devices.store(devices.laptop).everything() }
                #expect(["", "IOError"].contains(name))
                if most == nil { #expect(name == "IOError") }
            }
            try FileManager.default.removeItem(atPath: file)
            let values: [Text: Value] = ["a": .integer(2), "c": .integer(1), "large": large]
            try await eventually("the database is read") {
                try await devices.store(devices.laptop).everything() == values
            }
            try await devices.account(devices.laptop).setPaused(false)
            #expect(try await devices.converge() == values)
            let files = try FileManager.default.subpathsOfDirectory(atPath: devices.laptop.stateDirectory)
            #expect(!files.contains { $0.contains(".damaged-") || $0.contains(".unreadable") }, "\(files)")
        }
    }
}
