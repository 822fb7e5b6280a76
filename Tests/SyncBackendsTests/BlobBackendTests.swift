// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import Replication
import SeededRandom
import SyncEngine
import Testing

@testable import BackendSupport
@testable import Blobs
@testable import StoreEngine

@Suite struct BlobBackendTests {
    private let store = "org.example.Notes"

    private func two() async throws -> (Place, Device, Device) {
        let place = try Place()
        let (a, b) = (try Device(place.path, name: "A"), try Device(place.path, name: "B"))
        (a.place, b.place) = (place, place)
        try await a.signIn()
        try await a.sync()
        try await b.signIn(creating: false)
        try await b.sync()
        return (place, a, b)
    }

    private func error(_ body: () async throws -> Void) async -> RemoteError.Code? {
        do { try await body() } catch { return (error as? RemoteError)?.code }
        return nil
    }

    /// The suffix that Syncthing gives a file of which it found two versions.
    private let conflict = ".sync-conflict-20240101-120000-ABCDEFG"

    /// The head of a device, as an earlier publication.
    private func formerHead(of device: Device, in place: Place) throws -> WrittenHead {
        var head = try WrittenHead(decoding: try place.read(device.headName))
        head.head.sequence -= 1
        return head
    }

    /// A person, or a sync tool, may copy one file over another.
    @Test func `a device replaces another device's head under its name`() async throws {
        let (place, a, b) = try await two()
        try a.set(store, "a", .integer(1))
        try await a.sync()
        try b.set(store, "b", .integer(2))
        try await b.sync()
        try place.write(a.headName, try place.read(b.headName))
        try a.set(store, "c", .integer(3))
        for _ in 0..<2 { try await a.sync() }
        try await b.sync()
        #expect(try b.values(store).count == 3)
    }

    /// A device that has published a value, and its head as an earlier publication.
    private func publishedHead() async throws -> (Place, Device, WrittenHead) {
        let (place, device, _) = try await two()
        try device.set(store, "a", .integer(1))
        try await device.sync()
        return (place, device, try formerHead(of: device, in: place))
    }

    /// Makes a device that signs in to the existing account.
    private func newcomer(_ name: String, at place: Place) async throws -> Device {
        let device = try Device(place.path, name: name)
        device.place = place
        try await device.signIn(creating: false)
        return device
    }

    private func forgetStore(on device: Device) throws {
        let forgotten = try device.database.store(store)
        _ = try device.database.forget(store: store)
        try device.database.remember(store: forgotten)
    }

    /// Returns a device that forgot a store after it had published two keys of it, each in a head of its own. The
    /// storage has returned the earlier head since. The device has joined that one, and published a third key.
    private func servedAnOlderHead() async throws -> (Place, Device, name: String, earlier: [UInt8], latest: [UInt8]) {
        let (place, a, _) = try await two()
        try a.set(store, "a", .data([UInt8](repeating: 1, count: 30_000)))
        try await a.sync()
        let (name, earlier) = (a.headName, try place.read(a.headName))
        try a.set(store, "b", .data([UInt8](repeating: 2, count: 30_000)))
        try await a.sync()
        let latest = try place.read(name)
        try forgetStore(on: a)
        try place.write(name, earlier)
        try a.set(store, "c", .integer(3))
        try await a.sync()
        return (place, a, name, earlier, latest)
    }

    // MARK: States

    @Test func `what one device publishes the other has, and a deletion too`() async throws {
        let (_, a, b) = try await two()
        try a.set(store, [("a", .integer(1)), ("b", .string("x"))])
        try a.set("org.example.Other", "z", .data([UInt8](repeating: 1, count: 70_000)))
        try await a.sync()
        let pulled = try await b.pull()
        #expect(pulled.isComplete && pulled.problems.isEmpty)
        #expect(pulled.devices[a.database.origin] == RemoteDevice(identifier: "A", name: "A"))
        #expect(try b.values(store) == ["a": .integer(1), "b": .string("x")])
        #expect(try b.values("org.example.Other").count == 1)

        try b.remove(store, "a")
        try await b.sync()
        try await a.sync()
        #expect(try a.values(store) == ["b": .string("x")])
    }

    @Test func `what is joined is not read again, nor after a restart`() async throws {
        let (_, a, b) = try await two()
        try a.set(store, "a", .integer(1))
        try await a.sync()
        #expect(try await b.pull().stores == [store])
        #expect(try await b.pull().stores == [])
        try await b.restart()
        #expect(try await b.pull().stores == [])
        // A new head whose stores are known by their digest.
        try await a.push()
        #expect(try await b.pull().stores == [])
        try a.set("other", "b", .integer(1))
        try await a.push()
        #expect(try await b.pull().stores == ["other"])
    }

    @Test func `receiving publishes nothing`() async throws {
        let (_, a, b) = try await two()
        try a.set(store, "a", .integer(1))
        try await a.sync()
        b.storage.clear()
        for _ in 0..<3 { try await b.sync() }
        #expect(b.storage.actions.isEmpty)
    }

    @Test func `a push that is cut leaves the one before, and the next one makes it good`() async throws {
        let (_, a, b) = try await two()
        try a.set(store, "a", .data([UInt8](repeating: 1, count: 3000)))
        try await a.sync()
        try a.set(store, "a", .data([UInt8](repeating: 2, count: 3000)))
        for prefix in ["s/", "h/"] {
            a.storage.fail(prefix)
            #expect(await error { try await a.push() } == .unavailable)
            try await b.pull()
            #expect(try b.values(store) == ["a": .data([UInt8](repeating: 1, count: 3000))])
        }
        a.storage.fail(nil)
        try await a.sync()
        try await b.pull()
        #expect(try b.values(store) == ["a": .data([UInt8](repeating: 2, count: 3000))])
    }

    @Test func `segments are written before the head, and a former head goes after the new one is there`() async throws
    {
        let (place, a, _) = try await two()
        try a.set(store, "a", .data([UInt8](repeating: 1, count: 3000)))
        try await a.sync()
        let former = a.headName
        try await a.restart(machine: true)
        #expect(a.headName != former)
        try a.set(store, "b", .data([UInt8](repeating: 2, count: 3000)))
        a.storage.fail("h/" + a.database.origin.description)
        try await a.pull()
        #expect(await error { try await a.push() } == .unavailable)
        #expect(place.names("h").contains(String(former.dropFirst(2))))
        a.storage.fail(nil)
        a.storage.clear()
        try await a.push()
        #expect(a.storage.actions.map { $0.action + " " + $0.name.prefix(2) } == ["put h/", "delete h/"])
        #expect(a.storage.actions.last?.name == former)
        #expect(!place.names("h").contains(String(former.dropFirst(2))))
    }

    @Test func `a former head stays as long as it holds what is not joined here`() async throws {
        let (place, a, b) = try await two()
        try a.set(store, "a", .integer(1))
        try await a.sync()
        let former = a.headName
        try await a.restart(machine: true)
        // Another version of the former head arrives after the pull.
        try await a.pull()
        var head = try WrittenHead(decoding: try place.read(former))
        head.head.time += 1
        try place.write(former, head.encoded())
        try await a.push()
        #expect(place.names("h").contains(String(former.dropFirst(2))))
        try await a.pull()
        try await a.push()
        #expect(!place.names("h").contains(String(former.dropFirst(2))))
        try await b.pull()
        #expect(try b.values(store) == ["a": .integer(1)])
    }

    // MARK: What arrives late, twice or broken

    @Test func `a store waits for its segments, and the others don't`() async throws {
        let (place, a, b) = try await two()
        try a.set(store, "a", .data([UInt8](repeating: 1, count: 3000)))
        try await a.sync()
        let segment = try #require(place.names("s").first)
        let bytes = try place.read("s/" + segment)
        try place.remove("s/" + segment)
        try a.set("small", "b", .integer(1))
        await a.backend.close()
        for _ in 0..<2 {
            let pulled = try await b.pull()
            #expect(!pulled.isComplete && pulled.arrived == [])
            #expect(pulled.stores == [store])
        }
        // Half a segment counts as none, but is reported.
        try place.write("s/" + segment, Array(bytes.prefix(100)))
        let pulled = try await b.pull()
        #expect(!pulled.isComplete && pulled.arrived == [] && pulled.problems.count == 1)
        try place.write("s/" + segment, bytes)
        #expect(try await b.pull().isComplete)
        #expect(try b.values(store).count == 1)
    }

    @Test func `no flipped bit in a segment or a head yields another state`() async throws {
        let (place, a, b) = try await two()
        try a.set(store, (0..<3).map { ("key \($0)", .string(Text(String(repeating: "v", count: 600)))) })
        try await a.sync()
        try a.set(store, "key 1", .boolean(true))
        try await a.sync()
        let values = try a.values(store)
        for name in ["s/" + (try #require(place.names("s").first)), a.headName] {
            let bytes = try place.read(name)
            for bit in stride(from: 0, to: bytes.count * 8, by: 7) {
                var flipped = bytes
                flipped[bit / 8] ^= 1 << (bit % 8)
                try place.write(name, flipped)
                let pull = try await b.backend.pull(after: nil, as: b.database.origin)
                for store in pull.stores {
                    let change = try await pull.change(of: store)
                    #expect(change.states.state == StoreState())
                }
            }
            try place.write(name, bytes)
        }
        try await b.pull()
        #expect(try b.values(store) == values)
    }

    @Test func `a head that is damaged is skipped and named; the others count`() async throws {
        let (place, a, b) = try await two()
        try a.set(store, "a", .integer(1))
        try await a.sync()
        let c = try Device(place.path, name: "C")
        try await c.signIn(creating: false)
        try await c.pull()
        try c.set(store, "c", .integer(1))
        try await c.push()
        let bytes = try place.read(c.headName)
        try place.write(c.headName, Array(Array(bytes.dropLast())))
        let pulled = try await b.pull()
        #expect(pulled.isComplete && pulled.problems.count == 1)
        #expect(pulled.problems.first?.contains(c.database.origin.description) == true)
        #expect(try b.values(store) == ["a": .integer(1)])
        try place.write(c.headName, bytes)
        try await b.pull()
        #expect(try b.values(store) == ["a": .integer(1), "c": .integer(1)])
    }

    @Test func `a conflict copy of a head is joined, once`() async throws {
        let (place, a, b) = try await two()
        try a.set(store, "a", .integer(1))
        try await a.sync()
        let bytes = try place.read(a.headName)
        try a.set(store, "a", .integer(2))
        try await a.sync()
        // The later one is kept as the copy, as sync tools do.
        let later = try place.read(a.headName)
        try place.write(a.headName + conflict, later)
        try place.write(a.headName, bytes)
        try await b.pull()
        #expect(try b.values(store) == ["a": .integer(2)])
        #expect(try await b.pull().stores == [])
        // The head's owner restores the later one.
        #expect(try await a.sync().own.name == "missing")
        #expect(try WrittenHead(decoding: try place.read(a.headName)).head.sequence == 3)
    }

    @Test func `what a device published of a store that it forgot comes back, even if it is not seen at once`()
        async throws
    {
        let (place, a, _) = try await two()
        try a.set(store, "a", .integer(1))
        try await a.sync()
        let (name, bytes) = (a.headName, try place.read(a.headName))
        try forgetStore(on: a)
        try place.remove(name)
        try await a.pull()
        try place.write(name, bytes)
        try a.set(store, "b", .integer(2))
        try await a.sync()
        #expect(try a.values(store) == ["a": .integer(1), "b": .integer(2)])
    }

    @Test func `a device that forgot a store does not remove what it published of it under a former origin`()
        async throws
    {
        let (place, a, _) = try await two()
        try a.set(store, "a", .integer(1))
        try await a.sync()
        let (name, bytes) = (a.headName, try place.read(a.headName))
        try forgetStore(on: a)
        try place.write(name, Array(bytes.dropLast()))
        try await a.pull()
        try a.database.leaveOrigin()
        try place.write(name, bytes)
        try a.set(store, "b", .integer(2))
        try await a.push()
        #expect(try place.read(name) == bytes)
        try await a.sync()
        #expect(try a.values(store) == ["a": .integer(1), "b": .integer(2)])
    }

    @Test func `a device that forgot a store doesn't remove an older version of its head in place of the last`()
        async throws
    {
        let (place, a, name, earlier, latest) = try await servedAnOlderHead()
        #expect(try place.read(name) == earlier)
        try place.write(name, latest)
        try a.set(store, "c", .integer(4))
        try await a.sync()
        #expect(try Set(a.values(store).keys) == ["a", "b", "c"])
        #expect(throws: (any Error).self) { try place.read(name) }
    }

    @Test func `a device that forgot a store leaves the segments of what it published, as long as it was not read`()
        async throws
    {
        let (place, a, name, _, latest) = try await servedAnOlderHead()
        try place.write(name, latest)
        a.wait(minutes: 3)
        try a.set(store, "c", .integer(4))
        try await a.push()
        let c = try await newcomer("C", at: place)
        #expect(try await c.pull().isComplete)
        #expect(try Set(c.values(store).keys) == ["a", "b", "c"])
    }

    @Test func `what another device's head names stays, though a listing leaves that head out`() async throws {
        let (place, a, b) = try await two()
        try a.set(store, "a", .data([UInt8](repeating: 1, count: 30_000)))
        try await a.sync()
        try await b.pull()
        try b.set(store, "b", .integer(1))
        try await b.sync()
        let shared = try #require(await b.backend.published).head.segmentNames
        try await a.pull()
        try a.set(store, "a", .data([UInt8](repeating: 2, count: 30_000)))
        try await a.push()
        let head = try place.read(b.headName)
        for isOlder in [false, true] {
            if isOlder {
                var older = try formerHead(of: b, in: place)
                older.parts = [:]
                try place.write(b.headName, older.encoded())
            } else {
                try place.remove(b.headName)
            }
            a.wait(minutes: 3)
            try await a.pull()
            #expect(shared.allSatisfy { place.names("s").contains($0.description) })
            try place.write(b.headName, head)
        }
    }

    @Test func `a copy of a head whose index is gone keeps nobody from arriving`() async throws {
        let (place, a, head) = try await publishedHead()
        var copy = head
        copy.head.index = Bits128(digestOf: Index.encode([:]))
        try place.write(a.headName + conflict, copy.encoded())
        let c = try await newcomer("C", at: place)
        #expect(try await c.pull().isComplete)
        #expect(try c.values(store) == ["a": .integer(1)])
        // Under its own name the head is waited for, because it may hold what no other does.
        try place.write(a.headName, copy.encoded())
        let d = try await newcomer("D", at: place)
        #expect(try await !d.pull().isComplete)
    }

    @Test func `a copy of a head whose segments are gone keeps nobody from arriving`() async throws {
        let (place, a, head) = try await publishedHead()
        var copy = head
        let base = [BaseSegment(bucket: .whole, name: Bits128(high: 1, low: 1))]
        copy.parts[store] = WrittenPart(
            digest: Bits128(high: 2, low: 2), vector: VersionVector([Origin(bits: 7): 1]), form: .whole(base),
            tail: [:],
            removed: [])
        try place.write(a.headName + conflict, copy.encoded())
        let c = try await newcomer("C", at: place)
        #expect(try await c.pull().isComplete)
        #expect(try c.values(store) == ["a": .integer(1)])
    }

    @Test func `a state that nobody needs any more may be incomplete for ever`() async throws {
        let (place, a, b) = try await two()
        try a.set(store, "a", .data([UInt8](repeating: 1, count: 3000)))
        try await a.sync()
        try await b.pull()
        try b.set(store, "b", .data([UInt8](repeating: 2, count: 3000)))
        let before = Set(place.names("s"))
        try await b.push()
        // The first device is lost, and so is a segment of its own.
        let shared = try #require(await b.backend.published).head.segmentNames.map(\.description)
        for name in before where !shared.contains(name) { try place.remove("s/" + name) }
        let c = try Device(place.path, name: "C")
        try await c.signIn(creating: false)
        #expect(try await c.pull().isComplete)
        #expect(try c.values(store).count == 2)
    }

    @Test func `a segment that vanished is uploaded again by whose head names it`() async throws {
        let (place, a, b) = try await two()
        try a.set(store, "a", .data([UInt8](repeating: 1, count: 3000)))
        try await a.sync()
        try place.remove("s/" + (try #require(place.names("s").first)))
        try await a.restart()
        // The upload is due only later.
        for _ in 1...3 { #expect(try await a.pull().own.name == "missing") }
        try await a.push()
        #expect(try await a.pull().own.name == "asPublished")
        try await b.pull()
        #expect(try b.values(store).count == 1)
    }

    @Test func `a segment that somebody removes whom our head had not reached is there again soon`() async throws {
        let (place, a, b) = try await two()
        try a.set(store, "a", .data([UInt8](repeating: 1, count: 3000)))
        try await a.sync()
        try await b.sync()
        try b.set(store, "b", .integer(1))
        try await b.sync()
        for name in place.names("s") { try place.remove("s/" + name) }
        #expect(try await b.sync().own.name == "asPublished")
        b.wait(minutes: 11)
        #expect(try await b.sync().own.name == "missing")
        await a.backend.close()
        let c = try Device(place.path, name: "C")
        try await c.signIn(creating: false)
        #expect(try await c.pull().isComplete)
        #expect(try c.values(store).count == 2)
    }

    @Test func `a damaged segment that is to be written anew is found to be damaged`() async throws {
        let (place, a, b) = try await two()
        try a.set(store, "a", .data([UInt8](repeating: 1, count: 3000)))
        try await a.sync()
        let segment = "s/" + (try #require(place.names("s").first))
        try place.write(segment, [1, 2, 3])
        try await a.restart(machine: true)
        try a.set(store, "b", .data([UInt8](repeating: 2, count: 3000)))
        try await a.sync()
        try await b.pull()
        #expect(try b.values(store).count == 2)
    }

    /// A device that has published a value in a segment of its own, which was then damaged.
    private func damagedSegment() async throws -> (Place, Device, Device, segment: String) {
        let (place, a, b) = try await two()
        try a.set(store, "a", .data([UInt8](repeating: 1, count: 3000)))
        for _ in 0..<2 { try await a.sync() }
        let segment = "s/" + (try #require(place.names("s").first))
        var bytes = try place.read(segment)
        bytes[bytes.count / 2] ^= 1
        try place.write(segment, bytes)
        #expect(try await !b.pull().isComplete)
        return (place, a, b, segment)
    }

    @Test func `a damaged segment is written anew once another device publishes without its content`() async throws {
        let (_, a, b, segment) = try await damagedSegment()
        a.wait(minutes: 15)
        try b.set(store, "b", .integer(1))
        try await b.sync()
        #expect(try await a.sync().own.name == "missing")
        #expect(a.storage.actions.contains { $0 == "put" && $1 == segment && $2 > 0 })
        #expect(try await b.pull().isComplete)
        #expect(try b.values(store).count == 2)
        // Once is enough.
        a.storage.clear()
        for _ in 0..<3 { #expect(try await a.sync().own.name == "asPublished") }
        #expect(a.storage.actions.isEmpty)
    }

    @Test func `a damaged segment is written anew for a device that has nothing to publish`() async throws {
        let (_, a, b, segment) = try await damagedSegment()
        try b.set("org.example.Other", "b", .integer(1))
        for device in [b, a] { try await device.sync() }
        b.wait(minutes: 59)
        #expect(try await b.sync().own.name == "asPublished")
        b.wait(minutes: 1)
        #expect(try await b.sync().own.name == "outdated")
        a.wait(minutes: 60)
        #expect(try await a.sync().own.name == "missing")
        #expect(a.storage.actions.contains { $0 == "put" && $1 == segment && $2 > 0 })
        #expect(try await b.pull().isComplete)
        #expect(try b.values(store).count == 1)
        // Once is enough.
        b.wait(minutes: 60)
        for _ in 0..<2 { #expect(try await b.sync().own.name == "asPublished") }
    }

    @Test func `a damaged segment is written anew at once by a device that reads back what it has published`()
        async throws
    {
        let (_, a, b, segment) = try await damagedSegment()
        #expect(try await a.sync().own.name == "asPublished")
        await a.backend.doubtPublication()
        #expect(try await a.sync().own.name == "missing")
        #expect(a.storage.actions.contains { $0 == "put" && $1 == segment && $2 > 0 })
        #expect(try await b.pull().isComplete)
        // Once is enough.
        a.storage.clear()
        #expect(try await a.sync().own.name == "asPublished")
        #expect(a.storage.actions.isEmpty)
    }

    @Test func `a damaged segment is written anew within a day, for devices that can publish nothing`() async throws {
        let (place, a, _, segment) = try await damagedSegment()
        a.wait(minutes: 1441)
        for _ in 0..<20 { try await a.sync() }
        #expect(a.storage.actions.contains { $0 == "put" && $1 == segment && $2 > 0 })
        let c = try Device(place.path, name: "C")
        try await c.signIn(creating: false)
        #expect(try await c.pull().isComplete)
    }

    // MARK: Who wrote that

    @Test func `a restart is no clone`() async throws {
        let (_, a, _) = try await two()
        try a.set(store, "a", .integer(1))
        try await a.sync()
        let origin = a.database.origin
        // The cursor is older than the head.
        try await a.restart()
        #expect(a.database.origin == origin)
        for _ in 0..<3 { #expect(try await a.pull().own.name == "missing") }
        try await a.push()
        // The cursor is from after the push.
        #expect(try await a.pull().own.name == "asPublished")
        try await a.restart()
        #expect(a.database.origin == origin)
        for _ in 0..<3 { #expect(try await a.pull().own.name == "asPublished") }
        try a.set(store, "b", .integer(1))
        #expect(try await a.push() == [store])
        #expect(try await a.pull().own.name == "asPublished")
        // A second restart, with only pushes in between.
        try await a.restart()
        try a.set(store, "c", .integer(1))
        try await a.push()
        #expect(try await a.pull().own.name == "asPublished")
    }

    @Test func `what the process before this one wrote earlier is put right, not taken for a clone's`() async throws {
        let (place, a, b) = try await two()
        try a.set(store, "a", .integer(1))
        try await a.sync()
        let bytes = try place.read(a.headName)
        try a.set(store, "a", .integer(2))
        try await a.sync()
        try await a.pull()
        let origin = a.database.origin
        try await a.restart()
        #expect(try await a.pull().own.name == "asPublished")
        try place.write(a.headName, bytes)
        #expect(try await a.sync().own.name == "missing")
        #expect(a.database.origin == origin)
        #expect(try await a.pull().own.name == "asPublished")
        // A later head is a clone's.
        var head = try WrittenHead(decoding: try place.read(a.headName))
        head.head.sequence += 1
        try place.write(a.headName, head.encoded())
        #expect(try await a.pull().own.name == "foreign")
        try await b.sync()
        #expect(try b.values(store) == ["a": .integer(2)])
    }

    @Test func `a head that the first listing after a restart leaves out is not taken for a clone's`() async throws {
        let (place, a, b) = try await two()
        try a.set(store, "a", .integer(1))
        try await a.sync()
        try await a.pull()
        // The cursor names the previous head, as if the answer to this upload had been lost.
        try a.set(store, "a", .integer(2))
        try await a.push()
        let (bytes, origin) = (try place.read(a.headName), a.database.origin)
        try await a.restart()
        try place.remove(a.headName)
        #expect(try await a.pull().own.name == "missing")
        try place.write(a.headName, bytes)
        #expect(try await a.pull().own.name == "missing")
        #expect(a.database.origin == origin)
        try await a.sync()
        #expect(try await a.pull().own.name == "asPublished")
        try await b.sync()
        #expect(try b.values(store) == ["a": .integer(2)])
    }

    @Test func `a head that is lost is missed after the machine was restarted, too`() async throws {
        let (place, a, _) = try await two()
        try a.set(store, "a", .integer(1))
        try await a.sync()
        try await a.pull()
        let origin = a.database.origin
        try await a.restart(machine: true)
        #expect(a.database.origin != origin)
        #expect(try await a.pull().own.name == "asPublished")
        try place.remove("h/\(origin)")
        #expect(try await a.pull().own.name == "missing")
        try await a.push()
        #expect(try await a.pull().own.name == "asPublished")
    }

    @Test func `the head of the disk that this one was copied from stays`() async throws {
        let (place, a, b) = try await two()
        try a.set(store, "a", .integer(1))
        try await a.sync()
        let name = "h/\(a.database.origin)"
        try await a.restart(machine: true)
        // The original has published once more.
        var written = try WrittenHead(decoding: place.read(name))
        written.head.sequence += 1
        try place.write(name, written.encoded())
        try a.set(store, "b", .integer(1))
        try await a.sync()
        #expect(place.names("h").contains(String(name.dropFirst(2))))
        try await b.pull()
        #expect(try b.values(store).count == 2)
    }

    @Test func `a device that never published misses nothing`() async throws {
        let (_, a, b) = try await two()
        for device in [a, b] { #expect(try await device.pull().own.name == "asPublished") }
    }

    /// Copies the machine with `/run`, at a moment when the service does not run.
    private func fork(_ device: Device, in place: Place) async throws -> Device {
        let fork = try Device(place.path, name: device.name)
        device.database.close()
        fork.database.close()
        try FileManager.default.removeItem(atPath: fork.disk.path + "/db")
        try FileManager.default.copyItem(atPath: device.disk.path + "/db", toPath: fork.disk.path + "/db")
        // The record is named after the database's directory, which is another one here.
        let records = [device, fork].map { OriginRecord(of: $0.disk.path + "/db", in: $0.disk.path + "/run") }
        let word = try #require(records[0].take())
        for record in records { record.leave(word) }
        try await device.restart()
        try await fork.restart()
        return fork
    }

    @Test func `a clone is noticed by both, and nothing of either is lost`() async throws {
        let (place, a, b) = try await two()
        try a.set(store, "a", .integer(1))
        try await a.sync()
        try await a.pull()
        let fork = try await fork(a, in: place)
        #expect(fork.database.origin == a.database.origin)
        try await a.pull()
        try fork.set(store, "fork", .integer(1))
        try await fork.sync()
        // Until now no two writes have one dot. If they had, no backend could save both.
        let pulled = try await a.pull()
        #expect(pulled.own.name == "foreign")
        try a.set(store, "a", .integer(2))
        try await a.push()
        #expect(a.database.origin != fork.database.origin)
        try await fork.sync()
        try await fork.sync()
        try await a.sync()
        try await b.sync()
        let values: [String: Value] = ["a": .integer(2), "fork": .integer(1)]
        for device in [a, fork, b] { #expect(try device.values(store) == values) }
    }

    @Test func `a head that somebody wrote under our name since the last look is not replaced unseen`() async throws {
        let (place, a, _) = try await two()
        try a.set(store, "a", .integer(1))
        try await a.sync()
        try await a.pull()
        // That pull counts for this push only, and the next push has none.
        try await a.push()
        var head = try WrittenHead(decoding: try place.read(a.headName))
        head.head.sequence += 1
        try place.write(a.headName, head.encoded())
        try a.set(store, "a", .integer(2))
        #expect(await error { try await a.push() } == .unavailable)
        #expect(try await a.pull().own.name == "foreign")
        try await a.push()
    }

    @Test func `what this process wrote earlier is put right, not taken for a clone's`() async throws {
        let (place, a, _) = try await two()
        try a.set(store, "a", .integer(1))
        try await a.sync()
        let bytes = try place.read(a.headName)
        try a.set(store, "a", .integer(2))
        try await a.sync()
        try place.write(a.headName, bytes)
        #expect(try await a.sync().own.name == "missing")
        #expect(try await a.pull().own.name == "asPublished")
        try place.remove(a.headName)
        #expect(try await a.sync().own.name == "missing")
        #expect(try await a.pull().own.name == "asPublished")
    }

    // MARK: The account

    @Test func `nothing is no account, unless one is to be made`() async throws {
        let place = try Place()
        let a = try Device(place.path)
        #expect(await error { try await a.signIn(creating: false) } == .noAccount)
        #expect(place.names("") == [])
        let account = try await a.backend.open(creatingAccount: true)
        #expect(account.isNew && account.aliases.isEmpty)
        #expect(place.names("a") == [account.identifier])
        let again = try await a.backend.open(creatingAccount: true)
        #expect(again.isNew && again.identifier == account.identifier)
    }

    @Test func `of two that make an account at once the smaller identifier counts, for both`() async throws {
        let (left, right) = (try Place(), try Place())
        let (a, b) = (try Device(left.path, name: "A"), try Device(right.path, name: "B"))
        for device in [a, b] {
            try await device.signIn()
            try device.set(store, device.name, .integer(1))
            try await device.sync()
            try await device.sync()
        }
        // Now the sync tool runs.
        for (from, to) in [(left, right), (right, left)] {
            for folder in ["a", "h", "s"] {
                for name in from.names(folder) where !to.names(folder).contains(name) {
                    try to.write("\(folder)/\(name)", try from.read("\(folder)/\(name)"))
                }
            }
        }
        for device in [a, b] {
            let pulled = try await device.sync()
            #expect(pulled.problems == [])
            #expect(pulled.account.identifier == left.names("a").first)
            #expect(Array(pulled.account.aliases) == Array(left.names("a").dropFirst()))
            #expect(try device.values(store).count == 2)
        }
    }

    @Test func `a folder that was emptied, or holds another account, is no wish to delete`() async throws {
        let (place, a, _) = try await two()
        try a.set(store, "a", .integer(1))
        try await a.sync()
        try await a.pull()
        try FileManager.default.moveItem(atPath: place.path + "/a", toPath: place.path + "/gone")
        // A pull that finds nothing new does not read the marker, nor does the upload after it.
        try await a.pull()
        try await a.push()
        #expect(await error { try await a.push() } == .reset)
        let name = a.headName
        let head = try place.read(name)
        try place.remove(name)
        #expect(await error { try await a.pull() } == .reset)
        try place.write(name, head)
        #expect(await error { try await a.push() } == .reset)
        _ = try place.sub("a")
        #expect(await error { for _ in 0..<20 { try await a.pull() } } == .reset)
        let other = AccountMarker(identifier: Bits128(high: 1, low: 1), time: 0)
        try place.write("a/\(other.identifier)", other.encoded())
        #expect(await error { for _ in 0..<20 { try await a.pull() } } == .reset)
        #expect(await error { try await a.push() } == .reset)
    }

    @Test func `a segment that can't be read is named before what is only skipped`() async throws {
        let (place, a, b, segment) = try await damagedSegment()
        var head = try WrittenHead(decoding: try place.read(a.headName))
        head.head.account = Bits128(high: 5, low: 5)
        head.head.origin = Origin(bits: 1)
        try place.write("h/\(Origin(bits: 1))", head.encoded())
        let problems = try await b.pull().problems
        #expect(problems.count == 2 && problems.first?.contains(segment) == true, "\(problems)")
    }

    @Test func `heads of another account are skipped`() async throws {
        let (place, a, b) = try await two()
        try a.set(store, "a", .integer(1))
        try await a.sync()
        var head = try WrittenHead(decoding: try place.read(a.headName))
        head.head.account = Bits128(high: 5, low: 5)
        try place.write(a.headName, head.encoded())
        let pulled = try await b.pull()
        #expect(pulled.problems.count == 1 && pulled.stores == [])
    }

    @Test func `a marker that has not arrived whole is no empty folder`() async throws {
        let (place, a, _) = try await two()
        let name = "a/" + (try #require(place.names("a").first))
        let bytes = try place.read(name)
        try place.write(name, Array(bytes.prefix(10)))
        #expect(await error { for _ in 0..<20 { try await a.pull() } } == .damaged)
        let c = try Device(place.path)
        #expect(await error { try await c.signIn(creating: true) } == .damaged)
        try place.write(name, bytes)
        try await a.pull()
    }

    @Test func `what a newer version wrote is left alone`() async throws {
        let (place, a, b) = try await two()
        try a.set(store, "a", .integer(1))
        try await a.sync()
        func newer(_ magic: [UInt8]) -> [UInt8] {
            var encoder = CanonicalEncoder()
            encoder.raw(magic)
            encoder.varint(2)
            encoder.raw([1, 2, 3])
            return Envelope.seal(encoder)
        }
        try place.write("h/00000000000000ff", newer(Envelope.head))
        #expect(await error { try await b.pull() } == .tooNew)
        // A user who signs in is told so before the device leaves another account for this one.
        #expect(await error { _ = try await b.backend.open(creatingAccount: true) } == .tooNew)
        try place.remove("h/00000000000000ff")
        try await b.pull()
        let identifier = String(repeating: "f", count: 32)
        try place.write("a/" + identifier, newer(Envelope.marker))
        #expect(await error { for _ in 0..<20 { try await b.pull() } } == .tooNew)
        #expect(await error { _ = try await b.backend.open(creatingAccount: true) } == .tooNew)
    }

    @Test func `a closed backend does nothing`() async throws {
        let (_, a, _) = try await two()
        await a.backend.close()
        #expect(await error { try await a.pull() } == .unavailable)
        #expect(await error { try await a.push() } == .unavailable)
    }

    // MARK: Sizes

    @Test func `a small change in a large store costs little`() async throws {
        let (_, a, b) = try await two()
        var random = SplitMix(seed: 3)
        func value() -> Value { .data((0..<1000).map { _ in .random(in: 0...255, using: &random) }) }
        try a.set(store, (0..<1024).map { ("key.number.\($0)", value()) })
        try await a.sync()
        var most = 0
        for change in 0..<60 {
            a.storage.clear()
            try a.set(store, "key.number.\(change * 17 % 1024)", value())
            try await a.push()
            if change == 0 { #expect(a.storage.bytesWritten <= 4 << 10) }
            most = max(most, a.storage.bytesWritten)
        }
        #expect(most <= 112 << 10, "a bucket of the largest store, and a head")
        try await b.pull()
        #expect(try b.values(store) == a.values(store))
        // The same holds after a restart, when the base has to be found again.
        try await a.restart()
        try await a.pull()
        try await a.push()
        a.storage.clear()
        try a.set(store, "key.number.5", value())
        try await a.push()
        #expect(a.storage.bytesWritten <= 80 << 10)
        try await b.pull()
        #expect(try b.values(store) == a.values(store))
    }

    @Test func `the head of an account with twenty small stores is small`() async throws {
        let (place, a, b) = try await two()
        for number in 0..<20 {
            try a.set(
                "org.example.application-\(number)",
                (0..<40).map { ("setting \($0)", .string(Text(String(repeating: "v", count: 80)))) }
            )
        }
        try await a.sync()
        #expect(try place.read(a.headName).count <= 4 << 10)
        #expect(place.names("s").count == 20)
        try await b.pull()
        #expect(try b.values("org.example.application-7").count == 40)
    }
}
