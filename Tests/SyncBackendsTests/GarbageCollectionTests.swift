// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Replication
import StoreEngine
import SyncEngine
import Testing

@Suite struct GarbageCollectionTests {
    private let store = "org.example.Notes"

    @Test func `the head of a device that was forgotten goes a day after all in it is published here`() async throws {
        let place = try Place()
        let (a, b) = (try Device(place.path, name: "A"), try Device(place.path, name: "B"))
        try await a.signIn()
        try await a.sync()
        try await b.signIn(creating: false)
        try await b.sync()
        try b.set(store, "b", .integer(1))
        try await b.sync()
        let name = b.headName
        try a.set(store, "a", .integer(1))
        try await a.push()
        try await a.collectGarbage(forgetting: [b.database.origin])
        #expect(place.names("h").contains(String(name.dropFirst(2))), "it was not joined")
        try await a.pull()
        try await a.collectGarbage(forgetting: [b.database.origin])
        #expect(place.names("h").contains(String(name.dropFirst(2))), "it is not in what was published")
        try await a.push()
        try await a.collectGarbage(forgetting: [])
        #expect(place.names("h").contains(String(name.dropFirst(2))), "nobody has forgotten it")
        try await a.collectGarbage(forgetting: [b.database.origin])
        #expect(place.names("h").contains(String(name.dropFirst(2))), "a later version may be there")
        try await a.collectGarbage(forgetting: [b.database.origin], after: 1)
        #expect(!place.names("h").contains(String(name.dropFirst(2))))
        // The device comes back.
        try await b.sync()
        #expect(place.names("h").contains(String(name.dropFirst(2))))
        #expect(try b.values(store).count == 2)
    }

    /// Makes an account with two devices, and cuts the head of the second one short.
    private func cuttingHeadShort() async throws -> (Place, Device, Device, head: String) {
        let place = try Place()
        let (a, b) = (try Device(place.path, name: "A"), try Device(place.path, name: "B"))
        try await a.signIn()
        try await a.sync()
        try await b.signIn(creating: false)
        try b.set(store, "b", .integer(1))
        try await b.sync()
        let name = b.headName
        try place.write(name, Array(try place.read(name).prefix(40)))
        return (place, a, b, name)
    }

    @Test func `a head that was cut short, of a device that is gone, goes after a month, and not before`() async throws
    {
        let (place, a, _, name) = try await cuttingHeadShort()
        for day in 0...30 {
            #expect(place.names("h").contains(String(name.dropFirst(2))), "day \(day)")
            try await a.sync()
            try await a.collectGarbage(after: UInt64(day))
        }
        #expect(!place.names("h").contains(String(name.dropFirst(2))))
        #expect(try await a.sync().problems == [])
    }

    @Test func `a head that was cut short may be removed by hand, as its message says, and nothing is lost`()
        async throws
    {
        let (place, a, b, name) = try await cuttingHeadShort()
        let problems = try await a.sync().problems
        #expect(problems.count == 1 && problems[0].hasSuffix("you can remove it now and lose nothing."), "\(problems)")
        try place.remove(name)
        #expect(try await a.sync().problems == [])
        try await b.sync()
        try await a.sync()
        #expect(try a.values(store).count == 1)
    }
}
