// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Sealing

/// The next step of a device that moves an account to a new key.
@Suite struct KeyMoveTests {
    private static let former = HeldKey(
        key: .sample(secret: [UInt8](repeating: 1, count: 16), 1), marker: marker(1), rejected: [])

    private static func marker(_ number: UInt64, _ links: [KeyLink] = []) -> SealedMarker {
        SealedMarker(of: .sample(secret: [UInt8](repeating: UInt8(number), count: 16), number), time: 5, links: links)
    }

    private static func held(_ number: UInt64, after former: HeldKey? = nil) -> HeldKey {
        let key = AccountKey.sample(secret: [UInt8](repeating: UInt8(number), count: 16), number)
        let links = former.map { [KeyLink(from: $0.key, to: key.identifier, .replaced)] } ?? []
        return HeldKey(key: key, marker: SealedMarker(of: key, time: 5, links: links))
    }

    private func step(
        _ move: KeyMove, _ sealed: [SealedMarker], _ links: [KeyLink] = [], damaged: [UInt64] = [],
        hasFormer: Bool = true
    ) -> KeyMove.Step {
        move.step(
            SeenMarkers(sealed: sealed, notes: links, damaged: Set(damaged.map { KeyIdentifier(high: 0, low: $0) })),
            notes: Set(links.map(\.noteName)), hasFormer: hasFormer)
    }

    @Test func `from plain, the marker comes first, and then the former form is read`() {
        let move = KeyMove(from: nil, to: Self.held(3))
        #expect(step(move, []) == .writeMarker)
        #expect(step(move, [Self.marker(3)]) == .readFormer)
        #expect(step(move, [], hasFormer: false) == .reset, "the remote was emptied")
        #expect(step(move, [Self.marker(3)], hasFormer: false) == .readFormer, "the former form was removed")
    }

    @Test func `from a key, the note comes between`() throws {
        let next = Self.held(3, after: Self.former)
        let move = KeyMove(from: Self.former, to: next)
        let link = try #require(move.link)
        #expect(step(move, [Self.marker(1)]) == .writeMarker)
        #expect(step(move, [Self.marker(1), next.marker]) == .writeNote(link))
        #expect(step(move, [Self.marker(1), next.marker], [link]) == .readFormer)
    }

    @Test func `of two devices that move at once the greater key gives way, before it writes and after`() {
        for former in [nil, Self.former] {
            let (two, three) = (Self.held(2, after: former), Self.held(3, after: former))
            let there = former.map { [$0.marker] } ?? []
            let (small, large) = (KeyMove(from: former, to: two), KeyMove(from: former, to: three))
            let way = KeyLink(from: three.key, to: two.key.identifier, .gaveWay)
            #expect(step(large, there + [two.marker]) == .giveWay(way))
            #expect(step(large, there + [two.marker, three.marker]) == .giveWay(way))
            #expect(step(small, there + [three.marker]) == .writeMarker)
            let notes = [small.link, large.link].compactMap(\.self)
            #expect(step(small, there + [two.marker, three.marker], notes) == .readFormer)
        }
    }

    @Test func `a move that nobody has seen gives way to one that has removed the former form`() {
        let move = KeyMove(from: nil, to: Self.held(2))
        let way = KeyLink(from: move.next.key, to: KeyIdentifier(high: 0, low: 3), .gaveWay)
        #expect(step(move, [Self.marker(3)], hasFormer: false) == .giveWay(way))
        #expect(step(move, [Self.marker(3)]) == .writeMarker, "others wait until the former form was read to its end")
        #expect(step(move, [], damaged: [3], hasFormer: false) == .wait)
    }

    @Test func `a move of which a backup was restored gives way to the key that came later`() {
        let next = Self.held(3, after: Self.former)
        let later = KeyLink(from: next.key, to: KeyIdentifier(high: 0, low: 9), .replaced)
        let move = KeyMove(from: Self.former, to: next)
        let way = KeyLink(from: next.key, to: KeyIdentifier(high: 0, low: 9), .gaveWay)
        #expect(step(move, [Self.marker(1), next.marker, Self.marker(9, [later])]) == .giveWay(way))
    }

    @Test func `a smaller marker that somebody made up without the former key does not count where a link leads on`() {
        let next = Self.held(3, after: Self.former)
        let move = KeyMove(from: Self.former, to: next)
        // An attacker who can write to the remote can stop devices, but none takes over the attacker's key.
        let way = KeyLink(from: next.key, to: KeyIdentifier(high: 0, low: 2), .gaveWay)
        #expect(step(move, [Self.marker(1), Self.marker(2), next.marker]) == .giveWay(way))
        // A forged link doesn't lead away from the right key.
        let forged = KeyLink(
            from: .sample(secret: [UInt8](repeating: 0x66, count: 16), 3), to: KeyIdentifier(high: 0, low: 4), .replaced
        )
        #expect(
            step(move, [Self.marker(1), next.marker, Self.marker(4, [forged])], [move.link].compactMap(\.self))
                == .readFormer)
    }

    @Test func `nothing is done while a marker that decides is not whole`() {
        let move = KeyMove(from: nil, to: Self.held(3))
        #expect(step(move, [], damaged: [3]) == .wait)
        #expect(step(move, [Self.marker(2)], damaged: [3]) == .wait)
    }

    @Test func `a new marker has the links of the former one, its own first`() {
        var number: UInt64 = 10
        func roll() -> UInt64 {
            number += 1
            return number
        }
        let first = HeldKey(replacing: nil, time: 1, random: roll)
        let second = HeldKey(replacing: first, time: 2, random: roll)
        let third = HeldKey(replacing: second, time: 3, random: roll)
        #expect(first.marker.links == [])
        #expect(third.marker.links.map(\.first) == [second.key.identifier, first.key.identifier])
        #expect(third.marker.links[0].isProven(by: second.key.blobs))
        #expect(third.marker.isGenuine(under: third.key.blobs))
    }

    /// Whoever takes the key that is rejected for the account's, as an owner who replaced the key on another device may,
    /// has to learn of the new one.
    @Test func `devices with a key that was rejected stop until they have the one that replaced it`() {
        func roll() -> UInt64 { .random(in: 0 ... .max) }
        for _ in 0..<200 {
            let former = HeldKey(replacing: nil, time: 1, random: roll)
            let rejected = HeldKey(replacing: former, time: 2, random: roll)
            let rejecting = HeldKey(key: former.key, marker: former.marker, rejected: [rejected.key.identifier])
            let next = HeldKey(replacing: rejecting, time: 3, random: roll)
            let seen = SeenMarkers(sealed: [former.marker, rejected.marker, next.marker])
            #expect(MarkerChoice(among: seen, key: rejected.key, wasEncrypted: true) == .keyNeeded(next.key.identifier))
            #expect(
                MarkerChoice(among: seen, key: next.key, wasEncrypted: true, rejected: next.rejected) == .using)
        }
    }

    @Test(arguments: [(.max, true), (1 << 32, true), ((1 << 32) - 1, false), (0, false)] as [(UInt64, Bool)])
    func `a key's identifier is less than a bound that leaves room`(high: UInt64, isLess: Bool) {
        let bound = KeyIdentifier(high: high, low: 0)
        let key = AccountKey(below: bound, random: { .max - 1 })
        #expect((key.identifier < bound) == isLess)
    }
}
