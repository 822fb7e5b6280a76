// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Replication

/// When cycles are due. The tests count in seconds, the schedule in microseconds.
struct SyncScheduleTests {
    private static let second: UInt64 = 1_000_000
    private let start: UInt64 = 1000 * second

    private func schedule(givesHints: Bool = false, coalescing: Int = 1) -> SyncSchedule {
        let coalescing = Duration.seconds(coalescing)
        return SyncSchedule(
            BackendTraits(coalescing: coalescing, firstWait: coalescing, givesHints: givesHints), now: start)
    }

    /// Makes a schedule whose remote was polled at the start.
    private func rested(givesHints: Bool = false, _ pace: SyncPace = SyncPace()) -> SyncSchedule {
        var schedule = SyncSchedule(
            BackendTraits(coalescing: .seconds(1), givesHints: givesHints), pace: pace, now: start)
        _ = schedule.begin(start)
        schedule.passed(start, received: false, uploaded: false, isPending: false)
        return schedule
    }

    private func circumstances(
        _ presence: SyncCircumstances.Presence = .unknown, isMetered: Bool = false, savesPower: Bool = false
    ) -> SyncCircumstances {
        var circumstances = SyncCircumstances()
        (circumstances.presence, circumstances.isMetered) = (presence, isMetered)
        circumstances.savesPower = savesPower
        return circumstances
    }

    @Test func `the first change after a quiet time goes at once, and what follows waits for more`() {
        var schedule = rested()
        schedule.noteChange(seconds(1))
        #expect(schedule.nextCycle == seconds(1) + 50_000)
        expectBegin(&schedule, seconds(1) + 50_000, uploads: true)
        schedule.passed(seconds(2), received: false, uploaded: true, isPending: false)
        schedule.noteChange(seconds(11))
        #expect(schedule.nextCycle == seconds(12))
        expectBegin(&schedule, seconds(12), uploads: true)
        schedule.passed(seconds(12), received: false, uploaded: true, isPending: false)
        schedule.noteChange(seconds(22))
        #expect(schedule.nextCycle == seconds(22) + 50_000)
    }

    @Test func `cycles without news for an absent user who is not polled for go on for ever`() {
        var pace = SyncPace()
        pace.absentPoll = .zero
        var schedule = rested(pace)
        schedule.follow(circumstances(.absent), seconds(1))
        for cycle in 1...200 {
            schedule.request(seconds(cycle))
            expectBegin(&schedule, seconds(cycle), uploads: true)
            schedule.passed(seconds(cycle), received: false, uploaded: false, isPending: false)
        }
        #expect(schedule.nextCycle == nil)
        schedule.follow(circumstances(.present), seconds(300))
        #expect(schedule.nextCycle == seconds(300))
    }

    @Test func `what an administrator has changes wait holds for the first one, too`() {
        var pace = SyncPace()
        pace.coalescing = .seconds(20)
        var schedule = rested(pace)
        schedule.noteChange(seconds(1))
        #expect(schedule.nextCycle == seconds(21))
    }

    @Test func `a quiet time between changes does not lift the limit on uploads`() {
        var schedule = rested()
        var now = start
        // One upload every 11 s stays below the limit of one every 4 s, so none has to wait, however many there are.
        for _ in 1...40 {
            now += 11 * Self.second
            schedule.noteChange(now)
            #expect(schedule.nextCycle == now + 50_000)
            expectBegin(&schedule, now + 50_000, uploads: true)
            schedule.passed(now + 50_000, received: false, uploaded: true, isPending: false)
        }
    }

    @Test(
        arguments: [(.unknown, 300), (.present, 30), (.away, 300), (.absent, 900)]
            as [(SyncCircumstances.Presence, Int)])
    func `how often a remote is looked at depends on where the person is`(
        presence: SyncCircumstances.Presence, wait: Int
    ) {
        var schedule = rested()
        schedule.follow(circumstances(presence), seconds(1))
        #expect(schedule.nextCycle == seconds(wait))
        _ = schedule.begin(seconds(wait))
        schedule.passed(seconds(wait), received: false, uploaded: false, isPending: false)
        #expect(schedule.nextCycle == seconds(2 * wait))
        // With subscribers it is polled more often, and then less and less while nothing arrives.
        schedule.hasSubscribers = true
        var now = seconds(2 * wait)
        for _ in 1...20 {
            _ = schedule.begin(now)
            schedule.passed(now, received: false, uploaded: false, isPending: false)
            let next = schedule.nextCycle ?? 0
            #expect(next >= now + 5 * Self.second && next <= now + UInt64(wait) * Self.second)
            now = next
        }
        _ = schedule.begin(now)
        schedule.passed(now, received: false, uploaded: false, isPending: false)
        #expect(schedule.nextCycle == now + UInt64(wait) * Self.second)
    }

    @Test(arguments: [SyncCircumstances.Presence.away, .absent])
    func `who comes back finds what is new, but not twice within five seconds`(from: SyncCircumstances.Presence) {
        for (moment, look) in [(2, 5), (100, 100)] {
            var schedule = rested()
            schedule.follow(circumstances(from), start)
            schedule.follow(circumstances(.present), seconds(moment))
            #expect(schedule.nextCycle == seconds(look))
        }
        // The presence was unknown before. The remote was polled at the start, so the next poll is 30 s later.
        var schedule = rested()
        schedule.follow(circumstances(.present), seconds(20))
        #expect(schedule.nextCycle == seconds(30))
    }

    @Test func `where an administrator has it, nothing is looked at for people who aren't logged in`() {
        var pace = SyncPace()
        pace.absentPoll = .zero
        for tells in [false, true] {
            var schedule = rested(givesHints: tells, pace)
            schedule.follow(circumstances(.absent), seconds(1))
            #expect(schedule.nextCycle == nil)
            schedule.noteWaking(seconds(2))
            #expect(schedule.nextCycle == nil)
            schedule.noteChange(seconds(3))
            expectBegin(&schedule, seconds(4), uploads: true)
            schedule.passed(seconds(4), received: false, uploaded: true, isPending: false)
            #expect(schedule.nextCycle == nil)
            schedule.follow(circumstances(.present), seconds(100))
            #expect(schedule.nextCycle == seconds(100))
        }
    }

    @Test func `a machine that wakes up is looked around from at once, and what failed is tried`() {
        for tells in [false, true] {
            var schedule = rested(givesHints: tells)
            schedule.noteWaking(seconds(1))
            #expect(schedule.nextCycle == seconds(1))
        }
        var schedule = rested()
        _ = schedule.begin(seconds(300))
        for _ in 1...9 { schedule.failed(seconds(300), retryAfter: nil, jitter: 0) }
        schedule.noteWaking(seconds(310))
        #expect(schedule.nextCycle == seconds(310))
        schedule.failed(seconds(310), retryAfter: 3600, jitter: 0)
        schedule.noteWaking(seconds(320))
        #expect(schedule.nextCycle == seconds(3910))
    }

    @Test(arguments: [true, false])
    func `on a metered network and while power is saved there are fewer looks and uploads`(isMetered: Bool) {
        let sparing = circumstances(.present, isMetered: isMetered, savesPower: !isMetered)
        var schedule = rested()
        schedule.follow(circumstances(.present), start)
        schedule.follow(sparing, seconds(1))
        #expect(schedule.nextCycle == seconds(900))
        schedule.noteHint(seconds(2))
        #expect(schedule.nextCycle == seconds(900))
        // The last upload was long ago, so this one doesn't wait.
        schedule.noteChange(seconds(3))
        expectBegin(&schedule, seconds(3) + 50_000, uploads: true)
        schedule.passed(seconds(4), received: false, uploaded: true, isPending: false)
        schedule.noteChange(seconds(20))
        schedule.hasten(seconds(21))
        #expect(schedule.nextCycle == seconds(904))
        schedule.request(seconds(30))
        #expect(schedule.nextCycle == seconds(30))
        expectBegin(&schedule, seconds(30), uploads: true)
        schedule.passed(seconds(30), received: false, uploaded: true, isPending: false)
        schedule.noteChange(seconds(50))
        #expect(schedule.nextCycle == seconds(930))
        schedule.follow(circumstances(.present), seconds(60))
        #expect(schedule.nextCycle == seconds(60))
        var pace = SyncPace()
        pace.sparingPace = .zero
        var other = rested(pace)
        other.follow(sparing, seconds(1))
        #expect(other.nextCycle == seconds(30))
    }

    /// Begins a cycle, and expects whether it is to upload.
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

    @Test func `a cycle that only polls does not put an upload off`() {
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

    @Test func `what happens during a cycle is for the next one`() {
        var schedule = schedule(givesHints: true)
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
            var schedule = schedule(givesHints: tells)
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
        // DNS may not work yet.
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

    @Test func `who asks often is answered every two seconds, and no upload or retry waits for that`() {
        var schedule = rested()
        for _ in 1...20 {
            schedule.requestAtPace(seconds(1))
            expectBegin(&schedule, seconds(1), uploads: true)
            schedule.passed(seconds(1), received: false, uploaded: false, isPending: false)
        }
        schedule.requestAtPace(seconds(2))
        #expect(schedule.nextCycle == seconds(3))
        expectBegin(&schedule, seconds(3), uploads: true)
        // A failure delays no request.
        schedule.requestAtPace(seconds(3))
        schedule.failed(seconds(4), retryAfter: 600, jitter: 0)
        #expect(schedule.nextCycle == seconds(5) && schedule.nextAttempt == seconds(5))
        expectBegin(&schedule, seconds(5), uploads: true)
        schedule.passed(seconds(5), received: false, uploaded: false, isPending: false)
        // A cycle that comes earlier, for another reason, does what was requested.
        schedule.requestAtPace(seconds(6))
        schedule.noteHint(seconds(6))
        expectBegin(&schedule, seconds(6), uploads: true)
        #expect(!schedule.isRequested)
        schedule.passed(seconds(6), received: false, uploaded: false, isPending: false)
        schedule.requestAtPace(seconds(6))
        schedule.noteChange(seconds(6))
        #expect(schedule.nextCycle == seconds(6) + 50_000)
    }
}
