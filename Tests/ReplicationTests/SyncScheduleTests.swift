// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Replication

/// When passes are due. Times are seconds here, and microseconds there.
struct SyncScheduleTests {
    private static let second: UInt64 = 1_000_000
    private let start: UInt64 = 1000 * second

    private func schedule(tellsOfChanges: Bool = false, coalescing: Int = 1) -> SyncSchedule {
        SyncSchedule(BackendTraits(coalescing: .seconds(coalescing), tellsOfChanges: tellsOfChanges), now: start)
    }

    /// Begins a pass, which is to upload or not.
    private func expectBegin(
        _ schedule: inout SyncSchedule, _ now: UInt64, uploads: Bool,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let begun = schedule.begin(now)
        #expect(begun == uploads, sourceLocation: sourceLocation)
    }

    private func seconds(_ count: Int) -> UInt64 { start + UInt64(count) * Self.second }

    @Test func `a new account is looked at at once, and nothing is uploaded`() {
        var schedule = schedule()
        #expect(schedule.nextCycle == start)
        expectBegin(&schedule, start, uploads: false)
    }

    @Test func `another pace brings forward what is due, and puts nothing off`() {
        var schedule = schedule(coalescing: 1000)
        _ = schedule.begin(start)
        schedule.passed(start, received: false, uploaded: false, isPending: false)
        schedule.noteChange(seconds(1))
        #expect(schedule.nextCycle == seconds(300))
        var pace = SyncPace()
        pace.coalescing = .seconds(10)
        schedule.follow(pace, seconds(2))
        #expect(schedule.nextCycle == seconds(12))
        pace.coalescing = .seconds(100)
        schedule.follow(pace, seconds(3))
        #expect(schedule.nextCycle == seconds(12))
        expectBegin(&schedule, seconds(12), uploads: true)
        schedule.passed(seconds(12), received: false, uploaded: true, isPending: false)
        #expect(schedule.nextCycle == seconds(312))
        pace.longestPoll = .seconds(60)
        schedule.follow(pace, seconds(13))
        #expect(schedule.nextCycle == seconds(73))
    }

    @Test func `the first change waits for others, and those that follow do not put it off`() {
        var schedule = schedule()
        _ = schedule.begin(start)
        schedule.passed(start, received: false, uploaded: false, isPending: false)
        schedule.noteChange(seconds(1))
        schedule.noteChange(start + 1_900_000)
        #expect(schedule.nextCycle == seconds(2))
        expectBegin(&schedule, seconds(2), uploads: true)
    }

    @Test func `a pass that only looks does not put an upload off`() {
        var schedule = schedule()
        _ = schedule.begin(start)
        schedule.noteChange(start)
        for tenth in 1...9 {
            schedule.noteHint(start + UInt64(tenth) * 100_000)
            expectBegin(&schedule, start + UInt64(tenth) * 100_000, uploads: false)
            schedule.passed(
                start + UInt64(tenth) * 100_000, received: true, uploaded: false, isPending: true)
        }
        #expect(schedule.nextCycle == seconds(1))
        expectBegin(&schedule, seconds(1), uploads: true)
    }

    @Test func `what happens during a pass is for the next one`() {
        var schedule = schedule(tellsOfChanges: true)
        _ = schedule.begin(start)
        schedule.noteHint(start + 10)
        schedule.passed(start + 20, received: false, uploaded: false, isPending: false)
        #expect(schedule.nextCycle == start + 10)
    }

    @Test func `fifteen uploads go at once, and then one every four seconds`() {
        var schedule = schedule()
        var now = start
        for _ in 1...15 {
            schedule.noteChange(now)
            schedule.hasten(now)
            expectBegin(&schedule, now, uploads: true)
            schedule.passed(now, received: false, uploaded: true, isPending: false)
        }
        schedule.noteChange(now)
        schedule.hasten(now)
        now += 4 * Self.second
        expectBegin(&schedule, now - 1, uploads: false)
        schedule.passed(now - 1, received: false, uploaded: false, isPending: true)
        expectBegin(&schedule, now, uploads: true)
    }

    @Test func `a remote that tells of nothing is looked at less and less, and often again after a change`() {
        var schedule = schedule()
        schedule.hasSubscribers = true
        var now = start
        var waits: [UInt64] = []
        for _ in 1...14 {
            _ = schedule.begin(now)
            schedule.passed(now, received: false, uploaded: false, isPending: false)
            let next = schedule.nextCycle ?? 0
            waits.append((next - now) / Self.second)
            now = next
        }
        #expect(waits.first == 7 && waits.last == 300 && waits == waits.sorted())
        _ = schedule.begin(now)
        schedule.passed(now, received: true, uploaded: false, isPending: false)
        #expect(schedule.nextCycle == now + 5 * Self.second)
    }

    @Test func `whoever begins to listen has the remote looked at, but not twice within five seconds`() {
        for (moment, look) in [(2, 5), (100, 100)] {
            var schedule = schedule()
            _ = schedule.begin(start)
            schedule.passed(start, received: false, uploaded: false, isPending: false)
            #expect(schedule.nextCycle == seconds(300))
            schedule.noteSubscribers(true, seconds(moment))
            #expect(schedule.nextCycle == seconds(look))
        }
        var failing = schedule()
        _ = failing.begin(start)
        failing.failed(start, retryAfter: 60, jitter: 0)
        failing.noteSubscribers(true, seconds(1))
        #expect(failing.nextCycle == seconds(60))
    }

    @Test func `nobody subscribed means five minutes, and a remote that tells means a quarter of an hour`() {
        for (tells, wait) in [(false, 300), (true, 900)] {
            var schedule = schedule(tellsOfChanges: tells)
            _ = schedule.begin(start)
            schedule.passed(start, received: true, uploaded: false, isPending: false)
            #expect(schedule.nextCycle == seconds(wait))
        }
    }

    @Test func `failures back off from a second to a quarter of an hour, around which they spread`() {
        var schedule = schedule()
        var now = start
        for failure in 0..<14 {
            _ = schedule.begin(now)
            schedule.failed(now, retryAfter: nil, jitter: UInt64(failure) * 7919)
            let wait = (schedule.nextCycle ?? 0) - now
            let middle = min(Self.second << UInt64(min(failure, 10)), 900 * Self.second)
            #expect(wait >= middle * 7 / 8 && wait <= middle * 9 / 8)
            now += wait
        }
    }

    @Test func `a failed upload is made up for with the next attempt, and Retry-After is honoured`() {
        var schedule = schedule()
        schedule.noteChange(start)
        expectBegin(&schedule, seconds(1), uploads: true)
        schedule.failed(seconds(1), retryAfter: 120, jitter: 0)
        #expect(schedule.nextAttempt == seconds(121))
        schedule.noteHint(seconds(2))
        #expect(schedule.nextCycle == seconds(121))
        expectBegin(&schedule, seconds(121), uploads: true)
    }

    @Test
    func `a network that comes makes up for what failed at once, but not all the time, nor before the remote wants`() {
        var schedule = schedule()
        _ = schedule.begin(start)
        schedule.noteNetwork(start)
        #expect(schedule.nextCycle == nil && schedule.nextAttempt == nil)
        for _ in 0..<9 { schedule.failed(start, retryAfter: nil, jitter: 0) }
        schedule.noteNetwork(seconds(1))
        #expect(schedule.nextCycle == seconds(5))
        schedule.noteNetwork(seconds(9))
        #expect(schedule.nextCycle == seconds(5))
        for _ in 0..<9 { schedule.failed(seconds(5), retryAfter: nil, jitter: 0) }
        schedule.noteNetwork(seconds(100))
        #expect(schedule.nextCycle == seconds(100))
        // Names may not be known yet.
        schedule.failed(seconds(100), retryAfter: nil, jitter: 0)
        #expect(schedule.nextCycle.map { $0 < seconds(105) } == true)
        schedule.failed(seconds(105), retryAfter: 600, jitter: 0)
        schedule.noteNetwork(seconds(106))
        #expect(schedule.nextCycle == seconds(705))
    }

    @Test func `somebody who asks does not wait for what failed before`() {
        var schedule = schedule()
        _ = schedule.begin(start)
        schedule.failed(start, retryAfter: 600, jitter: 0)
        schedule.request(seconds(1))
        #expect(schedule.nextCycle == seconds(1))
        expectBegin(&schedule, seconds(1), uploads: true)
        schedule.passed(seconds(1), received: false, uploaded: true, isPending: false)
        #expect(schedule.nextAttempt == nil)
    }
}
