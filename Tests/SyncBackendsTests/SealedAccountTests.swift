// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import Foundation
import PropertyList
import Replication
import Sealing
import Synchronization
import Testing

@testable import BackendSupport
@testable import Blobs

/// An account under a key: which devices can open it, and what they do with what others put there.
@Suite struct SealedAccountTests {
    private let store = "org.example.Notes"
    private static let held = Protection.testKey.held

    private static func key(_ seed: UInt64) -> HeldKey { HeldKey(time: 5, random: Dice(seed: seed).roll) }

    private static let secret = Value.string("a secret of nobody's business")

    private func device(_ name: String, on storage: MemoryStorage, _ protection: Protection) throws -> BackendDevice {
        BackendDevice(
            name, seed: UInt64(name.utf8.reduce(1) { $0 &* 31 &+ Int($1) }),
            backend: try FaultConformance.remote(storage, protection).makeBackend())
    }

    /// Makes a device with an encrypted account, to which it has written.
    private func world() async throws -> (MemoryStorage, BackendDevice, HeldKey) {
        let (storage, held) = (MemoryStorage(), try #require(Self.held))
        let device = try device("A", on: storage, .key(held))
        try await device.signIn(creating: true)
        device.set(store, "good", Self.secret)
        for key in 0..<40 { device.set("other", "\(key)", .data([UInt8](repeating: 1, count: 100))) }
        try await device.sync()
        return (storage, device, held)
    }

    private func code(_ body: () async throws -> Void) async -> RemoteError.Code? {
        do { try await body() } catch let error as RemoteError { return error.code } catch {}
        return nil
    }

    // MARK: Unlocking

    @Test func `a device with the phrase comes in, with the key it had before, and reads all of it`() async throws {
        let (storage, a, held) = try await world()
        let b = try device("B", on: storage, .phrase(RecoveryPhrase(of: held.key)))
        try await b.signIn(creating: false)
        #expect(b.account == "\(held.key.identifier)" && a.account == b.account)
        #expect(await (b.backend as? any KeyHolding)?.heldKey == held)
        #expect(try await b.sync())
        #expect(b.stores == a.stores)
    }

    @Test func `what the account was called before counts only if a holder of its key has said so`() async throws {
        let (storage, a, held) = try await world()
        let (said, made) = (KeyIdentifier(high: 7, low: 1), KeyIdentifier(high: 7, low: 2))
        let guessed = try #require(
            AccountKey(secret: [UInt8](repeating: 3, count: 16), identifier: held.key.identifier))
        for note in [
            FormerName(said, of: held.key), FormerName(made, of: guessed), FormerName(made, of: Self.key(3).key),
        ] {
            storage.blobs["a/\(note.noteName)"] = note.note()
        }
        let b = try device("B", on: storage, .phrase(RecoveryPhrase(of: held.key))).backend
        #expect(try await b.open(creatingAccount: false).formerNames == ["\(said)"])
        #expect(try await b.pull(after: nil, as: a.origin).account.formerNames == ["\(said)"])
    }

    @Test func `what somebody has put in the place of a note is put right`() async throws {
        let (storage, a, held) = try await world()
        let note = FormerName(KeyIdentifier(high: 7, low: 1), of: held.key)
        storage.blobs["a/\(note.noteName)"] = [UInt8](repeating: 1, count: 600)
        let holding = try #require(a.backend as? any KeyHolding)
        try await holding.noteJoining(from: nil, FormerForms(plain: [note.name]))
        #expect(storage.blobs["a/\(note.noteName)"] == note.note())
    }

    @Test func `without the key nothing is read, written or removed`() async throws {
        let (storage, _, _) = try await world()
        let before = storage.blobs
        for protection in [Protection.none, .locked] {
            for creating in [false, true] {
                let other = try device("B", on: storage, protection)
                #expect(await code { try await other.signIn(creating: creating) } == .keyNeeded)
            }
            let other = try device("B", on: storage, protection)
            #expect(await code { try await other.pull() } == .keyNeeded)
            other.set(store, "mine", .integer(1))
            #expect(await code { try await other.push() } == .keyNeeded)
            #expect(await code { try await other.collectGarbage() } == .keyNeeded)
            #expect(await code { _ = try await other.backend.restore("\(Bits128(high: 1, low: 1))") } == .keyNeeded)
        }
        #expect(storage.blobs == before)
    }

    @Test func `a locked device finds an emptied remote emptied, and makes nothing there`() async throws {
        let storage = MemoryStorage()
        let locked = try device("B", on: storage, .locked)
        #expect(await code { try await locked.signIn(creating: true) } == .keyNeeded)
        #expect(await code { try await locked.pull() } == .reset)
        #expect(storage.blobs.isEmpty)
    }

    @Test func `another phrase is wrong, and one for a remote without encryption or an account is said to be`()
        async throws
    {
        let (storage, _, _) = try await world()
        let other = RecoveryPhrase(of: Self.key(5).key)
        #expect(await code { try await device("B", on: storage, .phrase(other)).signIn(creating: true) } == .keyWrong)
        let plain = MemoryStorage()
        #expect(await code { try await device("B", on: plain, .phrase(other)).signIn(creating: true) } == .noAccount)
        #expect(plain.blobs.isEmpty)
        try await device("A", on: plain, .none).signIn(creating: true)
        #expect(await code { try await device("B", on: plain, .phrase(other)).signIn(creating: true) } == .unencrypted)
        #expect(
            await code { try await device("B", on: plain, .key(Self.key(5))).signIn(creating: true) } == .unencrypted)
        #expect(plain.blobs.count == 1)
    }

    @Test func `a phrase that was replaced is told apart from a wrong one`() async throws {
        let (storage, _, held) = try await world()
        let next = Self.key(6)
        let link = KeyLink(from: held.key, to: next.key.identifier, .replaced)
        storage.blobs["a/\(next.key.identifier)"] = SealedMarker(of: next.key, time: 6, links: [link]).bytes
        storage.blobs["a/\(link.noteName)"] = link.note()
        let device = try device("B", on: storage, .phrase(RecoveryPhrase(of: held.key)))
        do { try await device.signIn(creating: false) } catch {
            #expect(error.code == .keyWrong && error.message.contains("replaced"))
        }
    }

    @Test func `of two devices that make an account at once one gives way, and its marker goes`() async throws {
        let (small, large) = (Self.key(1), Self.key(2))
        let keys = [small, large].sorted { $0.key.identifier < $1.key.identifier }
        let storage = MemoryStorage()
        let backend = BlobBackend(
            storage: RacedStorage(storage, name: "a/\(keys[0].key.identifier)", bytes: keys[0].marker.bytes),
            environment: .system, protection: .key(keys[1]))
        let device = BackendDevice("B", seed: 3, backend: backend)
        #expect(await code { try await device.signIn(creating: true) } == .keyNeeded)
        #expect(Array(storage.blobs.keys) == ["a/\(keys[0].key.identifier)"])
    }

    @Test func `the marker of an account that others have stays, though a listing lacked it`() async throws {
        let (planted, held) = (Self.key(1), Self.key(2))
        let keys = [planted, held].sorted { $0.key.identifier < $1.key.identifier }
        let storage = MemoryStorage()
        let first = try device("A", on: storage, .key(keys[1]))
        try await first.signIn(creating: true)
        first.set(store, "mine", .integer(1))
        try await first.sync()
        storage.blobs["a/\(keys[0].key.identifier)"] = keys[0].marker.bytes
        let listings = Atomic(0)
        storage.onRequest { request in
            guard request.action == .list, request.name == "a" else { return nil }
            return listings.add(1, ordering: .relaxed).oldValue == 0 ? .blind : nil
        }
        let device = try device("B", on: storage, .key(keys[1]))
        #expect(await code { try await device.signIn(creating: true) } == .keyNeeded)
        #expect(storage.blobs["a/\(keys[1].key.identifier)"] == keys[1].marker.bytes)
    }

    @Test(arguments: [Protection.none, .key(key(1))], [(1, true), (2, false)])
    func `an account is gone once two listings lack its marker`(
        _ protection: Protection, _ lapse: (listings: Int, isIgnored: Bool)
    ) async throws {
        let storage = MemoryStorage()
        let device = try device("A", on: storage, protection)
        try await device.signIn(creating: true)
        try await device.sync()
        let listings = Atomic(0)
        storage.onRequest { request in
            guard request.action == .list, request.name == "a" else { return nil }
            return listings.add(1, ordering: .relaxed).oldValue < lapse.listings ? .blind : nil
        }
        // Each twentieth pull reads the markers.
        let gone = await code { for _ in 0..<20 { try await device.pull() } }
        #expect(gone == (lapse.isIgnored ? nil : .reset))
    }

    // MARK: Attacks

    @Test func `what is unencrypted beside an encrypted account is not believed`() async throws {
        let (storage, a, held) = try await world()
        let plain = MemoryStorage()
        let thief = try device("T", on: plain, .none)
        try await thief.signIn(creating: true)
        thief.set(store, "good", .string("planted"))
        try await thief.sync()
        storage.blobs.merge(plain.blobs) { $1 }
        let before = a.stores
        try await a.sync()
        #expect(a.stores == before)
        let sentence = "The file h/\(thief.origin) is not under the account's key and is skipped."
        #expect(a.problems.count == 1 && a.problems.first?.hasPrefix(sentence) == true)
        let b = try device("B", on: storage, .phrase(RecoveryPhrase(of: held.key)))
        try await b.signIn(creating: false)
        _ = try await b.pull()
        #expect(b.stores == before)
    }

    @Test func `a head is not taken under another origin's name, of another account, or altered anywhere`()
        async throws
    {
        let (storage, a, held) = try await world()
        let b = try device("B", on: storage, .key(held))
        try await b.signIn(creating: false)
        try await b.sync()
        b.set(store, "mine", .integer(1))
        try await b.sync()
        let (name, whole) = ("h/\(b.origin)", try #require(storage.blobs["h/\(b.origin)"]))
        let before = a.stores
        // One bit is flipped, and the sum is right: without the key no one can make a head that opens.
        for place in [6, 20, 25, 31, 70, 200, whole.count - 40] {
            var forged = Array(whole.dropLast(32))
            forged[place] ^= 1
            var encoder = CanonicalEncoder()
            encoder.raw(forged)
            storage.blobs[name] = Envelope.seal(encoder)
            try await a.sync()
            #expect(a.stores == before, "\(place)")
            #expect(a.problems.count == 1 && a.problems[0].hasPrefix("The file \(name) is "), "\(a.problems)")
        }
        storage.blobs[name] = whole
        try await a.sync()
        #expect(a.stores == b.stores)
    }

    @Test func `a segment under another's name is damaged, and its writer puts the right one there`() async throws {
        let (storage, a, held) = try await world()
        for key in 0..<300 { a.set("big", "\(key)", .data([UInt8](repeating: UInt8(key % 250), count: 900))) }
        // By now the device has noted the versions of its segments.
        for _ in 0..<25 { try await a.sync() }
        let names = storage.blobs.keys.filter { $0.hasPrefix("s/") }.sorted()
        try #require(names.count > 2)
        let whole = storage.blobs
        storage.blobs[names[0]] = whole[names[1]]
        var cut = try #require(whole[names[1]])
        cut[5] = 9
        storage.blobs[names[1]] = cut
        let b = try device("B", on: storage, .key(held))
        try await b.signIn(creating: false)
        #expect(try await b.pull() == false)
        #expect(!b.problems.isEmpty && b.problems.allSatisfy { $0.hasSuffix(" is damaged.") }, "\(b.problems)")
        for _ in 0..<25 { try await a.sync() }
        #expect(try await b.sync())
        #expect(b.stores == a.stores)
    }

    @Test func `a smaller marker that somebody planted stops a device until its user rejects it`() async throws {
        let (storage, a, _) = try await world()
        let planted = try #require(
            (1...50).lazy.map(Self.key).first { $0.key.identifier < (Self.held?.key.identifier ?? $0.key.identifier) })
        storage.blobs["a/\(planted.key.identifier)"] = planted.marker.bytes
        a.set(store, "more", .integer(1))
        let before = storage.blobs
        #expect(await code { for _ in 0..<25 { try await a.sync() } } == .keyNeeded, "it stops, and sends nothing")
        #expect(storage.blobs["a/\(planted.key.identifier)"] == before["a/\(planted.key.identifier)"])
        try await (a.backend as? any KeyHolding)?.rejectOtherKeys(andSuccessors: false)
        try await a.sync()
        #expect(storage.blobs["a/\(planted.key.identifier)"] == before["a/\(planted.key.identifier)"])
        #expect(storage.blobs.contains { $0.key.hasPrefix("h/") && before[$0.key] != $0.value })
    }

    @Test func `the right words name other keys that are in the way, and count once those are rejected`() async throws {
        let (storage, _, held) = try await world()
        let planted = try #require(
            (1...50).lazy.map(Self.key).first { $0.key.identifier < held.key.identifier })
        storage.blobs["a/\(planted.key.identifier)"] = planted.marker.bytes
        let b = try device("B", on: storage, .phrase(RecoveryPhrase(of: held.key)))
        let before = storage.blobs
        do throws(RemoteError) {
            _ = try await b.backend.open(creatingAccount: false)
            Issue.record("it came in")
        } catch {
            #expect(error.code == .otherKeys)
            #expect(error.message.contains("\(planted.key.identifier) (made 1970-01-01 00:00 UTC)"), "\(error)")
        }
        #expect(storage.blobs == before)
        try await (b.backend as? any KeyHolding)?.rejectOtherKeys(andSuccessors: false)
        try await b.signIn(creating: false)
        #expect(try await b.sync())
        #expect(await (b.backend as? any KeyHolding)?.heldKey?.rejected == [planted.key.identifier])
    }

    @Test func `a key is kept whose move gave way to a marker that somebody planted`() async throws {
        let (storage, a, held) = try await world()
        let planted = try #require((1...50).lazy.map(Self.key).first { $0.key.identifier < held.key.identifier })
        storage.blobs["a/\(planted.key.identifier)"] = planted.marker.bytes
        // The move's marker is gone, and its note stays.
        let link = KeyLink(from: held.key, to: Self.key(60).key.identifier, .replaced)
        storage.blobs["a/\(link.noteName)"] = link.note()
        #expect(await code { for _ in 0..<25 { try await a.sync() } } == .keyNeeded)
        try await (a.backend as? any KeyHolding)?.rejectOtherKeys(andSuccessors: false)
        try await a.sync()
    }

    @Test func `a key that was replaced by one who had it can't be kept`() async throws {
        let (storage, a, held) = try await world()
        let next = Self.key(7)
        let link = KeyLink(from: held.key, to: next.key.identifier, .replaced)
        storage.blobs["a/\(next.key.identifier)"] = SealedMarker(of: next.key, time: 6, links: [link]).bytes
        await #expect {
            for _ in 0..<25 { try await a.sync() }
        } throws: { error in
            (error as? RemoteError)?.code == .keyNeeded && (error as? RemoteError)?.reason == .keyReplaced
        }
        let holding = try #require(a.backend as? any KeyHolding)
        #expect(await code { try await holding.rejectOtherKeys(andSuccessors: false) } == .keyNeeded)
        // If a thief replaced it, the user can take the key back, in order to replace it.
        try await holding.rejectOtherKeys(andSuccessors: true)
        try await a.sync()
    }

    @Test func `an own marker that was altered is written anew, and one that is gone is said to be`() async throws {
        let (storage, a, held) = try await world()
        let name = "a/\(held.key.identifier)"
        let whole = try #require(storage.blobs[name])
        let forged = SealedMarker(
            of: try #require(AccountKey(secret: Self.key(9).key.secretData, identifier: held.key.identifier)),
            time: 5, links: [])
        var flipped = whole
        flipped[30] ^= 1
        for damaged in [forged.bytes, flipped, Array(whole.dropLast(9)), []] {
            storage.blobs[name] = damaged
            for _ in 0..<25 where storage.blobs[name] != whole { try await a.sync() }
            #expect(storage.blobs[name] == whole)
            storage.blobs[name] = damaged
            let again = try device("C", on: storage, .key(held))
            try await again.signIn(creating: false)
            #expect(storage.blobs[name] == whole)
        }
        storage.blobs = [:]
        #expect(await code { try await a.sync() } == .reset)
        _ = try await a.backend.restore(a.account)
        #expect(storage.blobs[name] == whole)
        try await a.sync()
        #expect(storage.blobs.keys.contains { $0.hasPrefix("h/") })
    }

    @Test func `a marker that was an unencrypted one for a while is what it is now, at every poll`() async throws {
        let (storage, a, held) = try await world()
        let name = "a/\(held.key.identifier)"
        let whole = try #require(storage.blobs[name])
        // As long as a head under another key is there, each poll reads the markers.
        let elsewhere = MemoryStorage()
        let stranger = try device("S", on: elsewhere, .key(Self.key(9)))
        try await stranger.signIn(creating: true)
        stranger.set(store, "good", Self.secret)
        try await stranger.sync()
        storage.blobs.merge(elsewhere.blobs.filter { $0.key.hasPrefix("h/") }) { own, _ in own }
        storage.blobs[name] = AccountMarker(identifier: Bits128(held.key.identifier), time: 5).encoded()
        #expect(await code { for _ in 0..<25 { try await a.sync() } } == .reset)
        storage.blobs[name] = whole
        var codes: [RemoteError.Code?] = []
        for _ in 0..<60 { codes.append(await code { try await a.sync() }) }
        let first = try #require(codes.firstIndex(of: nil))
        #expect(codes[first...].allSatisfy { $0 == nil }, "\(codes)")
    }

    @Test func `of 10,000 notes of each kind and 300 markers 256 of each are read, and they move nobody`() async throws
    {
        let (storage, a, held) = try await world()
        var blobs = storage.blobs
        for number in 0..<10_000 as Range<UInt64> {
            for kind in ["01", "02", "03", "04"] {
                blobs["a/\(held.key.identifier)\(KeyIdentifier(high: 7, low: number))\(kind)"] = [1]
            }
        }
        storage.blobs = blobs
        storage.requests = []
        // Unreadable notes say nothing, and the account is as it was.
        for _ in 0..<21 { try await a.sync() }
        let asked = Set(storage.requests.filter { $0.action == .get && $0.name.hasPrefix("a/") }.map(\.name))
        #expect(asked.count <= 1 + 2 * 256)
        // Whole notes with guessed proofs say nothing either.
        let guessed = try #require(
            AccountKey(secret: [UInt8](repeating: 3, count: 16), identifier: held.key.identifier))
        for number in 0..<10_000 as Range<UInt64> {
            for kind in [KeyLink.Kind.replaced, .joined, .gaveWay] {
                let note = KeyLink(from: guessed, to: KeyIdentifier(high: 7, low: number), kind)
                blobs["a/\(note.noteName)"] = note.note()
            }
        }
        storage.blobs = blobs
        let b = try device("B", on: storage, .phrase(RecoveryPhrase(of: held.key)))
        try await b.signIn(creating: false)
        #expect(try await b.sync())
        #expect(b.stores == a.stores)
        for number in 0..<300 as Range<UInt64> {
            let identifier = KeyIdentifier(high: 0, low: number)
            let key = try #require(AccountKey(secret: [UInt8](repeating: 3, count: 16), identifier: identifier))
            let marker = SealedMarker(of: key, time: 1, links: [])
            blobs["a/\(marker.identifier)"] = marker.bytes
        }
        storage.blobs = blobs
        storage.requests = []
        _ = await code { for _ in 0..<21 { try await a.sync() } }
        let markers = Set(storage.requests.filter { $0.action == .get && $0.name.utf8.count == 34 }.map(\.name))
        #expect(markers.count <= 257)
        // A device that has only the words is told that not all keys were tried.
        let c = try device("C", on: storage, .phrase(RecoveryPhrase(of: held.key)))
        do throws(RemoteError) {
            _ = try await c.backend.open(creatingAccount: false)
            Issue.record("it came in")
        } catch {
            #expect(error.code == .keyWrong && error.message.contains("first 256 keys"), "\(error)")
        }
        // A device with the key continues once the others are rejected.
        try await (a.backend as? any KeyHolding)?.rejectOtherKeys(andSuccessors: false)
        try await a.sync()
    }
}

/// A storage in which another device creates a blob just before each creation.
private final class RacedStorage: BlobStorage {
    private let base: MemoryStorage
    private let name: String
    private let bytes: [UInt8]

    init(_ base: MemoryStorage, name: String, bytes: [UInt8]) {
        (self.base, self.name, self.bytes) = (base, name, bytes)
    }

    var traits: BackendTraits { base.traits }
    func check(creatingFolder: Bool) async throws(RemoteError) -> [String] {
        try await base.check(creatingFolder: creatingFolder)
    }
    func list(_ folder: String) async throws(RemoteError) -> [BlobListing] { try await base.list(folder) }
    func get(_ name: String, limit: Int, unless version: String?) async throws(RemoteError) -> BlobContent {
        try await base.get(name, limit: limit, unless: version)
    }
    func put(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) { try await base.put(name, bytes) }
    func create(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) {
        base.blobs[self.name] = self.bytes
        try await base.create(name, bytes)
    }
    func delete(_ name: String) async throws(RemoteError) { try await base.delete(name) }
    func hints() -> AsyncStream<Void> { base.hints() }
    func close() {}
}
