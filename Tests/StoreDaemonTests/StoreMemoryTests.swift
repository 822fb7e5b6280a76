// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import Blobs
import PropertyList
import Replication
import SDBus
import StoreBus
import StoreEngine
import SyncEngine
import Testing

@testable import StoreDaemon

extension LocalService {
    /// The sync of the caller's account.
    fileprivate var sync: AccountSync { get throws { try daemon.users.user(4711).account.sync } }
}

/// The memory of stores in use.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct StoreMemoryTests {
    private let booleans: Value = .array(Array(repeating: .boolean(true), count: 50_000))

    private func withService(
        _ remote: MemoryStorage = MemoryStorage(), _ body: (LocalService) async throws -> Void
    ) async throws {
        let service = try LocalService(remote: remote)
        service.daemon.users.room.memory = StoreMemory(limit: 8 << 20, reserve: 2 << 20)
        try await body(service)
        try service.close()
    }

    /// Calls `Subscribe` or `Unsubscribe` of a store.
    private func call(_ member: String, _ number: Int, _ service: LocalService) async throws {
        let path = try BusNames.storePath(uid: nil, identifier: "org.example.App\(number)")
        try await service.client.invoke(nil, path, BusNames.storeInterface, member) {
            if member == "Subscribe" { try $0.append(0 as UInt64) }
        }
    }

    /// Writes to a store of its own, and returns the error.
    private func write(_ number: Int, subscribing: Bool, _ service: LocalService) async throws -> String? {
        let path = try BusNames.storePath(uid: nil, identifier: "org.example.App\(number)")
        do {
            if subscribing { try await call("Subscribe", number, service) }
            try await service.client.invoke(nil, path, BusNames.storeInterface, "SetValue") {
                try $0.append("key")
                try $0.append(variant: booleans)
            }
            return nil
        } catch let error as BusError {
            return error.name
        }
    }

    @Test func `stores that were used before make room for others`() async throws {
        try await withService { service in
            for round in 0..<2 {
                for number in 0..<12 {
                    #expect(try await write(number, subscribing: false, service) == nil, "\(round) \(number)")
                    #expect(service.daemon.users.room.memory.total <= 6 << 20)
                }
            }
            let user = try service.daemon.users.user(4711)
            #expect(user.memory == user.storesInUse.reduce(0) { $0 + $1.memory })
            #expect(user.storesInUse.count < 12)
        }
    }

    @Test func `values beyond a user's share of the memory are refused, and replacing some is not`() async throws {
        try await withService { service in
            var names: [String?] = []
            for number in 0..<12 { names.append(try await write(number, subscribing: true, service)) }
            #expect(names.first == .some(nil) && names.last == BusError.limitsExceeded("").name)
            #expect(service.daemon.users.room.memory.total <= 6 << 20)
            for _ in 0..<20 { #expect(try await write(0, subscribing: false, service) == nil) }
        }
    }

    @Test func `a store that nobody subscribes to doesn't become too large to be loaded`() async throws {
        try await withService { service in
            let path = try BusNames.storePath(uid: nil, identifier: "org.example.App")
            func set(_ key: String, _ value: Value) async throws {
                try await service.client.invoke(nil, path, BusNames.storeInterface, "SetValue") {
                    try $0.append(key)
                    try $0.append(variant: value)
                }
            }
            var count = 0
            await #expect(throws: BusError.self) {
                while count < 30 {
                    try await set("key \(count)", booleans)
                    count += 1
                }
            }
            #expect(count > 2)
            service.daemon.clients.forgetPaths()
            #expect(try service.daemon.users.user(4711).storesInUse.isEmpty)
            try await set("key 0", .boolean(true))
            try await set("key \(count)", .boolean(true))
        }
    }

    @Test func `a write that is refused gives no room back`() async throws {
        try await withService { service in
            for number in 0..<4 { #expect(try await write(number, subscribing: true, service) == nil) }
            let total = service.daemon.users.room.memory.total
            let path = try BusNames.storePath(uid: nil, identifier: "org.example.App0")
            for _ in 0..<20 {
                let error = await #expect(throws: BusError.self) {
                    try await service.client.invoke(nil, path, BusNames.storeInterface, "Apply") { call in
                        try call.appendDictionary { try call.append(entry: "key", .boolean(true)) }
                        try call.append(strings: [])
                        try call.appendDictionary { try call.append(option: "if-generation", 999_999) }
                    }
                }
                #expect(error?.name.hasSuffix(".Conflict") == true)
            }
            #expect(service.daemon.users.room.memory.total >= total)
        }
    }

    @Test func `the last of a full disk is kept for small users`() async throws {
        try await withService { service in
            service.daemon.users.room.diskReserve = .max
            let value = Value.data([UInt8](repeating: 7, count: 100_000))
            var stored = 0
            for number in 0..<40 {
                let path = try BusNames.storePath(uid: nil, identifier: "org.example.App\(number)")
                do {
                    try await service.client.invoke(nil, path, BusNames.storeInterface, "SetValue") {
                        try $0.append("key")
                        try $0.append(variant: value)
                    }
                    stored += 1
                } catch let error as BusError {
                    #expect(error.message.contains("no space left"), "\(error)")
                    break
                }
            }
            #expect((2...12).contains(stored), "\(stored)")
            service.daemon.users.room.diskReserve = 0
            #expect(try await write(39, subscribing: false, service) == nil)
        }
    }

    @Test func `what other devices have written waits until there is room`() async throws {
        let other = try LocalService()
        for number in 0..<12 { #expect(try await write(number, subscribing: false, other) == nil) }
        try await other.signIn("memory:///a")
        try await other.sync.syncNow()
        try await withService(other.remote) { service in
            for number in 0..<12 { try await call("Subscribe", number, service) }
            try await service.signIn("memory:///a")
            _ = try? await service.sync.syncNow()
            #expect(try service.sync.lastError?.code == .device)
            #expect((2 << 20...4 << 20).contains(service.daemon.users.room.memory.total))
            for number in 0..<12 { try await call("Unsubscribe", number, service) }
            try await service.sync.syncNow()
            for number in 0..<12 { #expect(try await write(number, subscribing: false, service) == nil) }
        }
        try other.close()
    }

    @Test func `downloads don't take the last of a full disk`() async throws {
        let other = try LocalService()
        let value = Value.data([UInt8](repeating: 7, count: 100_000))
        for number in 0..<40 {
            let path = try BusNames.storePath(uid: nil, identifier: "org.example.App\(number)")
            try await other.client.invoke(nil, path, BusNames.storeInterface, "SetValue") {
                try $0.append("key")
                try $0.append(variant: value)
            }
        }
        try await other.signIn("memory:///a")
        try await other.sync.syncNow()
        try await withService(other.remote) { service in
            service.daemon.users.room.diskReserve = .max
            try await service.signIn("memory:///a")
            _ = try? await service.sync.syncNow()
            let error = try service.sync.lastError
            #expect(error?.code == .device && error?.message.contains("no space left") == true, "\(error as Any)")
            let database = try service.daemon.users.user(4711).database
            #expect(try database.space.size() < 3 << 20)
            guard case .integer(0..<200_000) = try await service.account("FreeBytes") else {
                throw BusError.failed("the disk has room")
            }
            service.daemon.users.room.diskReserve = 0
            try await service.sync.syncNow()
            #expect(try service.daemon.users.user(4711).storesWithValues().count == 40)
        }
        try other.close()
    }

    @Test func `what many users have stays within the limit, and leaves room for those who have little`() {
        let memory = StoreMemory()
        func fill() -> Int {
            var own = 0
            while memory.allows(100_000, besides: own) {
                own += 100_000
                memory.count(100_000)
            }
            return own
        }
        #expect(fill() > 30 << 20)
        for _ in 0..<5 { _ = fill() }
        // However much a few have, others can have stores of ordinary sizes.
        for _ in 0..<20 {
            #expect(memory.allows(1 << 20, besides: 0))
            memory.count(1 << 20)
        }
        #expect(memory.allows(-1, besides: 64 << 20))
        for _ in 0..<1000 { _ = fill() }
        #expect(memory.total <= 96 << 20)
    }

    @Test func `stores, waiting calls and changes share what the service may take`() throws {
        let service = ServiceMemory(limit: 16 << 20, reserve: 4 << 20)
        let stores = StoreMemory(within: service)
        let pool = SharePool(within: service)
        var random = SystemRandomNumberGenerator()
        var calls = 0
        for _ in 0..<100 {
            let user = UserShare(UserBounds(), of: pool)
            var own = 0
            for _ in 0..<1000 {
                let bytes = Int.random(in: 1...300_000, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0 where stores.allows(bytes, besides: own):
                    own += bytes
                    stores.count(bytes)
                case 1 where user.hasRoom(toHold: .bytes(bytes)):
                    try user.hold(.bytes(bytes))
                    calls += bytes
                case 2 where user.mayKeepChanges(bytes): user.countChanges(bytes)
                default: break
                }
            }
        }
        let taken = stores.total + calls + pool.changes
        #expect(taken > 10 << 20 && taken <= 20 << 20)
        #expect(!UserShare(UserBounds(), of: pool).mayHoldLarge)
        // What is given back is there for others.
        stores.count(-stores.total)
        #expect(stores.allows(1 << 20, besides: 0))
    }
}
