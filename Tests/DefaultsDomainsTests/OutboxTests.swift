// SPDX-License-Identifier: Apache-2.0

import DefaultsDomains
import PropertyList
import Testing

struct OutboxTests {
    private func write(_ key: Text, _ value: Value?, host: Bool = false) -> Outbox.Write {
        Outbox.Write(key: key, value: value, isHost: host, time: 1_000, generation: .max)
    }

    @Test func `what is written is read, removals and types included`() throws {
        var outbox = Outbox(domain: "org.example.Notes")
        outbox.add([
            write("a", .real(2)), write("b", nil), write("a", .boolean(true), host: true),
            write("c", .dictionary(["d": .date(0.1)])),
            Outbox.Write(key: "e", value: nil, isHost: false, time: 1, generation: 1, unanswered: [.integer(1), nil]),
            Outbox.Write(key: "f", value: .integer(2), isHost: false, time: 1, generation: 1, unanswered: [nil]),
            Outbox.Write(
                key: "g", value: .integer(2), isHost: false, isOwn: true, time: 1, generation: 1, owner: 1 << 62,
                program: "/n"),
        ])
        #expect(try Outbox(outbox.encoded, domain: "org.example.Notes") == outbox)
    }

    @Test func `the last write of a key of a layer counts`() {
        var outbox = Outbox(domain: "d")
        outbox.add([write("a", .integer(1)), write("b", .integer(1)), write("a", .integer(2))])
        outbox.add([write("b", nil)])
        #expect(outbox.writes == [write("a", .integer(2)), write("b", nil)])
    }

    @Test func `of two processes' writes the later one stays, and of one process's the one that was added last`() {
        func write(_ value: Int64, at time: Int64, by owner: Int64) -> Outbox.Write {
            Outbox.Write(key: "a", value: .integer(value), isHost: false, time: time, generation: 1, owner: owner)
        }
        var outbox = Outbox(domain: "d")
        outbox.add([write(1, at: 5, by: 1), write(2, at: 4, by: 2)])
        #expect(outbox.writes == [write(1, at: 5, by: 1)])
        outbox.add([write(3, at: 3, by: 1)])
        #expect(outbox.writes == [write(3, at: 3, by: 1)])
        outbox.add([write(4, at: 4, by: 2)])
        #expect(outbox.writes == [write(4, at: 4, by: 2)])
    }

    @Test func `a write by a clock that was ahead doesn't outlast later ones`() {
        func write(_ value: Int64?, at time: Int64, by owner: Int64) -> Outbox.Write {
            Outbox.Write(
                key: "a", value: value.map { .integer($0) }, isHost: false, time: time, generation: 1, owner: owner)
        }
        var outbox = Outbox(domain: "d")
        outbox.add([write(1, at: 1000, by: 1)], now: 1000)
        outbox.add([write(nil, at: 5, by: 2)], now: 6)
        #expect(outbox.writes == [write(nil, at: 5, by: 2)])
    }

    @Test func `a file that is torn anywhere gives nothing`() {
        var outbox = Outbox(domain: "d")
        outbox.add([write("a", .string("text")), write("b", nil)])
        let bytes = outbox.encoded
        for length in 0..<bytes.count {
            #expect(throws: Outbox.Failure.self) { try Outbox(Array(bytes[..<length]), domain: "d") }
        }
    }

    @Test func `a file of another domain or of none is not read`() {
        let other = Outbox(domain: "other").encoded
        #expect(throws: Outbox.Failure.otherDomain) { try Outbox(other, domain: "d") }
        #expect(throws: Outbox.Failure.self) { try Outbox(Array("nonsense".utf8), domain: "d") }
    }
}
