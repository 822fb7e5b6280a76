// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import Foundation
import Glibc
import PropertyList
import Replication
import StoreEngine
import SyncEngine
import Testing

@testable import BackendSupport
@testable import Blobs
@testable import Folder
@testable import Simulation

/// Bad input from anyone who may write to the remote: a device names it, applies nothing of it, and syncs the rest.
@Suite struct BadInputTests {
    private let store = "org.example.Notes"

    /// Two devices on blobs in memory; the second one has written.
    private func world() async throws -> (MemoryStorage, BackendDevice, BackendDevice) {
        let storage = MemoryStorage()
        let devices = try await BackendConformance.devices(2, FaultConformance.remote(storage))
        devices[1].set(store, "good", .integer(1))
        for key in 0..<40 { devices[1].set("other", "\(key)", .data([UInt8](repeating: 1, count: 100))) }
        try await devices[1].sync()
        return (storage, devices[0], devices[1])
    }

    private func head(_ world: BackendDevice, _ parts: [String: WrittenPart], index: Bits128 = .zero) -> [UInt8] {
        WrittenHead(
            head: Head(
                account: Bits128(world.account) ?? .zero,
                origin: Origin(bits: 0xFF),
                sequence: 1,
                time: 1,
                device: RemoteDevice(identifier: "x", name: "x"),
                index: index,
                parts: [:]
            ),
            absent: [],
            parts: parts
        ).encoded()
    }

    private func part(_ digest: Bits128, _ base: [BaseSegment], _ tail: [Key: Entry] = [:]) -> WrittenPart {
        WrittenPart(
            digest: digest, vector: VersionVector([Origin(bits: 7): 9]), form: .whole(base), tail: tail, removed: [])
    }

    @Test func `a head of another account is named, and nothing of it joined`() async throws {
        let (storage, a, b) = try await world()
        let name = "h/00000000000000ff"
        var foreign = try WrittenHead(decoding: head(b, [store: part(.zero, [])]))
        foreign.head.account = Bits128(high: 5, low: 5)
        storage.blobs[name] = foreign.encoded()
        try await a.sync()
        #expect(a.stores == b.stores)
        #expect(a.problems == ["The file h/00000000000000ff belongs to another account and is skipped."])
    }

    @Test func `heads that are small as files and large in memory are counted as they are in memory`() async throws {
        let (storage, a, b) = try await world()
        let parts = Dictionary(uniqueKeysWithValues: (0..<400).map { ("store\($0)", part(.zero, [])) })
        let bytes = head(b, parts)
        #expect(bytes.count < 20_000)
        for name in ["00000000000000f0", "00000000000000f1", "00000000000000f2"] { storage.blobs["h/\(name)"] = bytes }
        a.backend = BlobBackend(
            storage: storage, environment: .system, executor: ThreadExecutor(), mostHeadBytes: 100_000)
        _ = try await a.pull()
        #expect(a.problems.contains("The heads in the folder h are too large together; some were not read."))
    }

    @Test func `what all accounts hold in memory is bounded, and an account that goes makes room`() async throws {
        let (storage, a, b) = try await world()
        let parts = Dictionary(uniqueKeysWithValues: (0..<400).map { ("store\($0)", part(.zero, [])) })
        for name in ["00000000000000f0", "00000000000000f1"] { storage.blobs["h/\(name)"] = head(b, parts) }
        let budget = RemoteBudget(limit: 6_000_000)
        func makeBackend() -> BlobBackend<MemoryStorage> {
            BlobBackend(storage: storage, environment: .system, executor: ThreadExecutor(), budget: budget)
        }
        var others: [RemoteBudget.Share] = []
        for _ in 0..<20 {
            let share = budget.share()
            // As much as the share may hold.
            while (try? share.hold { $0.kept += 100_000 }) != nil {}
            others.append(share)
        }
        a.backend = makeBackend()
        do {
            _ = try await a.pull()
            Issue.record("it was read")
        } catch {
            #expect(error.code == .unavailable)
        }
        others = []
        a.backend = makeBackend()
        _ = try await a.pull()
        #expect(!a.problems.contains { $0.contains("too large") })
    }

    @Test func `devices with as many stores as a user may have are read`() async throws {
        let (storage, a, b) = try await world()
        let stamp = Stamp(isProvisional: false, wall: 1, counter: 0, origin: b.origin)
        let entry = Entry(stamp: stamp, n: 1, value: [1])
        let tail = Dictionary(uniqueKeysWithValues: (0..<6).map { (Key(unchecked: "\($0)"), entry) })
        let parts = Dictionary(uniqueKeysWithValues: (0..<16_384).map { ("store\($0)", part(.zero, [], tail)) })
        for name in ["00000000000000f0", "00000000000000f1"] { storage.blobs["h/\(name)"] = head(b, parts) }
        a.backend = BlobBackend(
            storage: storage, environment: .system, executor: ThreadExecutor(), budget: RemoteBudget())
        _ = try await a.pull()
        #expect(!a.problems.contains { $0.contains("too large") || $0.contains("memory") })
    }

    @Test func `what decodes to much more than its bytes is refused before it is decoded`() async throws {
        let (storage, a, b) = try await world()
        // The shortest entries: each takes a hundred bytes in memory.
        let names = (0..<60_000).map { String($0, radix: 36) }
        let stamp = Stamp(isProvisional: false, wall: 1, counter: 0, origin: b.origin)
        let entry = Entry(stamp: stamp, n: 1, value: nil)
        let tail = Dictionary(uniqueKeysWithValues: names.map { (Key(unchecked: $0), entry) })
        storage.blobs["h/00000000000000f0"] = head(b, ["store": part(.zero, [], tail)])
        let budget = RemoteBudget(limit: 6_000_000)
        a.backend = BlobBackend(storage: storage, environment: .system, executor: ThreadExecutor(), budget: budget)
        let error = await #expect(throws: RemoteError.self) { _ = try await a.pull() }
        #expect(error?.code == .unavailable)
        // Nothing stays counted.
        try budget.share().hold { $0.kept = 2_900_000 }
    }

    @Test func `a server that shows other markers and heads at each poll is given up`() async throws {
        let (storage, a, b) = try await world()
        try await a.sync()
        let bytes = head(b, [store: part(.zero, [])])
        let restless = RestlessStorage(base: storage) { folder in
            if folder == BlobName.markers {
                let marker = AccountMarker(identifier: Bits128(high: .random(in: 1 ... .max), low: 1), time: 1)
                storage.blobs[BlobName.marker(marker.identifier)] = marker.encoded()
            } else if folder == BlobName.heads {
                let others = storage.blobs.filter { !$0.key.hasPrefix("h/") }
                let names = (0..<8).map { _ in BlobName.head(Origin(bits: .random(in: 1 ... .max))) }
                storage.blobs = others.merging(names.map { ($0, bytes) }) { $1 }
            }
        }
        a.backend = BlobBackend(storage: restless, environment: .system, executor: ThreadExecutor())
        // The first poll has no earlier heads to miss.
        _ = try await a.pull()
        storage.requests = []
        let error = await #expect(throws: RemoteError.self) { try await a.pull() }
        #expect(error?.code == .unavailable)
        #expect(storage.requests.count { $0.action == .list } < 20)
    }

    @Test func `however much accounts want to hold, the budget and its reserve are what they get`() {
        let budget = RemoteBudget(limit: 6 << 20)
        let shares = (0..<32).map { _ in budget.share() }
        var held = 0
        for share in shares {
            while (try? share.hold { $0.news += 64 << 10 }) != nil { held += 64 << 10 }
        }
        #expect(held <= 7 << 20 && held > 6 << 20, "\(held)")
        #expect(throws: RemoteError.self) { try budget.share().hold { $0.kept = 64 << 10 } }
        withExtendedLifetime(shares) {}
    }

    @Test func `a head that names more stores than anybody has is damaged`() throws {
        let parts = Dictionary(uniqueKeysWithValues: (0...Head.mostStores).map { ("store\($0)", part(.zero, [])) })
        var head = HeadTests.head
        (head.parts, head.absent) = (parts, [])
        #expect(throws: BlobFlaw.self) { try WrittenHead(decoding: head.encoded()) }
        head.parts["store0"] = nil
        #expect(try WrittenHead(decoding: head.encoded()).parts.count == Head.mostStores)
    }

    @Test func `a format or a wrapping newer than ours stops the sync and changes nothing`() async throws {
        let (storage, a, _) = try await world()
        for bytes: [UInt8] in [[2, 0], [1, 1]] {
            var encoder = CanonicalEncoder()
            encoder.raw(Envelope.head + bytes + [1, 2, 3])
            storage.blobs["h/00000000000000ff"] = Envelope.seal(encoder)
            do {
                try await a.sync()
                Issue.record("it was read")
            } catch {
                #expect(error.code == .tooNew)
            }
            #expect(a.stores.isEmpty)
        }
    }

    @Test func `what was written before format 1 is named and skipped`() async throws {
        let (storage, a, b) = try await world()
        var encoder = CanonicalEncoder()
        encoder.raw(Envelope.head + [0, 1, 2])
        storage.blobs["h/00000000000000ff"] = Envelope.seal(encoder)
        try await a.sync()
        #expect(a.stores == b.stores && a.problems.count == 1)
    }

    @Test func `segments and indexes that are not what their name says are named`() async throws {
        let (storage, a, b) = try await world()
        let whole = storage.blobs
        for name in whole.keys where name.hasPrefix("s/") {
            storage.blobs[name] = [1, 2, 3]
            let late = BackendDevice("late", seed: 9, backend: try FaultConformance.remote(storage).makeBackend())
            try await late.signIn(creating: false)
            #expect(try await late.pull() == false)
            #expect(late.problems == ["The file \(name) is damaged."])
            storage.blobs[name] = whole[name]
            #expect(try await late.pull())
            #expect(late.stores == b.stores)
        }
        try await a.sync()
        #expect(a.stores == b.stores)
    }

    @Test func `a part that makes no sense is named, and the other parts are joined`() async throws {
        let (storage, a, b) = try await world()
        let segment = Segment(store: "elsewhere", bucket: .whole, entries: [:]).encoded()
        let name = Bits128(digestOf: segment)
        storage.blobs["s/\(name)"] = segment
        let junk = Array("UKVs".utf8) + [1, 0, 9, 9, 9]
        storage.blobs["s/\(Bits128(digestOf: junk))"] = junk
        let stamp = Stamp(isProvisional: false, wall: 1, counter: 0, origin: Origin(bits: 7))
        let fine = StoreState(
            entries: [Key(unchecked: "k"): Entry(stamp: stamp, n: 9, value: [2])],
            vector: VersionVector([Origin(bits: 7): 9])
        )
        storage.blobs["h/00000000000000ff"] = head(
            b,
            [
                store: part(Bits128(high: 1, low: 1), []),
                "elsewhere.not": part(.zero, [BaseSegment(bucket: .whole, name: name)]),
                "junk": part(.zero, [BaseSegment(bucket: .whole, name: Bits128(digestOf: junk))]),
                "fine": part(StateDigests(of: fine, store: "fine").state, [], fine.entries),
            ]
        )
        // The head stays as it was written and never gets better, so nothing waits for it.
        #expect(try await a.sync())
        #expect(a.problems.count == 3)
        // A pull names it as long as it is there, also after a restart.
        try await a.sync()
        #expect(a.problems.count == 3)
        a.backend = try FaultConformance.remote(storage).makeBackend()
        try await a.signIn(creating: false)
        #expect(try await a.sync())
        #expect(a.problems.count == 3)
        storage.blobs["h/00000000000000ff"] = nil
        try await a.sync()
        #expect(a.problems.isEmpty)
        #expect(a.stores[store] == b.stores[store] && a.stores["other"] == b.stores["other"])
        #expect(a.stores["fine"] == fine)
        #expect(a.stores["junk"]?.vector.dots.isEmpty != false)
    }

    @Test func `what was published wrongly is joined once somebody has published it rightly`() async throws {
        let (storage, a, b) = try await world()
        let stamp = Stamp(isProvisional: false, wall: 1, counter: 0, origin: Origin(bits: 7))
        let right = StoreState(
            entries: [Key(unchecked: "k"): Entry(stamp: stamp, n: 9, value: [2])],
            vector: VersionVector([Origin(bits: 7): 9]))
        let digest = StateDigests(of: right, store: "late").state
        storage.blobs["h/00000000000000ff"] = head(b, ["late": part(digest, [])])
        try await a.sync()
        #expect(a.problems.count == 1 && a.stores["late"]?.entries.isEmpty != false)
        storage.blobs["h/00000000000000ff"] = head(b, ["late": part(digest, [], right.entries)])
        try await a.sync()
        #expect(a.problems.isEmpty && a.stores["late"] == right)
    }

    @Test func `what a device only claims to have is not published by others`() async throws {
        let (storage, a, b) = try await world()
        try await a.sync()
        for store in [store, "other"] {
            let state = try #require(b.stores[store])
            let claim = WrittenPart(
                digest: StateDigests(of: state, store: store).state, vector: state.vector, form: .whole([]),
                tail: [:],
                removed: [])
            storage.blobs["h/00000000000000ff"] = head(b, [store: claim])
            // One device publishes the store for the first time, the other has published it before.
            for device in [a, b] {
                device.set("another", device.name, .integer(1))
                try await device.sync()
            }
            storage.blobs["h/00000000000000ff"] = nil
            let late = BackendDevice("late", seed: 9, backend: try FaultConformance.remote(storage).makeBackend())
            try await late.signIn(creating: false)
            #expect(try await late.pull() && late.problems.isEmpty)
            #expect(late.stores[store] == state)
        }
    }

    @Test func `what adds nothing to what was seen is read all the same once its segments are there`() async throws {
        let (storage, a, b) = try await world()
        try await a.sync()
        // A device has seen a value go that others still have, and no tombstone tells of that any more.
        let mine = try #require(storage.blobs["h/\(b.origin)"])
        var claim = try #require(try WrittenHead(decoding: mine).parts["other"])
        var state = try #require(a.stores["other"])
        let key = try Key("7")
        state.entries[key] = nil
        claim.digest = StateDigests(of: state, store: "other").state
        claim.tail[key] = nil
        claim.removed.insert(key)
        let segments = storage.blobs.filter { $0.key.hasPrefix("s/") }
        #expect(!segments.isEmpty && claim.form != .whole([]))
        for name in segments.keys { storage.blobs[name] = nil }
        storage.blobs["h/00000000000000ff"] = head(b, ["other": claim])
        for _ in 0..<2 {
            #expect(try await a.pull() && a.problems.isEmpty)
            #expect(a.stores["other"]?.entries[key] != nil)
        }
        for (name, blob) in segments { storage.blobs[name] = blob }
        for _ in 0..<2 { #expect(try await a.pull() && a.problems.isEmpty) }
        #expect(a.stores["other"] == state)
    }

    @Test func `an index that makes no sense keeps its head from being read, and nothing else`() async throws {
        let (storage, a, b) = try await world()
        let junk = Array("UKVi".utf8) + [1, 0, 9, 9, 9]
        storage.blobs["s/\(Bits128(digestOf: junk))"] = junk
        storage.blobs["h/00000000000000ff"] = head(b, [:], index: Bits128(digestOf: junk))
        try await a.sync()
        #expect(a.stores == b.stores && a.problems.count == 1)
    }

    @Test func `records that break every rule are passed on as they came`() async throws {
        let (_, a, b) = try await world()
        for key in ["", "nul\0", String(repeating: "k", count: 4096), "line\nfeed"] { b.set(store, key, .integer(1)) }
        var deep = Value.array([])
        for _ in 0..<40 { deep = .array([deep]) }
        b.set(store, "deep", deep)
        b.set(store, "large", .data([UInt8](repeating: 0, count: 3 << 20)))
        try await b.sync()
        try await a.sync()
        #expect(a.stores == b.stores && a.problems.isEmpty)
    }

    @Test func `names with line feeds, names that are no text and directories are nobody's`() async throws {
        let place = try Place()
        let (a, b) = (try Device(place.path, name: "A"), try Device(place.path, name: "B"))
        try await a.signIn()
        try a.set(store, "a", .integer(1))
        try await a.sync()
        for folder in ["a", "h", "s"] {
            for name in ["line\nfeed", "0123456789abcdef\n", "..dots", "00", "CAPITALS00000000", "0123456789abcde/x"] {
                _ = try? place.sub(folder + "/" + name.split(separator: "/").dropLast().joined(separator: "/"))
                try place.write(folder + "/" + name, [1, 2, 3])
            }
            for bytes: [UInt8] in [[0xFF, 0xFE], Array("0123456789abcdef".utf8) + [0xFF]] {
                let path = Array((place.path + "/" + folder + "/").utf8) + bytes + [0]
                path.withUnsafeBytes { path in
                    guard let name = path.baseAddress else { return }
                    close(open(name.assumingMemoryBound(to: CChar.self), O_WRONLY | O_CREAT, 0o600))
                }
            }
            _ = try place.sub(folder + "/fedcba9876543210")
        }
        try await b.signIn(creating: false)
        let pulled = try await b.pull()
        #expect(pulled.isComplete)
        #expect(try b.values(store) == ["a": .integer(1)])
        #expect(
            pulled.problems == [
                "The folder h holds names with control characters, which nobody gives; they are skipped.",
                "The file h/fedcba9876543210 is not a file.",
            ])
        try await a.collectGarbage()
        try await a.collectGarbage(after: 400)
        #expect(place.names("h").contains("line\nfeed"), "what is nobody's is not removed")
    }

    @Test func `a folder that is full of strange files is listed without remembering them`() async throws {
        let place = try Place()
        let a = try Device(place.path, name: "A")
        try await a.signIn()
        try a.set(store, "a", .integer(1))
        try await a.sync()
        for number in 0..<20_000 { try place.write("h/junk-\(number)", []) }
        let storage = FolderStorage(try FolderURL("folder://" + place.path), access: .own(uid: geteuid()))
        _ = try await storage.check(creatingFolder: false)
        #expect(try await storage.list("h").count == 1)
        let b = try Device(place.path, name: "B")
        try await b.signIn(creating: false)
        #expect(try await b.pull().isComplete)
        #expect(try b.values(store).count == 1)
    }

    @Test func `of more heads than anybody has devices only so many are read, and it is said`() async throws {
        let (storage, a, b) = try await world()
        var blobs = storage.blobs
        for number in 0..<5000 { blobs["h/f" + String(UInt64(1 << 56) + UInt64(number), radix: 16)] = [0] }
        storage.blobs = blobs
        try await a.sync()
        #expect(a.problems.first == "The folder h holds too many files; some were not read.")
        #expect(a.stores == b.stores)
    }

    @Test func `heads that come before all others neither hide nor lose those that were there`() async throws {
        let (storage, a, b) = try await world()
        try await a.sync()
        a.set(store, "a", .integer(1))
        try await a.sync()
        try await b.sync()
        var blobs = storage.blobs
        for number in 0..<5000 { blobs["h/0" + String(UInt64(1 << 56) + UInt64(number), radix: 16)] = [0] }
        storage.blobs = blobs
        b.set(store, "later", .integer(2))
        try await b.sync()
        storage.requests = []
        for _ in 0..<2 {
            try await a.sync()
            #expect(a.problems.first == "The folder h holds too many files; some were not read.")
        }
        #expect(a.stores == b.stores && storage.bytesWritten == 0)
        // Nor do they lose anything to a process that knows only its cursor.
        a.backend = try FaultConformance.remote(storage).makeBackend()
        _ = try await a.backend.open(creatingAccount: false)
        try await a.sync()
        #expect(storage.bytesWritten == 0)
    }

    /// Fills a folder until a listing without every other name is as long as any, and lacks one of these names.
    private func fill(_ folder: String, of storage: MemoryStorage, hiding names: Set<String>) {
        var blobs = storage.blobs
        let zeros = String(repeating: "0", count: 16)
        for number in 0..<UInt64(2 * BlobName.mostListed) {
            blobs["\(folder)/" + String((1 << 63 as UInt64) + number, radix: 16) + zeros] = [0]
        }
        let sorted = blobs.keys.filter { $0.hasPrefix(folder + "/") }.sorted()
        let isHidden = sorted.enumerated().contains { $0.offset % 2 == 1 && names.contains($0.element) }
        if !isHidden { blobs["\(folder)/" + zeros + zeros] = [0] }
        storage.blobs = blobs
    }

    @Test(arguments: ["a", "s"])
    func `names that leave no room in a listing neither lose the account nor what was published`(_ folder: String)
        async throws
    {
        let (storage, a, b) = try await world()
        try await a.sync()
        a.set(store, "a", .integer(1))
        try await a.sync()
        try await b.sync()
        // The cursor names the last publication. A process that starts takes nothing else for its own.
        try await a.sync()
        a.backend = try FaultConformance.remote(storage).makeBackend()
        _ = try await a.backend.open(creatingAccount: false)
        let head = try #require(storage.blobs["h/\(a.origin)"])
        let parts = try WrittenHead(decoding: head).parts.values
        var names: Set = ["a/\(a.account)"]
        for part in parts {
            if case .whole(let base) = part.form { names.formUnion(base.map { "s/\($0.name)" }) }
        }
        fill(folder, of: storage, hiding: names)
        storage.onRequest { $0.action == .list && $0.name == folder ? .partial : nil }
        storage.requests = []
        b.set(store, "later", .integer(2))
        for _ in 0..<2 { try await a.sync() }
        if case .asPublished = a.ownPublication {} else { Issue.record("its head counts as lost") }
        #expect(storage.bytesWritten == 0)
        #expect(a.problems == ["The folder \(folder) holds too many files; some were not looked at."])
        storage.onRequest(nil)
        try await b.sync()
        try await a.sync()
        #expect(a.stores == b.stores)
    }

    @Test func `what was read counts as read where it is not joined, and is offered again`() async throws {
        let (_, a, _) = try await world()
        var cursor: [UInt8]?
        for _ in 0..<2 {
            let pull = try await a.backend.pull(after: cursor, as: a.origin)
            #expect(pull.stores.contains(store))
            for store in pull.stores { _ = try await pull.change(of: store) }
            let result = await pull.finish(joined: ["other"])
            #expect(result.isComplete)
            cursor = result.cursor
        }
    }

    @Test func `a new device goes on without a store that two others have made too large`() async throws {
        let (storage, a, b) = try await world()
        for key in 0..<5000 {
            a.set("large", "a \(key)", .integer(1))
            b.set("large", "b \(key)", .integer(1))
        }
        for device in [a, b] { try await device.push() }
        let late = try EngineDevice("late", seed: 9, ledger: { Ledger() }, report: { _ in })
        try await late.signIn(to: try FaultConformance.remote(storage).makeBackend(), creating: false)
        _ = try late.write(1, to: 0, of: 0, removes: false)
        for _ in 0..<2 {
            do {
                try await late.sync()
                Issue.record("it was joined")
            } catch {
                #expect(error.message.hasPrefix("The store large has grown too large to be joined any further."))
            }
        }
        #expect(!late.hasPendingChanges)
        try await a.sync()
        #expect(a.values(Names.stores[0]).count == 1)
        // Each pull offers the store, and it arrives when it has shrunk.
        for key in 0..<5000 { a.set("large", "a \(key)", nil) }
        a.forgetTombstones("large")
        try await a.push()
        try await b.sync()
        try await late.sync()
    }
}

/// A storage that changes whenever a folder is listed.
private struct RestlessStorage: BlobStorage {
    let base: MemoryStorage
    let change: @Sendable (_ folder: String) -> Void

    var traits: BackendTraits { base.traits }
    func check(creatingFolder: Bool) async throws(RemoteError) -> [String] {
        try await base.check(creatingFolder: creatingFolder)
    }
    func list(_ folder: String) async throws(RemoteError) -> [BlobListing] {
        change(folder)
        return try await base.list(folder)
    }
    func get(_ name: String, limit: Int, unless version: String?) async throws(RemoteError) -> BlobContent {
        try await base.get(name, limit: limit, unless: version)
    }
    func put(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) { try await base.put(name, bytes) }
    func create(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) { try await base.create(name, bytes) }
    func delete(_ name: String) async throws(RemoteError) { try await base.delete(name) }
    func hints() -> AsyncStream<Void> { base.hints() }
    func close() {}
}
