// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Testing
import UbiquitousStoreTesting

@testable import UbiquitousStore

/// What a slow loop over a store's changes receives.
struct ChangeInboxTests {
    private static let (server, initialSync, quota, account, local): (UInt32, UInt32, UInt32, UInt32, UInt32) =
        (0, 1, 2, 3, 16)

    private func backlog(_ announcements: Announcement...) -> [Announcement] {
        var backlog = ChangeBacklog()
        for announcement in announcements { backlog.append(announcement) }
        return backlog.waiting
    }

    private func change(_ reason: UInt32, _ old: Value?, _ new: Value?, key: Text = "a", by device: String? = nil)
        -> Announcement
    {
        Announcement(reason: reason, changes: [KeyChange(key: key, old: old, new: new)], originDevice: device)
    }

    @Test func `changes that wait become one, from the first old value to the last new one`() {
        let waiting = backlog(
            change(Self.local, 1, 2), change(Self.server, 2, 3, by: "desk"),
            change(Self.server, nil, 1, key: "b", by: "desk"))
        #expect(waiting.map(\.reason) == [Self.server] && waiting.map(\.originDevice) == [nil])
        #expect(waiting[0].changes == [KeyChange(key: "a", old: 1, new: 3), KeyChange(key: "b", old: nil, new: 1)])
        #expect(backlog(change(0, 1, 2, by: "desk"), change(0, 2, 3, by: "desk")).map(\.originDevice) == ["desk"])
    }

    @Test func `a value that is what it was is no change`() {
        #expect(backlog(change(Self.local, 1, 2), change(Self.local, 2, 1)).isEmpty)
        #expect(backlog(change(Self.account, 1, 2), change(Self.account, 2, 1)).count == 1)
    }

    @Test func `other reasons keep their place among the changes`() {
        let waiting = backlog(change(Self.local, 1, 2), change(Self.account, 2, nil), change(Self.server, nil, 3))
        #expect(waiting.map(\.reason) == [Self.local, Self.account, Self.server])
    }

    @Test func `however many wait, they are few, and lead from the first value to the last`() {
        var backlog = ChangeBacklog()
        for number in 0..<1000 as Range<Int64> {
            let reason = [Self.server, Self.quota, Self.local, Self.initialSync][Int(number % 4)]
            backlog.append(change(reason, .integer(number), .integer(number + 1)))
        }
        #expect(backlog.waiting.count == ChangeBacklog.maximumCount)
        var value: Value = 0
        while let next = backlog.takeFirst() {
            #expect(next.changes.first?.old == value)
            value = next.changes.first?.new ?? 0
        }
        #expect(value == 1000)
    }

    @Test func `the weightiest reason and the last error stay`() {
        var backlog = ChangeBacklog()
        backlog.append(change(Self.account, 0, 1))
        for number in 1..<100 as Range<Int64> {
            var next = change(number % 2 == 0 ? Self.quota : Self.local, .integer(number), .integer(number + 1))
            if next.reason == Self.quota { next.error = UbiquitousStoreError(.quotaExceeded, "\(number)") }
            backlog.append(next)
        }
        #expect(backlog.waiting.first?.reason == Self.account)
        #expect(backlog.waiting.last { $0.reason == Self.quota }?.error?.message == "98")
    }

    @Test func `a loop that begins late has what changed since it was asked for, and ends with its task`() async throws
    {
        try await Desk.with { desk in
            let store = try await desk.open()
            let changes = store.changes
            let other = try await desk.otherProcess()
            for number in 1...20 as ClosedRange<Int64> { try await other.set("a", .integer(number)) }
            let key = UbiquitousStore.Key<Int>("a")
            let task = Task {
                var value: Int?
                for await change in changes {
                    #expect(try change.oldValue(for: key) == value)
                    value = try change.newValue(for: key)
                    if value == 20 { withUnsafeCurrentTask { $0?.cancel() } }
                }
                return value
            }
            #expect(try await task.value == 20)
        }
    }
}
