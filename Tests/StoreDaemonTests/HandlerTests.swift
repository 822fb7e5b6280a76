// SPDX-License-Identifier: Apache-2.0

import AppManifest
import BackendTesting
import Foundation
import PropertyList
import SDBus
import StoreBus
import StoreEngine
import Testing

@testable import StoreDaemon

@BusActor
@Suite(.timeLimit(.minutes(30)))
struct HandlerTests {
    private func errorName(_ body: () async throws -> Void) async -> String {
        do { try await body() } catch { return (error as? BusError)?.name ?? "\(error)" }
        return ""
    }

    /// Has writes wait, which otherwise are committed once everything that has arrived is read.
    /// - Returns: a stream that ends when one waits.
    private func holdWrites(of service: LocalService) -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        service.daemon.connection.afterDispatch = { [weak daemon = service.daemon] in
            if daemon?.writes.isEmpty == false { continuation.finish() }
        }
        return stream
    }

    @Test func `a property shows what is committed, with the writes that arrived before`() async throws {
        let service = try LocalService()
        let first = try await service.set("a", .integer(1))
        let held = holdWrites(of: service)
        let write = Task { try await service.set("b", .integer(2)) }
        for await _ in held {}
        let path = try service.storePath()
        let count = try await service.property("KeyCount", of: BusNames.storeInterface, at: path)
        try #require(service.daemon.writes.isEmpty)
        #expect(count == .integer(2))
        #expect(try await write.value == first + 1)
        try service.close()
    }

    @Test func `writes that another commit has taken along fail if that fails`() async throws {
        let service = try LocalService()
        _ = try await service.set("a", .integer(1))
        let held = holdWrites(of: service)
        let write = Task { try await service.set("a", .data([UInt8](repeating: 0, count: 500_000))) }
        for await _ in held {}
        let database = try #require(service.daemon.users.all.first).database
        try database.space.bound(fileSize: 4096)
        #expect(throws: EngineError.diskFull) { try database.commit() }
        #expect(service.daemon.writes.isEmpty)
        #expect(await errorName { _ = try await write.value } != "")
        let value = try await service.call("GetValue", { try $0.append("a") }, { try $0.readValue() })
        #expect(value == .integer(1))
        try service.close()
    }

    @Test func `a call of an unknown interface has no turn during a rest, because its object is looked for first`()
        async throws
    {
        let service = try LocalService()
        _ = try await service.set("a", .integer(1))
        let share = service.daemon.shares.share(of: .user(4711))
        // Twenty seconds.
        share.rest.note(5_000_000)
        share.rest.note(LongCallPause.shortest)
        let path = try service.storePath()
        try await service.client.invoke(nil, path, "org.freedesktop.DBus.Peer", "Ping")
        #expect(share.waiting.isEmpty)
        let call = Task {
            await errorName { try await service.client.invoke(nil, path, "org.example.Unknown", "Call") }
        }
        // Its refusal waits for the end of the rest.
        try await eventually { !share.waiting.isEmpty }
        try service.close()
        #expect(await call.value != "")
    }

    @Test func `which keys stay here is on the disk before a value of one is acknowledged`() async throws {
        let files = FileManager.default
        let manifests = files.temporaryDirectory.appending(path: "manifests-\(UUID())").path
        try files.createDirectory(
            atPath: manifests, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
        let manifest = try Manifest([
            "com.apple.developer.ubiquity-kvstore-identifier": .string(Text(LocalService.store)),
            "application-identifier": .string("org.example.Writer"),
            "org.example.UbiquitousStore.local-keys": .array([.string("secret*")]),
        ])
        let path = manifests + "/org.example.Writer.plist"
        _ = try files.createFile(
            atPath: path, contents: Data(manifest.propertyList), attributes: [.posixPermissions: 0o644])
        let service = try LocalService { $0.manifestDirectories = [manifests] }
        _ = try await service.set("secret1", .integer(1))
        let user = UserDirectory(of: 4711, in: service.daemon.configuration.stateDirectory)
        #expect(RememberedLocalKeys(of: user).patterns(of: LocalService.store, besides: []) == ["secret*"])
        try service.close()
        try files.removeItem(atPath: manifests)
    }

    @Test func `only so many calls wait for a count of the history, since all are answered at once`() async throws {
        let service = try LocalService()
        _ = try await service.set("a", .integer(1))
        let account = try #require(service.daemon.users.all.first).account
        let work = HistoryWork()
        let calls = (0..<300).map { _ in EventLoop.task { try? await work.bytes(.counting, of: account) } }
        var refused = 0
        for call in calls where await call.value == nil { refused += 1 }
        #expect(refused == 44)
        #expect(try await work.bytes(.counting, of: account) >= 0)
        try service.close()
    }

    @Test func `nobody finds a store of another user, nor who can't be known one of its own`() async throws {
        let service = try LocalService()
        let other = await errorName {
            _ = try await service.call("GetValue", uid: 4712, { try $0.append("a") }) { _ in }
        }
        #expect(other.hasPrefix("org.freedesktop.DBus.Error.Unknown"))
        #expect(service.daemon.users.all.isEmpty)
        try service.close()
        let unknown = try LocalService(for: Credentials(uid: 4711))
        let refused = await errorName { _ = try await unknown.set("a", .integer(1)) }
        #expect(refused.hasPrefix("org.freedesktop.DBus.Error.Unknown"))
        #expect(unknown.daemon.users.all.isEmpty)
        try unknown.close()
    }

    @Test func `looking for an object loads and commits nothing`() async throws {
        let service = try LocalService()
        let (account, path) = (BusNames.accountPath(uid: nil), try service.storePath())
        let domain = try BusNames.domainPath(uid: nil, domain: "org.example.Editor")
        let domains = [BusNames.defaultsRoot, BusNames.defaultsPath(uid: nil), domain, domain + BusNames.hostSuffix]
        // The arguments have the wrong types, which is found before anything is loaded.
        let name = await errorName { try await service.invoke("SyncNow") { try $0.append("now") } }
        #expect(name == "org.freedesktop.DBus.Error.InvalidArgs")
        let other = await errorName { try await service.call("GetValue", { try $0.append(UInt64(1)) }, { _ in }) }
        #expect(other == "org.freedesktop.DBus.Error.InvalidArgs")
        func introspect() async throws {
            for path in [account, path] + domains {
                _ = try await service.client.call(nil, path, "org.freedesktop.DBus.Introspectable", "Introspect") {
                    try $0.readString()
                }
            }
        }
        try await introspect()
        #expect(service.daemon.users.all.isEmpty)
        _ = try await service.set("a", .integer(1))
        service.daemon.clients.forgetPaths()
        #expect(service.daemon.users.all.flatMap(\.storesInUse).isEmpty)
        try await introspect()
        #expect(service.daemon.users.all.flatMap(\.storesInUse).isEmpty)
        #expect(try await service.property("KeyCount", of: BusNames.storeInterface, at: path) == .integer(1))
        #expect(service.daemon.users.all.flatMap(\.storesInUse).count == 1)
        try service.close()
    }

    @Test func `an account is signed in to, synced and left`() async throws {
        let service = try LocalService()
        _ = try await service.set("a", .integer(1))
        #expect(try await service.account("State") == .string("signed-out"))
        try await service.signIn("memory:///a")
        #expect(service.addresses.all == ["memory:///a"])
        #expect(try await service.account("Backend") == .string("memory:///a"))
        try await service.invoke("SyncNow") { try $0.append(UInt64(0)) }
        #expect(try await service.account("State") == .string("idle"))
        #expect(try await service.account("PendingChanges") == .integer(0))
        #expect(service.remote.blobs.keys.contains { $0.hasPrefix("h/") })
        try await service.invoke("SignOut") { try $0.appendDictionary {} }
        #expect(try await service.account("State") == .string("signed-out"))
        #expect(try await service.account("Backend") == .string(""))
        try service.close()
    }

    @Test func `what the account lacks is not removed if the caller wants to keep it`() async throws {
        let service = try LocalService()
        try await service.signIn("memory:///a")
        func remove(_ flags: UInt64) async throws {
            try await service.client.invoke(nil, BusNames.managerPath, BusNames.managerInterface, "RemoveStore") {
                try $0.append(LocalService.store)
                try $0.append(flags)
            }
        }
        func signOut() async throws {
            try await service.invoke("SignOut") { call in
                try call.appendDictionary {
                    try call.append(entry: "keep-values", .boolean(false))
                    try call.append(entry: "keep-pending", .boolean(true))
                }
            }
        }
        try await service.invoke("SyncNow") { try $0.append(0x0 as UInt64) }
        service.remote.onRequest { _ in .lost }
        _ = try await service.set("a", .integer(1))
        #expect(try await service.account("PendingChanges") == .integer(1))
        #expect(await errorName { try await remove(0x8) }.hasSuffix(".Conflict"))
        #expect(await errorName { try await signOut() }.hasSuffix(".Conflict"))
        service.remote.onRequest(nil)
        try await service.invoke("SyncNow") { try $0.append(0x1 as UInt64) }
        try await remove(0x8)
        // Otherwise, a cycle that is under way could bring the account's value, which goes before a first one here.
        try await service.invoke("SyncNow") { try $0.append(0x0 as UInt64) }
        service.remote.onRequest { _ in .lost }
        _ = try await service.set("a", .integer(2))
        #expect(await errorName { try await signOut() }.hasSuffix(".Conflict"))
        service.remote.onRequest(nil)
        try await service.invoke("SyncNow") { try $0.append(0x1 as UInt64) }
        try await signOut()
        #expect(try await service.account("State") == .string("signed-out"))
        try service.close()
    }

    @Test func `a sign-in that fails changes nothing`() async throws {
        let service = try LocalService()
        #expect(await errorName { try await service.signIn("other:///a") } != "")
        #expect(try await service.account("State") == .string("signed-out"))
        service.remote.onRequest { _ in .lost }
        #expect(await errorName { try await service.signIn("memory:///a") } != "")
        #expect(try await service.account("State") == .string("signed-out"))
        service.remote.onRequest(nil)
        try await service.signIn("memory:///a")
        #expect(try await service.account("Backend") == .string("memory:///a"))
        try service.close()
    }

    @Test func `options that are unknown are refused, before a backend is asked`() async throws {
        let service = try LocalService()
        let name = await errorName {
            try await service.invoke("SignIn") { call in
                try call.append("memory:///a")
                try call.appendDictionary { try call.append(entry: "nonsense", .boolean(true)) }
            }
        }
        #expect(name == "org.freedesktop.DBus.Error.InvalidArgs")
        #expect(service.addresses.all.isEmpty)
        try service.close()
    }
}
