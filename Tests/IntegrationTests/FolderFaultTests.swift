// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import Testing
import UbiquitousStoreTesting

/// A folder on a disk that is full, failing or away.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct FolderFaultTests {
    /// A call that fails, and the error and state that the user sees.
    private struct Fault {
        let operation: String
        let number: Int32
        let error: String
        let state: String
    }

    private static let faults: [Fault] =
        ["open", "write", "sync", "name"].flatMap { operation in
            [
                Fault(operation: operation, number: EIO, error: "BackendUnavailable", state: "offline"),
                Fault(operation: operation, number: ESTALE, error: "BackendUnavailable", state: "offline"),
                Fault(operation: operation, number: EINTR, error: "BackendUnavailable", state: "offline"),
                Fault(operation: operation, number: ENOSPC, error: "BackendFull", state: "error"),
                Fault(operation: operation, number: EROFS, error: "AccessDenied", state: "error"),
            ]
        }

    @Test func `whatever a folder's disk fails with is told of, and sync goes on when it doesn't any more`()
        async throws
    {
        let temporary = try TemporaryDirectory()
        let folder = try temporary.makeDirectory("folder", mode: 0o700)
        let file = temporary.path + "/faults"
        let environment = try Device.diskEnvironment(
            journal: temporary.path + "/journal", roots: [folder], ["DISK_FAULTS": file])
        try await withTwoDevices({
            if $0.name == "laptop" { $0.environment = environment }
        }) { devices in
            devices.url = "folder://" + folder
            try await devices.join()
            let (store, account) = (try devices.store(devices.laptop), try devices.account(devices.laptop))
            for (number, fault) in Self.faults.enumerated() {
                try "\(fault.operation) \(fault.number)".write(toFile: file, atomically: true, encoding: .utf8)
                try await store.set("key", .integer(Int64(number)))
                let words = "\(fault.operation): \(String(cString: strerror(fault.number)))"
                #expect(await errorName { try await account.syncNow() } == fault.error, "\(words)")
                #expect(try await account.state() == fault.state, "\(words)")
                guard case .string(let message) = try await account.property("LastErrorMessage") else { continue }
                #expect(message.string.contains(String(cString: strerror(fault.number))), "\(words): \(message)")
                try FileManager.default.removeItem(atPath: file)
                try await account.syncNow()
            }
            #expect(try await devices.converge() == ["key": .integer(Int64(Self.faults.count - 1))])
        }
    }
}
