// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import PropertyList
import Replication
import Sealing
import Synchronization
import Testing

@testable import Blobs
@testable import Etcd

/// An encrypted account in a cluster: blobs in rows, the fence, and the rows that it had unencrypted.
@Suite struct EtcdSealedTests {
    private static let store = "org.example.Notes"
    private let cluster = ModelCluster()

    private static func held(_ seed: UInt64, plain: String? = nil) -> HeldKey {
        var held = HeldKey(time: seed, random: Dice(seed: seed).roll)
        if let plain = plain.flatMap({ KeyIdentifier($0) }) { held.former.plain = [plain] }
        return held
    }

    private func code(_ body: () async throws -> Void) async -> RemoteError.Code? {
        do { try await body() } catch let error as RemoteError { return error.code } catch {}
        return nil
    }

    private func device(_ name: String, seed: UInt64, _ protection: Protection) throws -> BackendDevice {
        BackendDevice(name, seed: seed, backend: try cluster.backend(protection))
    }

    /// Makes a device with an unencrypted account, to which it has written.
    private func plainDevice(hasParts: Bool = true) async throws -> BackendDevice {
        let device = try device("A", seed: 1, .none)
        try await device.signIn(creating: true)
        for key in 0..<300 { device.set(Self.store, "\(key)", .integer(Int64(key))) }
        if hasParts { device.set(Self.store, "large", .data([UInt8](repeating: 1, count: 1_400_000))) }
        device.set("other", "a", .string("b"))
        try await device.sync()
        return device
    }

    /// Moves a device's account to a key, up to the removal of its former form.
    private func move(_ device: BackendDevice, to next: HeldKey) async throws {
        device.backend = try cluster.backend(.moving(KeyMove(from: nil, to: next)))
        try #require(await device.pull())
        device.backend = try cluster.backend(.key(next))
        try await device.signIn(creating: false)
        try await device.push()
        try await device.sync()
    }

    // MARK: The remote

    @Test(arguments: BackendConformance.cases)
    func `blobs in a cluster conform`(to conformance: BackendConformance) async throws {
        try await conformance.run(on: cluster.remote(.testKey))
    }

    @Test(arguments: [0, 1, 2, 3] as [UInt64])
    func `requests and answers may be lost, and nothing of an encrypted account is`(_ seed: UInt64) async throws {
        let devices = try await BackendConformance.devices(3, cluster.remote(.testKey))
        let dice = Dice(seed: seed)
        cluster.onQuestion { _ in
            let number = dice.roll()
            return number % 3 == 0 ? (number % 2 == 0 ? .lost : .replyLost) : nil
        }
        for round in 0..<12 as Range<Int64> {
            for device in devices {
                device.set(Self.store, "\(device.name) \(round)", .integer(round))
                _ = await code { try await device.sync() }
                if round % 4 == 3 { _ = await code { try await device.collectGarbage() } }
            }
        }
        cluster.onQuestion(nil)
        try await BackendConformance.settle(devices)
        #expect(devices.allSatisfy { $0.values(Self.store).count == 36 })
    }

    @Test func `nothing is asked of the cluster beside three requests where nothing is new`() async throws {
        let a = try device("A", seed: 1, .testKey)
        try await a.signIn(creating: true)
        a.set(Self.store, "a", .integer(1))
        for _ in 0..<3 { try await a.sync() }
        let before = cluster.questions.count
        try await a.sync()
        #expect(cluster.questions.count - before <= 3)
        let rows = cluster.rows
        a.set(Self.store, "a", .integer(2))
        let start = cluster.questions.count
        try await a.sync()
        let written = cluster.questions[start...].filter { question in
            question.body["success"]?.elements.contains { $0["request_put"] != nil } == true
        }
        #expect(written.count == 1, "a small change is one transaction")
        let changed = cluster.rows.filter { rows[$0.key] != $0.value }.keys.sorted()
        #expect(changed == ["blob/changed", "blob/h/\(a.origin)"])
    }

    @Test(arguments: [Protection.none, .key(held(9)), .locked])
    func `who does not have the key is told so, and touches nothing`(_ protection: Protection) async throws {
        let a = try device("A", seed: 1, .testKey)
        try await a.signIn(creating: true)
        a.set(Self.store, "a", .integer(1))
        try await a.sync()
        #expect(cluster.rows["account"] == EtcdAccount.fence)
        let before = cluster.rows
        for creates in [false, true] {
            let other = try device("B", seed: 2, protection)
            #expect(await code { try await other.signIn(creating: creates) } == .keyNeeded)
            other.set(Self.store, "b", .integer(1))
            #expect(await code { try await other.push() } != nil)
        }
        #expect(cluster.rows == before)
    }

    @Test func `an account in rows is an unencrypted one to who comes with a key or a phrase`() async throws {
        _ = try await plainDevice()
        let before = cluster.rows
        let held = Self.held(8)
        for protection in [Protection.key(held), .phrase(RecoveryPhrase(of: held.key))] {
            let other = try device("B", seed: 2, protection)
            #expect(await code { try await other.signIn(creating: true) } == .unencrypted)
        }
        #expect(cluster.rows == before)
        try cluster.set("account", [3])
        #expect(await code { try await device("B", seed: 2, .key(held)).signIn(creating: true) } == .tooNew)
        #expect(await code { try await device("B", seed: 2, .none).signIn(creating: true) } == .tooNew)
    }

    @Test func `a fence that somebody has taken away is put up again with what is published next`() async throws {
        let a = try device("A", seed: 1, .testKey)
        try await a.signIn(creating: true)
        try cluster.set("account", nil)
        a.set(Self.store, "a", .integer(1))
        try await a.sync()
        #expect(cluster.rows["account"] == EtcdAccount.fence)
    }

    // MARK: Blobs

    @Test func `a segment that is too large for a row is in parts, and what is left of one goes`() async throws {
        let storage = try cluster.storage()
        let name = String(repeating: "ab", count: 16)
        let bytes = (0..<2_500_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
        try await storage.put("s/\(name)", bytes)
        #expect(
            cluster.rows.keys.sorted() == ["blob/s/\(name)"] + (0..<3).map { "blob/s/\(name)/00000\($0)" })
        #expect(cluster.rows["blob/s/\(name)/000002"]?.count == 500_000)
        #expect(try await storage.list("s").map(\.name) == [name])
        guard case .content(bytes, _) = try await storage.get("s/\(name)", limit: bytes.count, unless: nil) else {
            Issue.record("it is read as it was written")
            return
        }
        #expect(try await storage.get("s/\(name)", limit: bytes.count - 1, unless: nil) == .unreadable("is too large"))
        // First a part is lost, so the segment is damaged. Then the segment's own row is lost.
        try cluster.set("blob/s/\(name)/000001", nil)
        guard case .content(let rest, _) = try await storage.get("s/\(name)", limit: bytes.count, unless: nil) else {
            Issue.record("what is there is read")
            return
        }
        #expect(rest == Array(bytes.prefix(1_000_000)))
        try cluster.set("blob/s/\(name)", nil)
        #expect(try await storage.get("s/\(name)", limit: bytes.count, unless: nil) == .absent)
        let listed = try await storage.list("s").map(\.name)
        #expect(listed == [".\(name).0.tmp"] && listed.allSatisfy(BlobName.isTemporary))
        try await storage.delete("s/\(listed[0])")
        #expect(cluster.rows.isEmpty)
    }

    @Test func `parts of a segment that was written meanwhile stay, and a segment goes with its parts`() async throws {
        let storage = try cluster.storage()
        let name = String(repeating: "ab", count: 16)
        try await storage.put("s/\(name)", [UInt8](repeating: 1, count: 1_000_001))
        try await storage.delete("s/.\(name).0.tmp")
        #expect(cluster.rows.count == 3)
        try await storage.delete("s/\(name)")
        #expect(cluster.rows.isEmpty)
    }

    @Test func `a head that is larger than a row is refused`() async throws {
        let storage = try cluster.storage()
        #expect(
            await code { try await storage.put("h/00000000000000aa", [UInt8](repeating: 1, count: 1_000_001)) } == .full
        )
        #expect(cluster.rows.isEmpty)
    }

    @Test func `a request that comes once more, long after, replaces and removes nothing that is newer`() async throws {
        let (storage, name) = (try cluster.storage(), "h/00000000000000aa")
        // This puts up the fence.
        try await storage.put(name, [0])
        try await storage.put(name, [1])
        let first = try #require(cluster.questions.last)
        try await storage.put(name, [2])
        try cluster.repeatQuestion(first)
        #expect(cluster.rows["blob/\(name)"] == [2])
        try await storage.delete(name)
        let removal = try #require(cluster.questions.last)
        try await storage.put(name, [3])
        for question in [first, removal] { try cluster.repeatQuestion(question) }
        #expect(cluster.rows["blob/\(name)"] == [3])
        // Another device's storage does not know the present row, and finds out.
        try await cluster.storage().put(name, [4])
        #expect(cluster.rows["blob/\(name)"] == [4])
    }

    @Test func `a listing goes over pages, and ends where a cluster answers without end`() async throws {
        let storage = try cluster.storage()
        for number in 0..<4100 { try cluster.set("blob/h/\(UInt64(number).hexDigits)", [1]) }
        for number in 0..<10 { try cluster.set("blob/h/strange\(number)", [1]) }
        #expect(try await storage.list("h").count == 4100)
        let range = EtcdRange(under: [1])
        var names = EtcdNames(in: range.key, areSegments: false)
        let row = Value.dictionary(["key": .base64([1, 2]), "mod_revision": .string("5")])
        let page = try EtcdRows(.dictionary(["kvs": .array([row]), "more": .boolean(true)]), to: range)
        #expect(try names.take(page) == [1, 2, 0])
        #expect(throws: EtcdBackend.corrupt) { _ = try names.take(page) }
        let foreign = Value.dictionary(["key": .base64([2]), "mod_revision": .string("5")])
        #expect(throws: EtcdFlaw.self) { _ = try EtcdRows(.dictionary(["kvs": .array([foreign])]), to: range) }
        var endless = EtcdNames(in: [1], areSegments: false)
        #expect(throws: RemoteError.self) {
            for number in 0..<1000 {
                let key = [1] + Array("\(10_000 + number)".utf8)
                let row = Value.dictionary(["key": .base64(key), "mod_revision": .string("5")])
                let page = Value.dictionary(["kvs": .array([row]), "more": .boolean(true)])
                _ = try endless.take(try EtcdRows(page, to: range))
            }
        }
    }

    // MARK: Moving

    @Test func `the rows of an account that has moved go, wherever that is cut, and say nothing wrong meanwhile`()
        async throws
    {
        var cut = 0
        var isCut = true
        while isCut {
            let world = EtcdSealedTests()
            let a = try await world.plainDevice(hasParts: cut == 0)
            let next = Self.held(8, plain: a.account)
            try await world.move(a, to: next)
            let count = Mutex(0)
            let limit = cut
            world.cluster.onQuestion { _ in
                count.withLock { count in
                    count += 1
                    return count > limit ? (limit % 2 == 0 ? .lost : .replyLost) : nil
                }
            }
            let holding = try #require(a.backend as? any KeyHolding)
            isCut = await code { try await holding.removeFormerForms() } != nil
            world.cluster.onQuestion(nil)
            // A device that reads the remaining rows finds nothing deleted.
            let rows = EtcdBackend(try world.cluster.client(), world.cluster.environment)
            await rows.read(moving: RemoteAccount(identifier: a.account))
            let late = BackendDevice("late", seed: 9, backend: rows)
            let pull = try await rows.pull(after: nil, as: late.origin)
            for store in pull.stores {
                let change = try await pull.change(of: store)
                let (state, known) = (change.states.state, try #require(a.stores[store]))
                let dots = Set(state.entries.values.map(\.dot))
                let isWhole = known.entries.values.allSatisfy {
                    !state.vector.contains($0.dot) || dots.contains($0.dot)
                }
                #expect(isWhole, "cut at \(cut)")
            }
            try await holding.removeFormerForms()
            #expect(world.cluster.rows.keys.allSatisfy { $0 == "account" || $0.hasPrefix("blob/") }, "cut at \(cut)")
            #expect(world.cluster.rows.keys.filter { $0.hasPrefix("blob/a/") }.count == 2)
            #expect(try await a.sync())
            cut += 1
        }
        #expect(cut > 10)
    }

    @Test func `rows that may be another account's stay`() async throws {
        let a = try await plainDevice()
        let next = Self.held(8, plain: a.account)
        try await move(a, to: next)
        let other = Bits128(high: 9, low: 9)
        try cluster.set("blob/a/\(other)", AccountMarker(identifier: other, time: 0).encoded())
        let before = cluster.rows.keys.filter { !$0.hasPrefix("blob/") }.sorted()
        try await (a.backend as? any KeyHolding)?.removeFormerForms()
        #expect(cluster.rows.keys.filter { !$0.hasPrefix("blob/") }.sorted() == before)
        #expect(cluster.rows["blob/a/\(other)"] != nil)
    }

    @Test func `a device that writes in rows is stopped by the fence, between any two of its transactions`()
        async throws
    {
        let a = try await plainDevice()
        let b = try device("B", seed: 2, .none)
        try await b.signIn(creating: false)
        try await b.sync()
        for key in 0..<300 { b.set(Self.store, "late \(key)", .integer(1)) }
        let next = Self.held(8, plain: a.account)
        let count = Mutex(0)
        cluster.onQuestion { question in
            let writes = question.body["success"]?.elements.contains { $0["request_put"] != nil } == true
            return writes
                && count.withLock {
                    $0 += 1; return $0 > 1
                } ? .lost : nil
        }
        #expect(await code { try await b.sync() } == .unavailable)
        cluster.onQuestion(nil)
        a.backend = try cluster.backend(.moving(KeyMove(from: nil, to: next)))
        try #require(await a.pull())
        let before = cluster.rows
        #expect(await code { try await b.sync() } == .keyNeeded)
        #expect(cluster.rows == before)
    }
}
