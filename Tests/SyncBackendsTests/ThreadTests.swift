// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import EventLoop
import Foundation
import HTTPClient
import PropertyList
import Replication
import ServerTesting
import Synchronization
import Testing

@testable import BackendSupport
@testable import Blobs
@testable import Etcd
@testable import Folder
@testable import WebDAV

/// Which threads backends use. The event loop's thread answers all users' calls, which must not wait for remotes.
@Suite(.timeLimit(.minutes(30)))
struct ThreadTests {
    /// A storage that counts its calls, and those on the event loop's thread.
    private final class Spy: BlobStorage {
        private let storage = MemoryStorage()
        private let calls = Mutex((count: 0, onLoop: 0))

        var counts: (count: Int, onLoop: Int) { calls.withLock(\.self) }

        func note() {
            let isOnLoop = EventLoop.shared.isIsolatingCurrentContext() == true
            calls.withLock { ($0.count, $0.onLoop) = ($0.count + 1, $0.onLoop + (isOnLoop ? 1 : 0)) }
        }

        var traits: BackendTraits { storage.traits }
        func check(creatingFolder createsFolder: Bool) async throws(RemoteError) -> [String] {
            note()
            return try await storage.check(creatingFolder: createsFolder)
        }
        func list(_ folder: String) async throws(RemoteError) -> [BlobListing] {
            note()
            return try await storage.list(folder)
        }
        func get(_ name: String, limit: Int, unless version: String?) async throws(RemoteError) -> BlobContent {
            note()
            return try await storage.get(name, limit: limit, unless: version)
        }
        func put(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) {
            note()
            try await storage.put(name, bytes)
        }
        func create(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) {
            note()
            try await storage.create(name, bytes)
        }
        func delete(_ name: String) async throws(RemoteError) { try await storage.delete(name) }
        func hints() -> AsyncStream<Void> { storage.hints() }
        func close() { storage.close() }
    }

    @Test func `blobs are decoded and hashed on another thread than the event loop's, whoever asks`() async {
        let spy = Spy()
        await EventLoop.task {
            let device = BackendDevice("a", seed: 1, backend: BlobBackend(storage: spy, environment: .system))
            do {
                try await device.signIn(creating: true)
                device.set("org.example.Notes", "a", .integer(1))
                try await device.sync()
                try await device.sync()
            } catch {
                Issue.record(error)
            }
        }.value
        #expect(spy.counts.count > 8 && spy.counts.onLoop == 0)
    }

    @Test func `a listing of megabytes is read on another thread than the event loop's, and waits for it`() async throws
    {
        let members = (0..<30_000).map {
            "<D:response><D:href>/dav/s/\(String(format: "%032x", $0))</D:href></D:response>"
        }
        let body = "<D:multistatus xmlns:D=\"DAV:\">\(members.joined())</D:multistatus>"
        let server = try ScriptedServer { _ in ServerAnswer(207, [:], body) }
        let calls = Mutex((count: 0, onLoop: 0))
        let reader = Multistatus.Reader(within: RemoteBudget()) { _ in
            let isOnLoop = EventLoop.shared.isIsolatingCurrentContext() == true
            calls.withLock { ($0.count, $0.onLoop) = ($0.count + 1, $0.onLoop + (isOnLoop ? 1 : 0)) }
            return true
        }
        let client = HTTPClient(HTTPOptions())
        let address = try #require(HTTPAddress(server.url + "/dav/s/"))
        let response = try await client.send(HTTPRequest("PROPFIND", address, sink: reader.sink))
        #expect(response.status == 207)
        #expect(try await reader.members().count == members.count)
        #expect(calls.withLock { $0.count == members.count && $0.onLoop == 0 })
        client.close()
    }

    @Test func `forty folders that are watched have one thread between them, and none once they are closed`() async {
        await #expect(processExitsWith: .success) {
            func threads() throws -> Int {
                try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count
            }
            func eventually(_ condition: () throws -> Bool) async throws {
                while try !condition() { try await Task.sleep(for: .milliseconds(5)) }
            }
            let root = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
            defer { try? FileManager.default.removeItem(at: root) }
            // This starts the threads of Swift's tasks.
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<64 { group.addTask { usleep(1000) } }
            }
            let before = try threads()
            var backends: [any RemoteBackend] = []
            for number in 0..<40 {
                let path = root.appending(path: "\(number)").path
                try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
                let backend = try FolderBackend.make(url: "folder://" + path, access: .own(uid: geteuid()))
                _ = try await backend.open(creatingAccount: true)
                _ = try await backend.pull(after: nil, as: Origin(bits: 1))
                backends.append(backend)
            }
            try await eventually { try threads() <= before + 1 }
            for backend in backends { await backend.close() }
            try await eventually { try threads() <= before }
        }
    }

    /// A watch asks for its token on the event loop's thread.
    @Test func `a member's answer waits for another thread than the event loop's, whoever asks`() async throws {
        let server = try ScriptedServer { _ in ServerAnswer(200, [:], "{\"header\":{}}") }
        let gateway = EtcdHTTP(HTTPOptions())
        let member = try #require(HTTPAddress("http://127.0.0.1:\(server.port)"))
        let gate = DispatchSemaphore(value: 0)
        let isAnswered = Mutex(false)
        let threads = (0..<64).map { _ in WorkThread(.decoding) }
        for thread in threads { thread.run { gate.wait() } }
        let asking = EventLoop.task {
            _ = try? await gateway.ask(EtcdQuestion("/v3/x", .dictionary([:])), of: member, within: .seconds(60))
            isAnswered.withLock { $0 = true }
        }
        while server.requests.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
        try await Task.sleep(for: .milliseconds(100))
        let isEarly = isAnswered.withLock { $0 }
        #expect(!isEarly)
        for _ in threads { gate.signal() }
        await asking.value
        gateway.close()
    }

    @Test func `what a watch tells is read on another thread than the event loop's, and heard until it is enough`()
        async throws
    {
        let event = "{\"result\":{\"header\":{\"revision\":\"7\"}}}\n"
        let server = try ScriptedServer { _ in ServerAnswer(200, [:], String(repeating: event, count: 20_000)) }
        let gateway = EtcdHTTP(HTTPOptions())
        let calls = Mutex((count: 0, onLoop: 0))
        let member = try #require(HTTPAddress("http://127.0.0.1:\(server.port)"))
        _ = await gateway.listen(EtcdQuestion("/v3/watch", .dictionary([:])), to: member) { _ in
            let isOnLoop = EventLoop.shared.isIsolatingCurrentContext() == true
            return calls.withLock { calls in
                calls = (calls.count + 1, calls.onLoop + (isOnLoop ? 1 : 0))
                return calls.count < 1000
            }
        }
        #expect(calls.withLock(\.self) == (1000, 0))
        // After the watch has ended, the gateway can still pause.
        await gateway.pause(for: .milliseconds(1))
        gateway.close()
    }
}
