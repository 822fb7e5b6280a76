// SPDX-License-Identifier: Apache-2.0

import SeededRandom
import Testing

@testable import Sealing

@Suite struct MarkerChoiceTests {
    private static let keys = (1...6).map {
        AccountKey.sample(secret: [UInt8](repeating: UInt8($0), count: 16), UInt64($0))
    }
    private static let (one, two, three) = (keys[0], keys[1], keys[2])

    private static func marker(_ key: AccountKey, _ links: [KeyLink] = []) -> SealedMarker {
        SealedMarker(of: key, time: key.identifier.low, links: links)
    }

    private static func link(_ first: AccountKey, _ second: AccountKey, _ kind: KeyLink.Kind = .replaced) -> KeyLink {
        KeyLink(from: first, to: second.identifier, kind)
    }

    /// Returns a link that was forged without the first key.
    private static func forged(_ first: AccountKey, _ second: AccountKey, _ kind: KeyLink.Kind = .replaced) -> KeyLink {
        link(AccountKey.sample(secret: [UInt8](repeating: 0x66, count: 16), first.identifier.low), second, kind)
    }

    private func choice(
        _ sealed: [SealedMarker], _ notes: [KeyLink] = [], damaged: [AccountKey] = [], key: AccountKey? = nil,
        wasEncrypted: Bool = false, rejected: [AccountKey] = [], awaited: AccountKey? = nil
    ) -> MarkerChoice {
        let seen = SeenMarkers(sealed: sealed, notes: notes, damaged: Set(damaged.map(\.identifier)))
        return MarkerChoice(
            among: seen, key: key, wasEncrypted: wasEncrypted, rejected: Set(rejected.map(\.identifier)),
            awaited: awaited?.identifier)
    }

    @Test func `without a sealed marker the plain ones decide, but not for who was encrypted`() {
        #expect(choice([]) == .plain)
        #expect(choice([], wasEncrypted: true) == .reset)
        #expect(choice([], key: Self.one) == .reset)
        #expect(choice([], damaged: [Self.two], key: Self.one) == .waiting)
    }

    @Test func `a plain device stops where a sealed marker is`() {
        #expect(choice([Self.marker(Self.two)]) == .keyNeeded(Self.two.identifier))
        #expect(choice([Self.marker(Self.two)], rejected: [Self.two]) == .plain)
        #expect(choice([Self.marker(Self.two)], wasEncrypted: true, rejected: [Self.two]) == .reset)
    }

    @Test func `of two keys that were made at once the smaller counts`() {
        let both = [Self.marker(Self.two), Self.marker(Self.one)]
        #expect(choice(both, key: Self.one) == .using)
        #expect(choice(both, key: Self.two) == .keyNeeded(Self.one.identifier))
        #expect(choice(both, key: Self.two, rejected: [Self.one]) == .using)
    }

    @Test func `a replaced key leads to its successor, though that is greater`() {
        let link = Self.link(Self.one, Self.two)
        for (markers, notes) in [
            ([Self.marker(Self.one), Self.marker(Self.two)], [link]),
            ([Self.marker(Self.one), Self.marker(Self.two, [link])], []), ([Self.marker(Self.two, [link])], []),
            ([Self.marker(Self.two)], [link]),
        ] {
            #expect(choice(markers, notes, key: Self.one) == .keyNeeded(Self.two.identifier))
            #expect(choice(markers, notes, key: Self.two) == .using)
            #expect(choice(markers, notes) == .keyNeeded(Self.two.identifier))
        }
    }

    @Test func `a link from the own key counts only with its proof`() {
        let markers = [Self.marker(Self.one), Self.marker(Self.two)]
        #expect(choice(markers, [Self.forged(Self.one, Self.two)], key: Self.one) == .using)
        #expect(choice(markers, [Self.link(Self.one, Self.two)], key: Self.one) == .keyNeeded(Self.two.identifier))
        let named = KeyLink(noteName: Self.link(Self.one, Self.two).noteName).map { [$0] } ?? []
        #expect(choice(markers, named, key: Self.one) == .using)
        #expect(choice(markers, named) == .keyNeeded(Self.two.identifier))
        // The same in a forged marker.
        let planted = Self.marker(Self.two, [Self.forged(Self.one, Self.two)])
        #expect(choice([Self.marker(Self.one), planted], key: Self.one) == .using)
    }

    @Test func `links of a rejected marker do not count`() {
        let markers = [Self.marker(Self.two), Self.marker(Self.three, [Self.forged(Self.one, Self.three)])]
        #expect(choice(markers, key: Self.one, rejected: [Self.three]) == .reset)
        #expect(choice(markers, key: Self.two, rejected: [Self.three]) == .using)
    }

    @Test func `links in a circle leave all of its keys candidates, replaced ones last`() {
        let circle = [Self.link(Self.one, Self.two), Self.link(Self.two, Self.one, .joined)]
        let markers = [Self.marker(Self.one), Self.marker(Self.two)]
        #expect(choice(markers, circle, key: Self.two) == .using)
        let joined = [Self.link(Self.one, Self.two, .joined), Self.link(Self.two, Self.one, .joined)]
        #expect(choice(markers, joined, key: Self.one) == .using)
        let replaced = [Self.link(Self.one, Self.two), Self.link(Self.two, Self.one)]
        #expect(choice(markers, replaced) == .keyNeeded(Self.one.identifier))
        // No device makes two such keys. A device of either knows that its own was replaced.
        #expect(choice(markers, replaced, key: Self.one) == .keyNeeded(Self.two.identifier))
        #expect(choice(markers, replaced, key: Self.two) == .keyNeeded(Self.one.identifier))
    }

    @Test func `a key that a holder has replaced is not gone on with, wherever others say that its successor leads`() {
        let replaced = Self.link(Self.one, Self.two)
        let markers = [Self.marker(Self.one), Self.marker(Self.two, [replaced])]
        let next = MarkerChoice.keyNeeded(Self.two.identifier)
        for kind in [KeyLink.Kind.replaced, .joined, .gaveWay] {
            // Key 3 is the attacker's, who can lead both back through it.
            let back = [Self.forged(Self.two, Self.one, kind)]
            let around = [Self.forged(Self.two, Self.three, kind), Self.link(Self.three, Self.one, kind)]
            for forged in [back, around] {
                #expect(choice(markers, forged, key: Self.one) == next, "\(kind)")
                #expect(choice(markers, forged, key: Self.two) == .using, "\(kind)")
                #expect(Unlocking(RecoveryPhrase(of: Self.one), on: markers, notes: forged) == .replaced, "\(kind)")
                let seen = SeenMarkers(sealed: markers, notes: forged)
                #expect(seen.hasSuccessor(of: Self.one) && !seen.hasSuccessor(of: Self.two), "\(kind)")
            }
        }
        // Even with the marker of key 3, no device goes back: at worst one stops until its user rejects key 3.
        let planted = Self.marker(Self.three, [Self.forged(Self.two, Self.three), Self.link(Self.three, Self.one)])
        #expect(choice(markers + [planted], [replaced], key: Self.one) != .using)
        #expect(choice(markers + [planted], [replaced], key: Self.two) == .using)
    }

    @Test func `a key whose marker is gone and that leads nowhere finds its account gone`() {
        #expect(choice([Self.marker(Self.two)], key: Self.one) == .reset)
        #expect(choice([Self.marker(Self.two)], [Self.link(Self.one, Self.three)], key: Self.one) == .reset)
        #expect(
            choice(
                [Self.marker(Self.two)], [Self.link(Self.one, Self.three), Self.link(Self.three, Self.two)],
                key: Self.one) == .keyNeeded(Self.two.identifier))
    }

    @Test func `a key that a person has taken for right is waited for, and so is what it leads to`() {
        let asks = MarkerChoice.keyNeeded(Self.two.identifier)
        #expect(choice([Self.marker(Self.two)], key: Self.one, awaited: Self.two) == asks)
        #expect(choice([Self.marker(Self.one), Self.marker(Self.two)], key: Self.one, awaited: Self.two) == asks)
        let replaced = [Self.link(Self.three, Self.two)]
        #expect(choice([Self.marker(Self.two)], replaced, key: Self.one, awaited: Self.three) == asks)
        // No other key is waited for: neither a third one in the remote, nor one that is gone.
        #expect(choice([Self.marker(Self.three)], key: Self.one, awaited: Self.two) == .reset)
        #expect(choice([], key: Self.one, awaited: Self.two) == .reset)
        #expect(choice([Self.marker(Self.one)], key: Self.one, awaited: Self.two) == .using)
    }

    @Test func `a damaged marker of the own key is waited for`() {
        #expect(choice([Self.marker(Self.two)], damaged: [Self.one], key: Self.one) == .waiting)
        // Intact, but not written by a holder of the key.
        let forged = Self.marker(AccountKey.sample(secret: [UInt8](repeating: 9, count: 16), 1))
        #expect(choice([forged], key: Self.one) == .waiting)
        #expect(choice([Self.marker(Self.one)], damaged: [Self.two], key: Self.one) == .using)
    }

    @Test func `a phrase takes the account whose marker it opens, whatever lies beside it`() {
        let phrase = RecoveryPhrase(of: Self.two)
        let (one, two) = (Self.marker(Self.one), Self.marker(Self.two))
        #expect(Unlocking(phrase, on: [one, two], notes: []) == .account(Self.two))
        #expect(Unlocking(phrase, on: [one], notes: []) == .wrong)
        #expect(Unlocking(phrase, on: [two], notes: [], rejected: [Self.two.identifier]) == .wrong)
        #expect(Unlocking(phrase, on: [one, two], notes: [Self.link(Self.two, Self.one)]) == .replaced)
        #expect(Unlocking(phrase, on: [one, two], notes: [Self.forged(Self.two, Self.one)]) == .account(Self.two))
        #expect(
            Unlocking(phrase, on: [one, two], notes: [Self.link(Self.two, Self.one, .joined)]) == .account(Self.two))
        let planted = Self.marker(AccountKey.sample(secret: [UInt8](repeating: 9, count: 16), 2))
        #expect(Unlocking(phrase, on: [planted], notes: []) == .wrong)
    }

    @Test func `of several markers under one secret a phrase takes the smallest that was not left`() {
        let secret = [UInt8](repeating: 5, count: 16)
        let (low, high) = (AccountKey.sample(secret: secret, 10), AccountKey.sample(secret: secret, 11))
        let markers = [Self.marker(high), Self.marker(low)]
        #expect(Unlocking(RecoveryPhrase(of: low), on: markers, notes: []) == .account(low))
        let left = [Self.link(low, Self.one)]
        let markersAndOne = markers + [Self.marker(Self.one)]
        #expect(Unlocking(RecoveryPhrase(of: low), on: markersAndOne, notes: left) == .account(high))
    }

    @Test func `the note of a move that gave way does not shut out the words of the account`() {
        // Key 3 came after key 1 and gave way to key 2, which turned out to lead to key 1.
        let notes = [Self.link(Self.one, Self.three), Self.link(Self.two, Self.one, .joined)]
        let markers = [Self.marker(Self.one), Self.marker(Self.two)]
        #expect(choice(markers, notes, key: Self.one) == .using)
        #expect(Unlocking(RecoveryPhrase(of: Self.one), on: markers, notes: notes) == .account(Self.one))
        // If key 3 was replaced in turn, it leads on.
        let later = Self.marker(Self.two, [Self.link(Self.three, Self.two)])
        let former = [Self.marker(Self.one), later]
        #expect(Unlocking(RecoveryPhrase(of: Self.one), on: former, notes: [notes[0]]) == .replaced)
    }

    @Test func `the marker of a move that gave way does not count where it comes back`() {
        // Key 1 was to come after key 2, and gave way to key 3.
        let notes = [Self.link(Self.two, Self.one), Self.link(Self.one, Self.three, .gaveWay)]
        let markers = [Self.marker(Self.one), Self.marker(Self.three)]
        #expect(choice(markers, notes, key: Self.three) == .using)
        #expect(choice(markers, [notes[0]], key: Self.three) == .keyNeeded(Self.one.identifier))
        // Anyone could have put key 3 there, so it doesn't shut out a device that has key 2.
        let seen = SeenMarkers(sealed: [Self.marker(Self.two), Self.marker(Self.three)], notes: notes)
        #expect(!seen.hasSuccessor(of: Self.two))
        #expect(
            Unlocking(RecoveryPhrase(of: Self.two), on: seen.sealed, notes: notes) == .account(Self.two))
    }

    @Test func `what others add to the note of a move that gave way shuts nobody out`() {
        // Key 2 was to come after key 1, and gave way to key 4, which was the attacker's and was rejected.
        let (planted, phrase) = (Self.keys[3], RecoveryPhrase(of: Self.one))
        let notes = [Self.link(Self.one, Self.two), Self.link(Self.two, planted, .gaveWay)]
        for kind in [KeyLink.Kind.replaced, .joined, .gaveWay] {
            for target in [Self.one, Self.three, planted] {
                let forged = notes + [Self.forged(Self.two, target, kind), Self.forged(Self.three, Self.two, kind)]
                let there = [Self.marker(Self.one), Self.marker(Self.three), Self.marker(planted)]
                #expect(!SeenMarkers(sealed: there, notes: forged).hasSuccessor(of: Self.one), "\(kind)")
                #expect(Unlocking(phrase, on: there, notes: forged) == .account(Self.one), "\(kind)")
                let rejected = [Self.three, planted]
                #expect(choice(there, forged, key: Self.one, rejected: rejected) == .using, "\(kind)")
            }
        }
    }

    @Test func `links of 56 a marker, deep, in circles and forged, are gone through and move no device`() {
        var random = SplitMix(seed: 6)
        let own = AccountKey.sample(secret: [UInt8](repeating: 7, count: 16), 0)
        let identifiers = (1...255).map { KeyIdentifier(high: 0, low: $0) }
        func forger(_ identifier: KeyIdentifier) -> AccountKey { .sample(secret: random.bytes(16), identifier.low) }
        // Each leads to the next, the last to the first, all to the own key, and some to random keys.
        let markers = identifiers.indices.map { index in
            let key = forger(identifiers[index])
            let next = identifiers[(index + 1) % identifiers.count]
            let links = (0..<54).map { _ in
                KeyLink(from: forger(identifiers[Int(random.next() % 255)]), to: random.key().identifier, .replaced)
            }
            let back = [KeyLink(from: key, to: next, .joined), KeyLink(from: key, to: own.identifier, .gaveWay)]
            return SealedMarker(of: key, time: 1, links: back + links)
        }
        let away = (0..<10_000).map { _ in
            KeyLink(from: forger(own.identifier), to: identifiers[Int(random.next() % 255)], .gaveWay)
        }
        #expect(markers.allSatisfy { $0.links.count == 56 })
        #expect(choice([Self.marker(own)] + markers, away, key: own) == .using)
        #expect(!SeenMarkers(sealed: [Self.marker(own)] + markers, notes: away).hasSuccessor(of: own))
        #expect(
            Unlocking(RecoveryPhrase(of: own), on: [Self.marker(own)] + markers, notes: away) == .account(own))
    }

    @Test func `any graph of keys gives the account that a slow search finds`() {
        var random = SplitMix(seed: 5)
        for _ in 0..<2000 {
            let count = Int.random(in: 1...6, using: &random)
            let keys = Self.keys.prefix(count)
            let markers = keys.filter { _ in random.next() % 3 > 0 }.map { Self.marker($0) }
            let links = (0..<Int.random(in: 0...9, using: &random)).compactMap { _ -> KeyLink? in
                guard let first = keys.randomElement(using: &random), let second = keys.randomElement(using: &random),
                    first.identifier != second.identifier
                else { return nil }
                let kind: KeyLink.Kind = [.replaced, .joined, .gaveWay][Int(random.next() % 3)]
                return random.next() % 3 == 0 ? Self.forged(first, second, kind) : Self.link(first, second, kind)
            }
            let key = random.next() % 4 == 0 ? nil : keys.randomElement(using: &random)
            let wasEncrypted = random.next() % 2 == 0
            #expect(
                choice(markers, links, key: key, wasEncrypted: wasEncrypted)
                    == ObviousChoice.of(markers, links, key, wasEncrypted: wasEncrypted))
        }
    }

    @Test func `65,536 notes in a chain, and as many from one key, are gone through`() {
        var (chain, star): ([KeyLink], [KeyLink]) = ([], [])
        for n: UInt64 in 0..<65_536 {
            let (from, to) = (KeyIdentifier(high: 0, low: n + 2), KeyIdentifier(high: 0, low: n + 3))
            chain += [KeyLink(noteName: "\(from)\(to)01")].compactMap(\.self)
            star += [KeyLink(noteName: "\(Self.two.identifier)\(to)02")].compactMap(\.self)
        }
        let end = AccountKey.sample(65_538)
        #expect(choice([Self.marker(end)], chain) == .keyNeeded(end.identifier))
        #expect(choice([Self.marker(Self.two)], star, key: Self.one) == .reset)
    }
}

/// The rules as the document states them, without regard to speed.
private enum ObviousChoice {
    static func of(
        _ markers: [SealedMarker], _ notes: [KeyLink], _ key: AccountKey?, wasEncrypted: Bool
    ) -> MarkerChoice {
        let there = Set(markers.map(\.identifier))
        if there.isEmpty { return key == nil && !wasEncrypted ? .plain : .reset }
        let links = notes.filter { link in
            key.map { link.first != $0.identifier || link.isProven(by: $0.blobs) } ?? true
        }
        func reached(from start: KeyIdentifier) -> Set<KeyIdentifier> {
            var (seen, todo): (Set<KeyIdentifier>, [KeyIdentifier]) = ([], [start])
            while let next = todo.popLast() {
                for link in links where link.first == next && seen.insert(link.second).inserted {
                    todo.append(link.second)
                }
            }
            return seen.intersection(there)
        }
        /// Returns the successors of the own key.
        func follow(_ start: KeyIdentifier, besides own: KeyIdentifier?) -> Set<KeyIdentifier> {
            var (seen, todo): (Set<KeyIdentifier>, [KeyIdentifier]) = ([start], [start])
            while let next = todo.popLast() {
                let gaveWay = !there.contains(next) && notes.contains { $0.first == next && $0.kind == .gaveWay }
                for link in notes where link.first == next && link.kind != .gaveWay && !gaveWay && link.second != own {
                    if seen.insert(link.second).inserted { todo.append(link.second) }
                }
            }
            return seen
        }
        let candidates = there.filter { key in
            reached(from: key).subtracting([key]).allSatisfy { reached(from: $0).contains(key) }
        }
        let replaced = Set(links.filter { $0.kind == .replaced }.map(\.first))
        guard let account = candidates.subtracting(replaced).min() ?? candidates.min() else { return .reset }
        let later = links.filter { $0.first == key?.identifier && $0.kind == .replaced }.flatMap { link in
            follow(link.second, besides: key?.identifier).intersection(there)
        }
        if account == key?.identifier, later.isEmpty { return .using }
        if account == key?.identifier { return .keyNeeded(candidates.subtracting([account]).min() ?? account) }
        if let key, !there.contains(key.identifier), reached(from: key.identifier).isEmpty { return .reset }
        return .keyNeeded(account)
    }
}
