// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import PropertyList
import Replication
import Sealing
import Synchronization
import Testing

@testable import BackendSupport
@testable import Blobs

/// An account that moves to a key: cut at every request, while other devices write.
@Suite struct MovingTests {
    private let store = "org.example.Notes"

    private static func held(_ seed: UInt64, after former: HeldKey? = nil, plain: String? = nil) -> HeldKey {
        var held = HeldKey(replacing: former, time: seed, random: Dice(seed: seed).roll)
        if let former { held.former.keys = former.former.keys.union([former.key.identifier]) }
        if let plain = plain.flatMap({ KeyIdentifier($0) }) { held.former.plain = [plain] }
        return held
    }

    /// The remotes of the accounts that move.
    enum Remote: CaseIterable { case blobs, cluster }

    /// Two devices with an account, each of which has written to it.
    private struct World {
        let storage = MemoryStorage()
        let cluster: ModelCluster?
        let former: HeldKey?
        let (a, b): (BackendDevice, BackendDevice)

        init(_ former: HeldKey?, in remote: Remote = .blobs) async throws {
            self.former = former
            let (storage, cluster) = (storage, remote == .cluster ? ModelCluster() : nil)
            self.cluster = cluster
            let protection = former.map { Protection.key($0) } ?? .none
            let backend = { try Self.backend(protection, cluster, storage) }
            a = BackendDevice("A", seed: 1, backend: try backend())
            b = BackendDevice("B", seed: 2, backend: try backend())
            try await a.signIn(creating: true)
            a.set("org.example.Notes", "a", .string("plain truth"))
            try await a.sync()
            try await b.signIn(creating: false)
            try await b.sync()
            b.set("org.example.Notes", "b", .integer(1))
            for key in 0..<100 { b.set("org.example.Notes", "\(key)", .data([UInt8](repeating: 7, count: 100))) }
            try await b.sync()
            try await a.sync()
        }

        func backend(_ protection: Protection) throws -> any RemoteBackend {
            try Self.backend(protection, cluster, storage)
        }

        private static func backend(
            _ protection: Protection, _ cluster: ModelCluster?, _ storage: MemoryStorage
        ) throws -> any RemoteBackend {
            try cluster?.backend(protection) ?? FaultConformance.remote(storage, protection).makeBackend()
        }

        /// Lets so many requests through, and fails all others; `nil` lets all of them through.
        func cut(after limit: Int?, losingAnswers: Bool = false) {
            let count = Mutex(0)
            let isCut = { @Sendable in
                limit.map { limit in
                    count.withLock {
                        $0 += 1; return $0 > limit
                    }
                } ?? false
            }
            storage.onRequest { _ in isCut() ? (losingAnswers ? .replyLost : .lost) : nil }
            cluster?.onQuestion { _ in isCut() ? (losingAnswers ? .replyLost : .lost) : nil }
        }

        /// Removes everything from the remote.
        func empty() throws {
            storage.blobs = [:]
            for name in cluster?.rows.keys.sorted() ?? [] { try cluster?.set(name, nil) }
        }

        /// Whether the remote has a key's marker.
        func hasMarker(of key: HeldKey) -> Bool {
            let name = "a/\(key.key.identifier)"
            return cluster.map { $0.rows["blob/" + name] != nil } ?? (storage.blobs[name] != nil)
        }

        /// Continues a move. `hasGoneOver` stands for what a service keeps on its disk.
        func move(_ device: BackendDevice, to next: HeldKey, _ hasGoneOver: inout Bool) async throws {
            if !hasGoneOver {
                device.backend = try backend(.moving(KeyMove(from: former, to: next)))
                guard try await device.pull() else { throw RemoteError(.unavailable, "not all is there") }
            }
            device.backend = try backend(.key(next))
            try await device.signIn(creating: false)
            hasGoneOver = true
            try await device.push()
            try await device.sync()
        }

        func unlock(_ device: BackendDevice, _ next: HeldKey) async throws {
            device.backend = try backend(.phrase(RecoveryPhrase(of: next.key)))
            try await device.signIn(creating: false)
            try await device.sync()
        }
    }

    private func code(_ body: () async throws -> Void) async -> RemoteError.Code? {
        do { try await body() } catch let error as RemoteError { return error.code } catch {}
        return nil
    }

    @Test(arguments: [false, true], Remote.allCases)
    func `a move that is cut at any request goes on, and nothing that anybody has written is lost`(
        fromKey: Bool, in remote: Remote
    ) async throws {
        var cut = 0
        var isCut = true
        while isCut {
            let world = try await World(fromKey ? Self.held(7) : nil, in: remote)
            let next = Self.held(8, after: world.former, plain: fromKey ? nil : world.a.account)
            world.cut(after: cut, losingAnswers: cut % 2 == 1)
            var hasGoneOver = false
            isCut = await code { try await world.move(world.a, to: next, &hasGoneOver) } != nil
            world.cut(after: nil)
            // Meanwhile the other device continues in the former form as far as it can, or stops.
            world.b.set(store, "late", .integer(Int64(cut)))
            let stopped = await code { try await world.b.sync() }
            #expect(stopped == nil || stopped == .keyNeeded, "cut at \(cut): \(String(describing: stopped))")
            try await world.move(world.a, to: next, &hasGoneOver)
            // A device that has seen no head under another key may read the markers a little later.
            #expect(await code { for _ in 0..<21 { try await world.b.sync() } } == .keyNeeded, "cut at \(cut)")
            try await world.unlock(world.b, next)
            try await world.a.sync()
            #expect(world.a.stores == world.b.stores, "cut at \(cut)")
            #expect(world.a.values(store).count == 103, "cut at \(cut)")
            #expect(world.a.account == "\(next.key.identifier)" && world.b.account == world.a.account)
            cut += 1
        }
        #expect(cut > 10)
    }

    @Test func `nothing is written in the former form once a move has begun, and nothing of the new one before`()
        async throws
    {
        let world = try await World(nil)
        let next = Self.held(8, plain: world.a.account)
        world.a.backend = try world.backend(.moving(KeyMove(from: nil, to: next)))
        world.a.set(store, "more", .integer(1))
        world.storage.requests = []
        try await world.a.pull()
        #expect(await code { try await world.a.push() } == .unavailable)
        #expect(await code { try await world.a.collectGarbage() } == .unavailable)
        #expect(await code { try await world.a.signIn(creating: true) } == .unavailable)
        let written = world.storage.requests.filter { [.put, .create, .delete].contains($0.action) }
        let notes = next.formerNotes.map { "a/\($0.noteName)" }
        #expect(written.map(\.name) == ["a/\(next.key.identifier)"] + notes && notes.count == 1)
    }

    @Test(arguments: [false, true], Remote.allCases)
    func `a move whose remote is emptied goes on from the former form, once that is put back`(
        fromKey: Bool, in remote: Remote
    ) async throws {
        for hasBegun in [false, true] {
            let world = try await World(fromKey ? Self.held(7) : nil, in: remote)
            let next = Self.held(8, after: world.former, plain: fromKey ? nil : world.a.account)
            let former = world.a.account
            if hasBegun {
                world.a.backend = try world.backend(.moving(KeyMove(from: world.former, to: next)))
                try await world.a.pull()
            }
            try world.empty()
            world.a.backend = try world.backend(.moving(KeyMove(from: world.former, to: next)))
            #expect(await code { try await world.a.pull() } == .reset)
            #expect(try await world.a.backend.restore(former).identifier == former)
            var hasGoneOver = false
            try await world.move(world.a, to: next, &hasGoneOver)
            #expect(await code { for _ in 0..<21 { try await world.b.sync() } } == .keyNeeded)
            try await world.unlock(world.b, next)
            try await world.a.sync()
            #expect(world.a.stores == world.b.stores && world.a.values(store).count == 102)
        }
    }

    @Test(arguments: [false, true])
    func `the marker of a key that an account moves to is put right where somebody has damaged it`(
        fromKey: Bool
    ) async throws {
        let world = try await World(fromKey ? Self.held(7) : nil)
        let next = Self.held(8, after: world.former, plain: fromKey ? nil : world.a.account)
        world.a.backend = try world.backend(.moving(KeyMove(from: world.former, to: next)))
        try await world.a.pull()
        for key in [next, world.former].compactMap(\.self) {
            let name = "a/\(key.key.identifier)"
            world.storage.blobs[name]?[30] ^= 1
            world.a.backend = try world.backend(.moving(KeyMove(from: world.former, to: next)))
            #expect(try await world.a.pull())
            #expect(world.storage.blobs[name] == key.marker.bytes)
        }
        var hasGoneOver = false
        try await world.move(world.a, to: next, &hasGoneOver)
        #expect(await code { for _ in 0..<21 { try await world.b.sync() } } == .keyNeeded)
    }

    @Test(arguments: Remote.allCases)
    func `of two devices that move at once one gives way, and its marker goes`(in remote: Remote) async throws {
        let world = try await World(nil, in: remote)
        let keys = [Self.held(8, plain: world.a.account), Self.held(9, plain: world.a.account)]
            .sorted { $0.key.identifier < $1.key.identifier }
        world.a.backend = try world.backend(.moving(KeyMove(from: nil, to: keys[1])))
        try await world.a.pull()
        world.b.backend = try world.backend(.moving(KeyMove(from: nil, to: keys[0])))
        try await world.b.pull()
        // The device with the greater key has read everything, and checks once more.
        let late = try world.backend(.key(keys[1]))
        #expect(await code { _ = try await late.open(creatingAccount: false) } == .keyNeeded)
        world.a.backend = try world.backend(.moving(KeyMove(from: nil, to: keys[1])))
        #expect(await code { try await world.a.pull() } == .keyNeeded)
        #expect(!world.hasMarker(of: keys[1]))
        var hasGoneOver = false
        try await world.move(world.b, to: keys[0], &hasGoneOver)
        try await world.unlock(world.a, keys[0])
        try await world.b.sync()
        #expect(world.a.stores == world.b.stores)
    }

    @Test(arguments: Remote.allCases)
    func `a device that was away comes back with its own writes, after what was unencrypted is gone`(
        in remote: Remote
    ) async throws {
        let world = try await World(nil, in: remote)
        let next = Self.held(8, plain: world.a.account)
        world.b.set(store, "away", .string("kept"))
        var hasGoneOver = false
        try await world.move(world.a, to: next, &hasGoneOver)
        try await (world.a.backend as? any KeyHolding)?.removeFormerForms()
        #expect(await code { try await world.b.sync() } == .keyNeeded)
        try await world.unlock(world.b, next)
        try await world.a.sync()
        #expect(world.a.values(store)["away"] == .string("kept"))
        #expect(world.a.stores == world.b.stores)
    }

    @Test(arguments: [false, true])
    func `what is left of former forms goes, and nothing that is another account's`(fromKey: Bool) async throws {
        let world = try await World(fromKey ? Self.held(7) : nil)
        let next = Self.held(8, after: world.former, plain: fromKey ? nil : world.a.account)
        var hasGoneOver = false
        try await world.move(world.a, to: next, &hasGoneOver)
        #expect(world.a.problems == [], "what others have left is no problem")
        let strange = try await World(Self.held(5))
        // Both worlds' devices have the same origins.
        let planted = Dictionary(
            uniqueKeysWithValues: strange.storage.blobs.filter { !$0.key.hasPrefix("a/") }.map { name, bytes in
                (name.hasPrefix("h/") ? "h/b\(name.dropFirst(3))" : name, bytes)
            })
        try #require(world.storage.blobs.keys.allSatisfy { planted[$0] == nil })
        world.storage.blobs.merge(planted) { a, _ in a }
        world.storage.requests = []
        try await (world.a.backend as? any KeyHolding)?.removeFormerForms()
        #expect(world.storage.requests.filter { $0.action == .list && $0.name == "a" }.count == 1)
        let own = [UInt8]("UKVh".utf8) + [1, 2] + next.key.identifier.bytes
        for (name, bytes) in world.storage.blobs where planted[name] == nil && !name.hasPrefix("a/") {
            #expect(bytes.dropFirst(4).starts(with: own.dropFirst(4)), "\(name)")
        }
        for name in planted.keys { #expect(world.storage.blobs[name] != nil) }
        #expect(world.storage.blobs.keys.filter { $0.hasPrefix("a/") }.count == (fromKey ? 4 : 2))
        let before = world.a.stores
        let c = BackendDevice("C", seed: 3, backend: try world.backend(.phrase(RecoveryPhrase(of: next.key))))
        try await c.signIn(creating: false)
        try await c.pull()
        #expect(c.stores == before)
    }

    @Test func `unencrypted segments stay while an unencrypted head of another account is there`() async throws {
        let world = try await World(nil)
        let next = Self.held(8, plain: world.a.account)
        var hasGoneOver = false
        try await world.move(world.a, to: next, &hasGoneOver)
        let other = try await World(nil)
        // Both accounts' identifiers come from one generator.
        let head = try #require(other.storage.blobs.first { $0.key.hasPrefix("h/") })
        var written = try WrittenHead(decoding: head.value)
        written.head.account = Bits128(high: 9, low: 9)
        world.storage.blobs["h/00000000000000aa"] = written.encoded()
        try await (world.a.backend as? any KeyHolding)?.removeFormerForms()
        #expect(world.storage.blobs["h/00000000000000aa"] != nil)
        let plain = world.storage.blobs.filter { $0.key.hasPrefix("s/") && $0.value[5] == 0 }
        #expect(!plain.isEmpty)
    }

    @Test func `a former program finds a half-moved remote to be of a newer version`() async throws {
        let world = try await World(nil)
        let next = Self.held(8, plain: world.a.account)
        world.a.backend = try world.backend(.moving(KeyMove(from: nil, to: next)))
        try await world.a.pull()
        // Programs before this version stop at a marker whose wrapping they don't know.
        let marker = try #require(world.storage.blobs["a/\(next.key.identifier)"])
        #expect(throws: BlobFlaw.tooNew) { try AccountMarker(decoding: marker) }
        let before = world.storage.blobs
        let plain = try world.backend(.none)
        #expect(await code { _ = try await plain.open(creatingAccount: true) } == .keyNeeded)
        #expect(world.storage.blobs == before)
    }

    @Test(arguments: [false, true])
    func `a former program finds a sealed remote to be of a newer version, whatever it reads first`(
        isFormerFormRemoved: Bool
    ) async throws {
        let world = try await World(Self.held(7))
        let next = Self.held(8, after: world.former)
        var hasGoneOver = false
        try await world.move(world.a, to: next, &hasGoneOver)
        if isFormerFormRemoved { try await (world.a.backend as? any KeyHolding)?.removeFormerForms() }
        var read: [String: Int] = [:]
        for (name, bytes) in world.storage.blobs {
            read[String(name.prefix(2)), default: 0] += 1
            switch name.prefix(2) {
            // Such a program skips what has no marker's name: notes.
            case "a/" where Bits128(String(name.dropFirst(2))) == nil:
                let note = name.dropFirst(2)
                #expect(KeyLink(noteName: note) != nil || FormerName(noteName: note) != nil)
            case "a/": #expect(throws: BlobFlaw.tooNew) { try AccountMarker(decoding: bytes) }
            case "h/": #expect(throws: BlobFlaw.tooNew) { try WrittenHead(decoding: bytes) }
            // It reads segments that a head names, and gets no further than the heads.
            default: break
            }
        }
        #expect(read["a/"] == 4 && read["h/", default: 0] > 0, "\(read)")
    }
}
