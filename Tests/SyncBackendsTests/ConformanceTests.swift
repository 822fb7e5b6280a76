// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import Foundation
import Replication
import Sealing
import StoreEngine
import SyncEngine
import Synchronization
import Testing

@testable import BackendSupport
@testable import Blobs
@testable import Folder

@Suite struct ConformanceTests {
    @Test(arguments: BackendConformance.cases)
    func `a folder conforms`(to conformance: BackendConformance) async throws {
        try await testFolder(conformance, .none)
    }

    @Test(arguments: BackendConformance.cases)
    func `a folder conforms where the account is encrypted`(to conformance: BackendConformance) async throws {
        try await testFolder(conformance, .testKey)
    }

    private func testFolder(_ conformance: BackendConformance, _ protection: Protection) async throws {
        let place = try Place()
        try await conformance.run(
            on: EmptyRemote {
                BlobBackend(
                    // A process can watch only so many folders, and other tests need some.
                    storage: FolderStorage(
                        try FolderURL("folder://" + place.path),
                        access: .own(uid: geteuid()),
                        watch: nil
                    ),
                    environment: .system,
                    protection: protection
                )
            } empty: {
                for folder in ["a", "h", "s"] {
                    for name in place.names(folder) { try place.remove(folder + "/" + name) }
                }
            }
        )
    }

    @Test(arguments: BackendConformance.cases)
    func `blobs in memory conform`(to conformance: BackendConformance) async throws {
        try await conformance.run(on: FaultConformance.remote(MemoryStorage()))
    }

    @Test(arguments: BackendConformance.cases)
    func `blobs in memory conform where the account is encrypted`(to conformance: BackendConformance) async throws {
        try await conformance.run(on: FaultConformance.remote(MemoryStorage(), .testKey))
    }

    @Test func `a remote that has no time for all who make the account at once conforms`() async throws {
        let storage = MemoryStorage()
        let count = Atomic(0)
        storage.onRequest { request in
            request.action == .create && count.add(1, ordering: .relaxed).newValue <= 3 ? .lost : nil
        }
        let conformance = BackendConformance.cases.first { $0.description.hasPrefix("devices that create the account") }
        try await #require(conformance).run(on: FaultConformance.remote(storage))
        #expect(count.load(ordering: .relaxed) > 3)
    }

    @Test(arguments: BackendConformance.cases)
    func `the example conforms`(to conformance: BackendConformance) async throws {
        let table = Table()
        try await conformance.run(
            on: EmptyRemote {
                TableBackend(table)
            } empty: {
                await table.empty()
            })
    }

    @Test(arguments: FaultConformance.cases)
    func `whatever a storage does, nothing is lost`(to conformance: FaultConformance) async throws {
        for seed in 1...10 as ClosedRange<UInt64> {
            do { try await conformance.run(seed: seed) } catch { Issue.record("seed \(seed): \(error)") }
        }
    }

    @Test(arguments: FaultConformance.cases)
    func `whatever a storage does, nothing of an encrypted account is lost`(to conformance: FaultConformance)
        async throws
    {
        for seed in 21...26 as ClosedRange<UInt64> {
            do { try await conformance.run(seed: seed, .testKey) } catch { Issue.record("seed \(seed): \(error)") }
        }
    }

    @Test func `the page has the example as it is tested`() throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let source = try String(contentsOf: folder.appending(path: "TableBackend.swift"), encoding: .utf8)
        let page = try String(contentsOf: folder.appending(path: "../../docs/backends.md"), encoding: .utf8)
        let code = source.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)[1]
        #expect(page.contains("```swift\n" + code.drop { $0 == "\n" } + "```"))
    }
}
