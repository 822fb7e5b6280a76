// SPDX-License-Identifier: Apache-2.0

import Foundation
import Replication
import SDBus
import Testing

@testable import StoreDaemon

@BusActor
struct SavedAccountTests {
    @Test func `if what belongs to a new account fails, the file of the former one is back, and needs no room`() throws
    {
        let directory = FileManager.default.temporaryDirectory.appending(path: "saved-\(UUID())").path
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        func inode() throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: directory + "/account.plist")[.systemFileNumber] as? Int
        }
        func account(_ url: String) -> AccountFile {
            AccountFile(url: url, account: "a", credentials: BackendCredentials(), deviceName: "here")
        }
        let saved = SavedAccount(in: directory, writing: FileWrites())
        let (former, next) = (account("folder:///a"), account("folder:///b"))
        #expect(throws: CancellationError.self) { try saved.commit(former) { throw CancellationError() } }
        #expect(!saved.exists)
        try saved.commit(former) {}
        let own = try inode()
        #expect(throws: CancellationError.self) {
            try saved.commit(next) {
                #expect(try saved.read() == next)
                throw CancellationError()
            }
        }
        #expect(try saved.read() == former && inode() == own)
        try saved.commit(next) {}
        #expect(try saved.read() == next)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == ["account.plist"])
    }
}
