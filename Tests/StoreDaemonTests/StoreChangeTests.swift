// SPDX-License-Identifier: Apache-2.0

import PropertyList
import SyncEngine
import Testing

@testable import StoreDaemon

/// The changes kept for a subscriber that does not read.
struct StoreChangeTests {
    private func change(
        _ reason: StoreNotice.Reason, _ generation: UInt64, _ keys: String..., info: [String: Value] = [:]
    ) -> StoreChange {
        StoreChange(
            reason: reason, keys: Set(keys.map { Key(unchecked: $0) }), generation: generation, info: info)
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
        for number in 0..<30_000 as Range<UInt64> { changes.merge(change(.localChange, number, "\(number)")) }
        #expect(changes.count == 1 && changes[0].generation == 29_999)
        #expect(changes[0].keys.count <= StoreChange.mostKeys)
        #expect(changes[0].keys.contains(Key(unchecked: "29999")))
    }
}
