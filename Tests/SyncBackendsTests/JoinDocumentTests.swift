// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Replication
import StoreEngine
import SyncEngine
import Testing

@testable import Blobs

/// What docs/remote-format.md says of the join, with states of one key.
@Suite struct JoinDocumentTests {
    private static let key = Key(unchecked: "k")

    @Test func `two states become what the document says, whichever is joined to which`() throws {
        for row in try FormatDocument().table("### Vectors of joins") {
            let (a, b, joined) = (try parseState(row[0]), try parseState(row[1]), try parseState(row[2]))
            for (mine, other) in [(a, b), (b, a), (joined, a), (joined, b)] {
                var state = mine
                state.join(other)
                #expect(state == joined, "\(row)")
            }
            #expect(StateDigests(of: joined, store: "s").state.description == row[3], "\(row)")
        }
    }

    @Test func `several states become what the document says, in any order`() throws {
        for row in try FormatDocument().table("### Vectors of several states") {
            let (a, b, c) = (try parseState(row[0]), try parseState(row[1]), try parseState(row[2]))
            for (x, y, here) in [(a, b, c), (b, a, c), (a, c, b), (c, a, b), (b, c, a), (c, b, a)] {
                var states = JoinedStates(x)
                states.join(y)
                var state = here
                state.join(states.state(over: here))
                states.join(here)
                #expect(try state == parseState(row[3]) && states.state == state, "\(row)")
                // What is gone is gone for a device that takes in all of it.
                #expect(states.state(over: StoreState()) == state, "\(row)")
            }
        }
    }

    @Test func `a write has the stamp that the document says`() throws {
        for row in try FormatDocument().table("### Vectors of writes") {
            let previous = try row[0] == "none" ? nil : parseEntry(row[0][...])
            let time = try #require(UInt64(row[1]))
            let stamp = Stamp(
                after: previous?.stamp, wall: time, origin: Origin(bits: 2), isProvisional: row[2] == "no")
            #expect("\(stamp.isProvisional ? "~" : "")\(stamp.wall).\(stamp.counter)" == row[3], "\(row)")
        }
    }

    /// A device on which the store has not arrived. It wrote the provisional entries itself.
    private struct Newcomer: Joinable {
        let state: StoreState
        var vector: VersionVector { state.vector }
        var keys: [Key] { state.keys }
        func version(of key: Key) -> EntryVersion? { state.version(of: key) }
        func entry(for key: Key) -> Entry? { state.entry(for: key) }
        func isProvisionalHere(_ key: Key) -> Bool { state.entries[key]?.stamp.isProvisional == true }
    }

    @Test func `what was written before a store arrived gives way where the document says so`() throws {
        for row in try FormatDocument().table("### Vectors of arrivals") {
            let (here, joined) = (try parseState(row[0]), try parseState(row[2]))
            let plan = Join.plan(Newcomer(state: here), taking: try parseState(row[1]), isFirstDownload: true)
            var state = here
            for (key, entry) in plan.taken { state.entries[key] = entry }
            for key in plan.dropped { state.entries[key] = nil }
            state.vector = plan.vector
            #expect(state == joined, "\(row)")
        }
    }

    @Test func `an origin is left where the document says that a stranger shows`() throws {
        let own: Set = [Origin(bits: 6), Origin(bits: 7)]
        for row in try FormatDocument().table("### Vectors of strangers") {
            let shared = Join.sharedOrigins(
                Origin(bits: 7), try parseState(row[0]), in: try parseState(row[1]), writtenIn: 100..<200)
            #expect(shared.intersection(own).map { "\($0.bits)" }.joined() == row[2], "\(row)")
        }
    }

    // MARK: The document's notation

    /// `1:3 2:1; ~1.3 5.0 01`: a version vector, and the entry under the key.
    private func parseState(_ text: String) throws -> StoreState {
        let halves = text.split(separator: ";", omittingEmptySubsequences: false)
        try #require(halves.count == 2, "\(text)")
        var state = StoreState()
        for number in halves[0].split(separator: " ") {
            let (origin, n) = try parsePair(number, ":")
            state.vector.insert(Dot(origin: Origin(bits: origin), n: n))
        }
        if let entry = try parseEntry(halves[1]) { state.entries[Self.key] = entry }
        return state
    }

    /// `~1.3 5.0 01`: a dot, a stamp's wall and counter, and a value's bytes; or nothing.
    private func parseEntry(_ text: Substring) throws -> Entry? {
        let words = text.split(separator: " ")
        if words.isEmpty { return nil }
        try #require(words.count == 3, "\(text)")
        let (origin, n) = try parsePair(words[0].drop { $0 == "~" }, ".")
        let (wall, counter) = try parsePair(words[1], ".")
        let stamp = Stamp(
            isProvisional: words[0].hasPrefix("~"), wall: wall, counter: try #require(UInt16(exactly: counter)),
            origin: Origin(bits: origin))
        return Entry(stamp: stamp, n: n, value: try words[2] == "-" ? nil : octets(words[2]))
    }

    private func parsePair(_ text: Substring, _ separator: Character) throws -> (UInt64, UInt64) {
        let numbers = text.split(separator: separator)
        try #require(numbers.count == 2, "\(text)")
        return (try #require(UInt64(numbers[0])), try #require(UInt64(numbers[1])))
    }
}
