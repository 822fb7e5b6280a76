// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Replication

/// What a listing of heads means. Heads, and the states that they hold, are named by numbers.
struct HeadNewsTests {
    private let store = "s"
    private let vector = VersionVector([Origin(bits: 1): 5])

    private func head(_ number: UInt64, state: UInt64) -> SeenHead {
        let state = HeadState(digest: Bits128(high: 1, low: state), vector: vector)
        let identity = HeadIdentity(
            origin: Origin(bits: number), digest: Bits128(high: 0, low: number), sequence: 1)
        return SeenHead(
            identity, under: identity.origin.description, isWhole: true, states: [store: state], segments: [])
    }

    @Test func `a state that was skipped is read once it can be`() {
        let (gone, there) = (Bits128(high: 1, low: 1), Bits128(high: 1, low: 2))
        let heads = [head(1, state: 1), head(2, state: 2)]
        var news = HeadNews(heads, known: [], joined: [:])
        news.noteRead(there, of: store)
        let isWhole = news.passOver([gone], of: store, read: vector)
        #expect(isWhole)
        let result = news.finish(joined: [store])
        #expect(result.isComplete && result.heads.count == 2 && result.headsWithGaps == [Bits128(high: 0, low: 1)])
        #expect(result.states == [store: [there]])
        var gaps = HeadGaps()
        gaps.note(result)
        var tried: [Int] = []
        for pull in 1...20 {
            gaps.beginPull()
            let known = result.heads.subtracting(gaps.headsToRead)
            var same = HeadNews(heads, known: known, joined: result.states, passedOver: gaps.statesToSkip)
            if same.states == [store: [gone]] {
                tried.append(pull)
                // It is still covered by what was read before.
                let isCovered = same.passOver([gone], of: store, read: VersionVector())
                #expect(isCovered)
            } else {
                #expect(same.states.isEmpty)
            }
            let next = same.finish(joined: [])
            #expect(next.headsWithGaps == result.headsWithGaps && next.skipped == result.skipped)
            gaps.note(next)
            // Another head with the same state is read at once.
            let other = HeadNews(
                [head(3, state: 1), head(2, state: 2)], known: known, joined: result.states,
                passedOver: gaps.statesToSkip)
            #expect(other.states == [store: [gone]])
        }
        #expect(tried == [1, 2, 4, 8, 16])
        // Its segments have arrived.
        var last = HeadNews(heads, known: [Bits128(high: 0, low: 2)], joined: result.states)
        last.noteRead(gone, of: store)
        let whole = last.finish(joined: [store])
        #expect(whole.headsWithGaps.isEmpty && whole.states == [store: [gone, there]])
        gaps.note(whole)
        gaps.beginPull()
        #expect(gaps.isEmpty && gaps.headsToRead.isEmpty && gaps.statesToSkip.isEmpty)
    }

    @Test func `a state is covered by one that was joined with a head of which another was skipped`() {
        let (read, skipped) = (Bits128(high: 1, low: 1), Bits128(high: 1, low: 2))
        var news = HeadNews([head(1, state: 1), head(2, state: 2)], known: [], joined: [store: [read]])
        let isCovered = news.passOver([skipped], of: store, read: VersionVector())
        #expect(isCovered)
    }

    @Test func `a corrupt state covers nothing, also not itself in a head whose segments have not arrived`() {
        let state = Bits128(high: 1, low: 1)
        let (known, other) = (head(1, state: 1), head(2, state: 1))
        var news = HeadNews(
            [known, other], known: [known.digest], joined: [:], corrupt: [store: [state: "It is damaged."]])
        #expect(news.states == [store: [state]])
        let isCovered = news.passOver([state], of: store, read: VersionVector())
        #expect(!isCovered)
        let result = news.finish(joined: [])
        #expect(result.lackingOrigins == [other.origin] && result.unread == [state])
    }

    @Test func `whoever leaves an origin reads everything anew, once`() {
        var own = OwnHeads()
        let (former, present) = (Origin(bits: 1), Origin(bits: 2))
        func look(at found: HeadIdentity?, as origin: Origin) -> HeadUnderOwnName {
            own.noteJoined()
            return own.classify(found, as: origin, published: 0, last: nil)
        }
        #expect(look(at: nil, as: former) == .none && !own.readsAnew)
        #expect(look(at: nil, as: present) == .none && own.readsAnew)
        #expect(look(at: nil, as: present) == .none && !own.readsAnew)
        let foreign = HeadIdentity(origin: present, digest: Bits128(high: 0, low: 1), sequence: 1)
        #expect(look(at: foreign, as: present) == .foreign && own.readsAnew)
        #expect(look(at: nil, as: former) == .none && !own.readsAnew)
    }

    @Test func `a head that the previous process wrote after its last pull is missed`() {
        let origin = Origin(bits: 1)
        var own = OwnHeads()
        // The process before has begun to publish, and its cursor, from before that, doesn't name a head.
        #expect(own.classify(nil, as: origin, published: 1, last: nil) == .lost)
        #expect(own.classify(nil, as: origin, published: 1, last: nil) == .lost)
        // A device that has never published misses nothing.
        var new = OwnHeads()
        #expect(new.classify(nil, as: origin, published: 0, last: nil) == .none)
    }

    @Test func `after a restart, a head from before the last publication is not taken for it`() {
        let origin = Origin(bits: 7)
        func head(_ sequence: UInt64) -> HeadIdentity {
            HeadIdentity(origin: origin, digest: Bits128(high: 2, low: sequence), sequence: sequence)
        }
        // The process published once more after the pull that wrote the cursor. Then a listing is from before that.
        var own = OwnHeads()
        #expect(own.classify(head(10), as: origin, published: 10, last: head(9)) == .inherited)
        #expect(own.classify(head(9), as: origin, published: 10, last: head(9)) == .inherited)
        var other = OwnHeads()
        #expect(other.classify(head(9), as: origin, published: 9, last: head(9)) == .current)
    }

    @Test func `a publication counts as long as its head is whole and its segments are there`() {
        let (former, present) = (Origin(bits: 3), Origin(bits: 4))
        let last = HeadIdentity(origin: former, digest: Bits128(high: 3, low: 1), sequence: 1)
        func look(as origin: Origin, isWhole: Bool = true, hasSegments: Bool = true) -> OwnPublication {
            var own = OwnHeads()
            return own.find(as: origin, published: origin == former ? 1 : 0, last: last) {
                $0 == former ? (last, isWhole) : nil
            }.publication(hasSegments: hasSegments)
        }
        // Under the former origin's name until something is published under the present one.
        for origin in [former, present] {
            #expect(look(as: origin) == .asPublished)
            #expect(look(as: origin, isWhole: false) == .missing)
            #expect(look(as: origin, hasSegments: false) == .missing)
        }
        #expect(look(as: former).outdated(if: true) == .outdated)
        #expect(look(as: former, isWhole: false).outdated(if: true) == .missing)
    }
}
