// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Replication

/// What may be removed from a remote. Heads are named by their origins, segments by numbers.
struct GarbageTests {
    private let own = Origin(bits: 1)
    private let other = Origin(bits: 2)
    private let start: UInt64 = 1_700_000_000_000_000
    private var memory = GarbageMemory()
    private let shared = BackendTraits(coalescing: .zero, givesHints: false)
    private let carried = BackendTraits(coalescing: .zero, givesHints: false, replicatesSeparately: true)

    private func head(_ origin: Origin, _ sequence: UInt64 = 1, knows n: UInt64, segments: UInt64...) -> SeenHead {
        let state = HeadState(
            digest: Bits128(high: n, low: sequence), vector: VersionVector([Origin(bits: 7): n]))
        let identity = HeadIdentity(
            origin: origin, digest: Bits128(high: origin.bits, low: sequence), sequence: sequence)
        return SeenHead(
            identity, under: origin.description, isWhole: true, states: ["s": state], segments: names(segments))
    }

    private func names(_ numbers: [UInt64]) -> Set<Bits128> { Set(numbers.map { Bits128(high: 0, low: $0) }) }

    /// Collects garbage daily for a number of days, and returns what is removed on the last one.
    private mutating func collect(
        days: UInt64, _ heads: [SeenHead], segments: [UInt64] = [], joined: Set<Bits128>, published: SeenHead,
        unread: Set<Bits128> = [], unreadable: [HeadFile] = [], areAllHeads: Bool = true, forgotten: Set<Origin> = []
    ) -> GarbageMemory.Going {
        let remains = Remains(
            heads: heads, unreadable: unreadable, areAllHeads: areAllHeads, segments: names(segments), leftovers: [])
        var going: GarbageMemory.Going?
        for day in 0...days {
            let request = GarbageCollection(
                account: "", origin: own, forgottenOrigins: forgotten, time: start + day * Retention.day)
            going = memory.look(at: remains, for: request, joined: joined, unread: unread, published: published)
        }
        return going ?? GarbageMemory.Going(heads: [], segments: [], leftovers: [])
    }

    @Test func `of heads that are gone few are remembered, however many a remote shows`() {
        var latest = LatestHeads()
        for poll in 0..<100 as Range<UInt64> {
            let heads = (0..<100 as Range<UInt64>).map { number in
                head(Origin(bits: 100 * poll + number), knows: 1, segments: 1000 * poll + number)
            }
            latest.note(heads, time: start + poll)
        }
        let left = latest.segments(besides: nil)
        #expect(left.count <= LatestHeads.mostHeads + 100)
        #expect(left.isSuperset(of: names((0..<100).map { 99_000 + $0 })))
        let many = Set((0..<UInt64(LatestHeads.mostSegments)).map { Bits128(high: 1, low: $0) })
        let large = (0..<3 as Range<UInt64>).map { number in
            SeenHead(
                HeadIdentity(origin: Origin(bits: number), digest: Bits128(high: number, low: 0), sequence: 1),
                under: "\(number)", isWhole: true, states: [:],
                segments: Set(many.map { Bits128(high: number, low: $0.low) }))
        }
        for (index, head) in large.enumerated() { latest.note([head], time: start + 100 + UInt64(index)) }
        #expect(latest.segments(besides: nil).count == 2 * many.count)
    }

    @Test(arguments: [(29, 0), (30, 1)] as [(UInt64, Int)])
    mutating func `another device's head goes after a month if all in it is published here`(
        days: UInt64, count: Int
    ) {
        let (mine, theirs) = (head(own, knows: 5), head(other, knows: 5))
        let going = collect(days: days, [mine, theirs], joined: [theirs.digest], published: mine)
        #expect(going.heads.count == count)
    }

    @Test mutating func `a head stays if it was not joined, or knows more than what is published here`() {
        let (mine, theirs) = (head(own, knows: 5), head(other, knows: 5))
        #expect(collect(days: 40, [mine, theirs], joined: [], published: mine).heads.isEmpty)
        let later = head(other, 2, knows: 6)
        #expect(collect(days: 40, [mine, later], joined: [later.digest], published: mine).heads.isEmpty)
    }

    @Test mutating func `the head of a device goes a day after it was removed from the list, not sooner`() {
        let (mine, theirs) = (head(own, knows: 5), head(other, knows: 5))
        let joined: Set = [theirs.digest]
        #expect(collect(days: 20, [mine, theirs], joined: joined, published: mine).heads.isEmpty)
        // A server may answer with an old version of it.
        for (day, seen, isGoing) in [
            (21, theirs, false), (22, head(other, 2, knows: 6), false), (23, theirs, false), (24, theirs, true),
        ] as [(UInt64, SeenHead, Bool)] {
            let request = GarbageCollection(
                account: "", origin: own, forgottenOrigins: [other], time: start + day * Retention.day)
            let remains = Remains(heads: [mine, seen], areAllHeads: true, segments: [], leftovers: [])
            let going = memory.look(at: remains, for: request, joined: joined, unread: [], published: mine)
            #expect(going.heads.map(\.name) == (isGoing ? [other.description] : []), "day \(day)")
        }
    }

    @Test(arguments: [(6, true, 0), (7, true, 1), (29, false, 0), (30, false, 1)] as [(UInt64, Bool, Int)])
    mutating func `a head of which something never arrives goes a week after its device was forgotten, or else a month`(
        days: UInt64, isForgotten: Bool, count: Int
    ) throws {
        let (mine, theirs) = (head(own, knows: 5), head(other, knows: 6))
        let state = try #require(theirs.states["s"]).digest
        let going = collect(
            days: days, [mine, theirs], joined: [], published: mine, unread: [state],
            forgotten: isForgotten ? [other] : [])
        #expect(going.heads.count == count)
        memory = GarbageMemory()
        #expect(
            collect(days: 40, [mine, theirs], joined: [], published: mine, forgotten: [other]).heads.isEmpty,
            "it was read, and is too large to be joined")
    }

    @Test(arguments: [(6, true, 0), (7, true, 1), (29, false, 0), (30, false, 1)] as [(UInt64, Bool, Int)])
    mutating func `a head that nobody can read goes a week after its device was forgotten, or else a month`(
        days: UInt64, isForgotten: Bool, count: Int
    ) {
        let mine = head(own, knows: 5)
        let files = [own, other].map { HeadFile(name: $0.description, digest: Bits128(high: 9, low: $0.bits)) }
        let going = collect(
            days: days, [mine], joined: [], published: mine, unreadable: files, areAllHeads: false,
            forgotten: isForgotten ? [other] : [])
        #expect(going.heads == Array(files.suffix(count)))
    }

    @Test mutating func `a segment goes after a week if no head names it, and every head could be read`() {
        let (mine, theirs) = (head(own, knows: 5, segments: 1), head(other, knows: 5, segments: 2))
        func going(days: UInt64, areAll: Bool = true) -> [Bits128] {
            memory = GarbageMemory()
            return collect(
                days: days, [mine, theirs], segments: [1, 2, 3], joined: [], published: mine, areAllHeads: areAll
            ).segments
        }
        #expect(going(days: 6).isEmpty)
        #expect(going(days: 7) == [Bits128(high: 0, low: 3)])
        #expect(going(days: 40, areAll: false).isEmpty)
    }

    @Test mutating func `a segment that was replaced goes after minutes unless another head names it`() {
        let (former, mine) = (head(own, knows: 5, segments: 1, 2), head(own, 2, knows: 6, segments: 3))
        memory.note([head(other, knows: 5, segments: 2)], time: start)
        memory.noteReplaced(former.segments, by: mine.segments, time: start)
        for _ in 1...3 { memory.note([], time: start) }
        #expect(memory.takeReplaced(start + 1, heads: [], published: mine, traits: shared).isEmpty)
        // Listings omit the other head, which still counts because it was seen less than a day ago.
        let later = start + 120_000_000
        #expect(memory.takeReplaced(later, heads: [], published: mine, traits: shared) == [Bits128(high: 0, low: 1)])
        let nextDay = start + Retention.day
        memory.note([], time: nextDay)
        let going = memory.takeReplaced(nextDay, heads: [], published: mine, traits: shared)
        #expect(going == [Bits128(high: 0, low: 2)])
    }

    @Test mutating func `a segment that was replaced stays until three polls have found that no head names it`() {
        let (former, mine) = (head(own, knows: 5, segments: 1), head(own, 2, knows: 6, segments: 3))
        let hour: UInt64 = 3_600_000_000
        memory.noteReplaced(former.segments, by: mine.segments, time: start)
        for look in 1...2 as ClosedRange<UInt64> {
            memory.note([head(other, 1, knows: 5)], time: start + look * hour)
            #expect(memory.takeReplaced(start + look * hour, heads: [], published: mine, traits: shared).isEmpty)
        }
        var named = memory
        named.note([head(other, 2, knows: 6, segments: 1)], time: start + 3 * hour)
        #expect(named.takeReplaced(start + 3 * hour, heads: [], published: mine, traits: shared).isEmpty)
        memory.note([head(other, 1, knows: 5)], time: start + 3 * hour)
        let going = memory.takeReplaced(start + 3 * hour, heads: [], published: mine, traits: shared)
        #expect(going == [Bits128(high: 0, low: 1)])
    }

    @Test mutating func `where each object travels by itself, a segment that was replaced stays for a week`() {
        let (former, mine) = (head(own, knows: 5, segments: 1), head(own, 2, knows: 6, segments: 3))
        memory.noteReplaced(former.segments, by: mine.segments, time: start)
        // A clock that is set back or jumps ahead doesn't let anything be removed.
        for time in [start - Retention.day, start, start + 90 * Retention.day] {
            memory.note([mine], time: time)
            #expect(memory.takeReplaced(time, heads: [mine], published: mine, traits: carried).isEmpty)
        }
        #expect(collect(days: 6, [mine], segments: [1, 3], joined: [], published: mine).segments.isEmpty)
        #expect(memory.hasReplaced)
        let going = collect(days: 7, [mine], segments: [1, 3], joined: [], published: mine)
        #expect(going.segments == [Bits128(high: 0, low: 1)])
        _ = collect(days: 0, [mine], segments: [3], joined: [], published: mine)
        #expect(!memory.hasReplaced)
    }

    @Test mutating func `segments that were replaced go, the first ones first, once they take too much room`() {
        let mine = head(own, 3, knows: 7, segments: 3)
        for segment in 1...3 as ClosedRange<UInt64> { memory.noteLength(200 << 10, of: Bits128(high: 0, low: segment)) }
        memory.noteReplaced(names([1]), by: names([2]), time: start)
        memory.noteReplaced(names([2]), by: mine.segments, time: start + 1)
        #expect(memory.takeReplaced(start + 2, heads: [mine], published: mine, traits: carried).isEmpty)
        memory.note([mine], time: start + 2)
        let going = memory.takeReplaced(start + 2, heads: [mine], published: mine, traits: carried)
        #expect(going == [Bits128(high: 0, low: 1)])
        #expect(memory.takeReplaced(start + 3, heads: [mine], published: mine, traits: carried).isEmpty)
    }
}
