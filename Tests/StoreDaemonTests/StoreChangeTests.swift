// SPDX-License-Identifier: Apache-2.0

import PropertyList
import SDBus
import SyncEngine
import Testing

@testable import StoreDaemon

/// The changes kept for a subscriber that does not read.
@BusActor
struct StoreChangeTests {
    private let pool = SharePool()
    private let share: UserShare

    init() { share = UserShare(UserBounds(), of: pool) }

    private func change(
        _ reason: StoreNotice.Reason, _ generation: UInt64, _ keys: String..., info: [String: Value] = [:]
    ) -> StoreChange {
        StoreChange(
            reason: reason, keys: ChangedKeys(Set(keys.map { Key(unchecked: $0) })),
            generation: generation, info: info)
    }

    private func merged(_ changes: [StoreChange]) -> [StoreChange] {
        var merged: [StoreChange] = []
        for change in changes { merged.merge(change) }
        return merged
    }

    @Test func `one change is left for each reason, with the keys of all, and generations don't go back`() {
        let changes = merged([
            change(.localChange, 5, "a"), change(.serverChange, 6, "b"), change(.localChange, 7, "c"),
            change(.quotaViolationChange, 7, "d"), change(.serverChange, 8, "a", "e"),
        ])
        #expect(
            changes == [
                change(.localChange, 7, "a", "c"), change(.quotaViolationChange, 7, "d"),
                change(.serverChange, 8, "a", "b", "e"),
            ])
    }

    @Test func `of what is known about the changes that stays in which they agree`() {
        let changes = merged([
            change(.quotaViolationChange, 1, "a", info: ["limit": .string("keys"), "needed": .integer(5)]),
            change(.quotaViolationChange, 1, "b", info: ["limit": .string("keys"), "needed": .integer(6)]),
        ])
        #expect(changes == [change(.quotaViolationChange, 1, "a", "b", info: ["limit": .string("keys")])])
    }

    @Test func `keys that come and go for ever are not all kept, and the last ones are`() {
        var changes: [StoreChange] = []
        for number in 0..<300 as Range<UInt64> {
            let keys = ChangedKeys(Set((0..<100).map { Key(unchecked: "\(number) \($0)") }))
            changes.merge(StoreChange(reason: .localChange, keys: keys, generation: number, info: [:]))
        }
        #expect(changes.count == 1 && changes[0].generation == 299)
        #expect(changes[0].keys.keys.count <= StoreChange.mostKeys)
        #expect(changes[0].keys.keys.contains(Key(unchecked: "299 99")))
    }

    @Test func `a hundred subscribers that don't read share what they are to be told`() {
        var waiting = Array(repeating: [StoreChange](), count: 100)
        for number in 0..<10 as Range<UInt64> {
            let keys = ChangedKeys(Set((0..<4000).map { Key(unchecked: "\(number % 2) \($0)") }))
            let change = StoreChange(reason: .localChange, keys: keys, generation: number, info: [:])
            for subscriber in waiting.indices {
                waiting[subscriber].merge(change)
                waiting[subscriber][0].keys = waiting[subscriber][0].keys.kept(for: share)
            }
        }
        #expect(waiting.allSatisfy { $0.count == 1 && $0[0].keys === waiting[0][0].keys })
        #expect(waiting[0][0].keys.keys.count == 8000 && pool.changes < 2 << 20)
    }

    @Test func `subscribers that wait with different keys share what they have in common with their like`() {
        let formers = (0..<4).map { number in ChangedKeys(Set((0..<4000).map { Key(unchecked: "\(number) \($0)") })) }
        var waiting = (0..<100).map { number in
            [StoreChange(reason: .localChange, keys: formers[number % 4], generation: 1, info: [:])]
        }
        let later = change(.localChange, 2, "key")
        for subscriber in waiting.indices { waiting[subscriber].merge(later) }
        #expect(Set(waiting.map { ObjectIdentifier($0[0].keys) }).count == 4)
        #expect(waiting.allSatisfy { $0[0].keys.keys.count == 4001 })
    }

    @Test func `what waits for subscribers is bounded, and all of it is let go`() async {
        var kept: [ChangedKeys] = []
        for number in 0..<200 {
            let keys = ChangedKeys(Set((0..<4000).map { Key(unchecked: "\(number) \($0)") }))
            kept.append((kept.last?.merged(with: keys) ?? keys).kept(for: share))
            // Other tests run on this thread, too.
            await Task.yield()
        }
        #expect(pool.changes <= 8 << 20 && kept.contains { $0.keys.isEmpty })
        #expect(UserShare(UserBounds(), of: pool).mayKeepChanges(1 << 20))
        kept = []
        #expect(pool.changes == 0)
    }
}
