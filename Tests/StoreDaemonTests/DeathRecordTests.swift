// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import Replication
import SDBus
import SyncEngine
import Testing

@testable import StoreDaemon

/// What the service does for a user by itself, and during which it has died.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct DeathRecordTests {
    /// Leaves the record that a process leaves which was the last to die during the work before that waits.
    /// - Returns: the record's path.
    @discardableResult
    private func leaveDeaths(during work: DeathRecord.Work, in directory: String) throws -> String {
        let boot = try String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
            .filter { !$0.isWhitespace }
        var deaths = Deaths(boot: boot)
        for _ in 1..<work.mostDeaths {
            deaths.begin(EventLoop.now)
            deaths = Deaths(deaths.text, boot: boot)
        }
        deaths.begin(EventLoop.now)
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        let path = directory + "/" + work.rawValue
        try deaths.text.write(toFile: path, atomically: false, encoding: .utf8)
        return path
    }

    private func directory(of uid: UInt32, _ service: LocalService) -> String {
        UserDirectory(of: uid, in: service.daemon.configuration.stateDirectory).path
    }

    @Test func `a user's data stays closed after four deaths in opening it, and others are served`() async throws {
        let service = try LocalService()
        let path = try leaveDeaths(during: .opening, in: directory(of: 4711, service))
        for _ in 0..<2 {
            let error = await #expect(throws: BusError.self) { _ = try await service.set("a", .integer(1)) }
            #expect(error?.message.contains("ended unexpectedly") == true, "\(error as Any)")
            #expect(error?.message.contains("10 min") == true, "\(error as Any)")
        }
        let other = try service.daemon.users.user(4712)
        #expect(try other.storesWithValues().isEmpty)
        // After a further death it would be closed for longer.
        #expect(FileManager.default.fileExists(atPath: path))
        try FileManager.default.removeItem(atPath: path)
        _ = try await service.set("a", .integer(1))
        #expect(!FileManager.default.fileExists(atPath: path))
        try service.close()
    }

    @Test func `an account stays closed after four deaths in entering it, and its user is served`() async throws {
        let service = try LocalService()
        try await service.signIn("memory:///a")
        let former = try service.daemon.users.user(4711)
        try await former.account.sync.syncNow()
        service.daemon.clients.leave(former)
        let path = try leaveDeaths(during: .entering, in: directory(of: 4711, service))
        service.daemon.users.resumeAccounts()
        #expect(try await service.account("State") == .string("error"))
        guard case .string(let message) = try await service.account("LastErrorMessage") else { return }
        #expect(message.string.contains("ended unexpectedly"), "\(message)")
        _ = try await service.set("a", .integer(1))
        // What made the service end may be what is to be entered.
        let error = await #expect(throws: BusError.self) { try await service.signIn("memory:///a") }
        #expect(error?.message.contains("ended unexpectedly") == true, "\(error as Any)")
        service.daemon.clients.leave(try service.daemon.users.user(4711))
        try FileManager.default.removeItem(atPath: path)
        #expect(try service.daemon.users.user(4711).account.sync.hasBackend)
        try service.close()
    }

    @Test func `work is recorded while it is under way, however it ends`() throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "deaths-\(UUID())").path
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let path = directory + "/opening"
        let record = DeathRecord(of: .opening, in: directory)
        #expect(!record.isOfLastProcess)
        try record.run { #expect(FileManager.default.fileExists(atPath: path)) }
        #expect(!FileManager.default.fileExists(atPath: path))
        #expect(throws: CancellationError.self) { try record.run { throw CancellationError() } }
        #expect(!FileManager.default.fileExists(atPath: path))
        // A process that dies.
        record.begin()
        let next = DeathRecord(of: .opening, in: directory)
        #expect(next.isOfLastProcess && next.isSuspect && next.obstacle == nil)
        #expect(!DeathRecord(of: .opening, in: directory).isOfLastProcess)
        for _ in 2...4 {
            let next = DeathRecord(of: .opening, in: directory)
            #expect(next.obstacle == nil)
            next.begin()
        }
        let seconds = try #require(DeathRecord(of: .opening, in: directory).obstacle?.retryAfter)
        #expect((540...601).contains(seconds))
    }
}
