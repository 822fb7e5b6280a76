// SPDX-License-Identifier: Apache-2.0

import Files
import Foundation
import PropertyList
import SDBus
import StoreBus
import StoreEngine
import Testing

@testable import StoreDaemon

/// A disk on which little is left.
@BusActor
@Suite(.enabled(if: getuid() == 0, "mounting needs root"), .timeLimit(.minutes(30)))
struct FullDiskTests {
    /// A thousand values, almost as much as a store may have.
    private let values = (0..<1000).map { number in
        ("key \(number)", Value.data([UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 900)))
    }

    private func run(_ words: String...) -> Bool {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = words
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }

    /// Has a service on a disk of 40 MiB, of which 12 are left to small users.
    private func withSmallDisk(_ body: (LocalService, _ place: String) async throws -> Void) async throws {
        let place = FileManager.default.temporaryDirectory.appending(path: "full-disk-\(UUID())").path
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        try #require(run("mount", "-t", "tmpfs", "-o", "size=40m,mode=700", "tmpfs", place))
        defer {
            _ = run("umount", "-l", place)
            try? FileManager.default.removeItem(atPath: place)
        }
        let service = try LocalService { $0.stateDirectory = place }
        service.daemon.users.room.diskReserve = 12 << 20
        try await body(service, place)
        try service.close()
    }

    /// Writes stores until no more fit.
    /// - Returns: how many do.
    private func fill(_ service: LocalService) async throws -> Int {
        for number in 0..<40 {
            let path = try BusNames.storePath(uid: nil, identifier: "org.example.App\(number)")
            do {
                try await service.client.invoke(nil, path, BusNames.storeInterface, "Apply") { call in
                    try call.appendDictionary { for (key, value) in values { try call.append(entry: key, value) } }
                    try call.append(strings: [])
                    try call.appendDictionary {}
                }
            } catch let error as BusError {
                #expect(error.message.contains("no space left"), "\(error)")
                return number
            }
        }
        return 40
    }

    @Test func `signing in without room for it changes nothing, and leaves others theirs`() async throws {
        try await withSmallDisk { service, place in
            let stores = try await fill(service)
            #expect((8...26).contains(stores), "\(stores)")
            let error = await #expect(throws: BusError.self) { try await service.signIn("memory:///a") }
            #expect(error?.message.contains("free some space") == true, "\(error as Any)")
            #expect(try await service.account("State") == .string("signed-out"))
            #expect(!AccountFile.exists(in: place + "/u4711"))
            let left = try #require(Files.freeBytes(at: place))
            #expect(left > 6 << 20)
            let other = try service.daemon.users.user(4712)
            try other.database.store(LocalService.store).stage(
                setting: [(Key(unchecked: "key"), .data([UInt8](repeating: 1, count: 100_000)))], removing: [])
            try other.database.commit()
            // The administrator frees some space.
            try #require(run("mount", "-o", "remount,size=120m", place))
            try await service.signIn("memory:///a")
            let user = try service.daemon.users.user(4711)
            #expect(try user.storesWithValues().count == stores)
            try await eventually { user.database.logBytes < 5 << 20 }
        }
    }

    @Test func `the logs of users who have little don't take what is left`() async throws {
        try await withSmallDisk { service, place in
            _ = try await fill(service)
            for uid: UInt32 in 4713..<4717 {
                let user = try service.daemon.users.user(uid)
                let store = try user.database.store(LocalService.store)
                var written = 0
                for number in 0..<40 {
                    let value = Value.data([UInt8](repeating: UInt8(number), count: 100_000))
                    do {
                        try user.room.check(for: store, bytes: 100_000, replacing: number < 2 ? 0 : 100_000)
                        try store.stage(setting: [(Key(unchecked: "key \(number % 2)"), value)], removing: [])
                        try user.database.commit()
                        written += 1
                    } catch EngineError.diskFull {}
                    // Another thread empties the log.
                    await EventLoop.pause(.milliseconds(10))
                }
                #expect(written > 5, "\(written)")
                #expect(user.database.logBytes < 2 << 20)
            }
            let left = try #require(Files.freeBytes(at: place))
            #expect(left > 2 << 20)
        }
    }
}
