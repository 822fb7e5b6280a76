// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Replication

/// The order of a cycle's actions, without anything that carries them out.
struct SyncCycleTests {
    private static let start: UInt64 = 1_700_000_000_000_000
    private let traits = BackendTraits(coalescing: .seconds(1), givesHints: false)
    private var facts: SyncCycle.Facts
    private var cycle: SyncCycle

    init() {
        facts = SyncCycle.Facts(
            now: 0, time: Self.start, traits: traits, isDownloaded: true, isPending: false, lastPush: Self.start,
            lastGarbageCollection: Self.start)
        cycle = SyncCycle(SyncSchedule(traits, now: 0))
    }

    /// Begins a cycle in which something is due.
    private mutating func begin(uploading: Bool = false) {
        if uploading { cycle.schedule?.request(facts.now) }
        let uploads = cycle.begin(facts.now)
        #expect(uploads == uploading)
    }

    private mutating func expect(
        _ expected: SyncCycle.Action, after event: SyncCycle.Event = .done,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let action = cycle.next(after: event, facts)
        #expect(action == expected, sourceLocation: sourceLocation)
    }

    private func pulled(
        _ own: OwnPublication = .asPublished, _ stores: [String] = [], beginsAnew: Bool = false
    ) -> SyncCycle.Event {
        .pulled(own, stores: stores, beginsAnew: beginsAnew)
    }

    /// Runs a pull that finds nothing.
    private mutating func pullNothing() {
        expect(.endPull(joined: []), after: pulled())
        expect(.keep(isRead: true, tooLarge: []), after: .ended(isComplete: true))
    }

    @Test mutating func `a cycle that finds nothing ends after its look`() {
        begin()
        pullNothing()
        #expect(cycle.isRunning && cycle.nextCycle == nil)
        expect(.rest)
        #expect(!cycle.isRunning && cycle.isPullComplete && cycle.problem == nil)
        #expect(cycle.nextCycle ?? 0 > facts.now)
    }

    @Test mutating func `only a cycle that begins after the user said so accepts gaps`() {
        facts.isDownloaded = false
        begin()
        cycle.wantsGaps = true
        expect(.endPull(joined: []), after: pulled(beginsAnew: true))
        expect(.rest, after: .ended(isComplete: false))
        begin()
        expect(.endPull(joined: []), after: pulled(beginsAnew: true))
        expect(.keep(isRead: false, tooLarge: []), after: .ended(isComplete: false))
        #expect(cycle.acceptsGaps)
        begin()
        #expect(!cycle.acceptsGaps)
    }

    @Test mutating func `a cycle that begins at its upload publishes without a pull`() {
        cycle.beginPush(facts.now)
        #expect(cycle.action == .beginPush)
        expect(.synchronize, after: .began(stores: ["a"]))
        expect(.upload("a"))
        expect(.endPush)
        expect(.markPublished)
        expect(.rest)
        #expect(cycle.uploaded)
    }

    @Test mutating func `what is pending is uploaded after everything that is new was joined`() {
        facts.isPending = true
        begin(uploading: true)
        expect(.read("a"), after: pulled(.asPublished, ["a", "b"]))
        expect(.read("b"), after: .joined(.changed))
        expect(.endPull(joined: ["a", "b"]), after: .joined(.unchanged))
        expect(.keep(isRead: true, tooLarge: []), after: .ended(isComplete: true))
        expect(.beginPush)
        expect(.synchronize, after: .began(stores: ["a", "c"]))
        expect(.upload("a"))
        expect(.upload("c"))
        expect(.endPush)
        expect(.markPublished)
        facts.isPending = false
        expect(.rest)
        #expect(cycle.uploaded && !cycle.isInterrupted)
    }

    @Test mutating func `a store that has changed since the disk was synced is uploaded after another sync`() {
        facts.isPending = true
        begin(uploading: true)
        pullNothing()
        expect(.beginPush)
        expect(.synchronize, after: .began(stores: ["a", "b"]))
        expect(.upload("a"))
        expect(.synchronize, after: .unsynced)
        expect(.upload("a"))
        expect(.upload("b"))
        expect(.synchronize, after: .unsynced)
        expect(.rest, after: .interrupted)
    }

    @Test mutating func `what is pending waits until its upload is due`() {
        facts.isPending = true
        begin()
        pullNothing()
        expect(.rest)
        #expect(!cycle.uploaded && cycle.nextCycle ?? 0 > facts.now)
    }

    @Test mutating func `what was never published is published by a clock that stands at the epoch, too`() {
        (facts.time, facts.lastPush, facts.lastGarbageCollection) = (3, 0, 3)
        begin()
        pullNothing()
        expect(.beginPush)
        cycle.cut(facts.now)
        #expect(cycle.nextCycle == facts.now, "what the cycle was to do is due")
        facts.lastPush = 1
        begin()
        pullNothing()
        expect(.rest)
    }

    @Test mutating func `a cycle that only reads comes again with the next poll, whatever is pending`() {
        facts.isPending = true
        cycle.onlyReads = true
        begin(uploading: true)
        pullNothing()
        expect(.rest)
        #expect(cycle.nextCycle ?? 0 > facts.now + 1_000_000)
    }

    @Test mutating func `what waits for its parts, or is too large, is not joined and does not end the cycle`() {
        begin()
        expect(.read("a"), after: pulled(.asPublished, ["a", "b", "c"]))
        expect(.read("b"), after: .joined(.notWhole))
        expect(.read("c"), after: .joined(.tooLarge))
        expect(.endPull(joined: ["c"]), after: .joined(.changed))
        expect(.keep(isRead: false, tooLarge: ["b"]), after: .ended(isComplete: true))
        expect(.rest)
        #expect(!cycle.isPullComplete && cycle.problem?.code == .unavailable)
    }

    @Test mutating func `nothing is kept of a first pull that is not complete, and nothing is uploaded after it`() {
        (facts.isDownloaded, facts.isPending) = (false, true)
        begin(uploading: true)
        expect(.endPull(joined: []), after: pulled(beginsAnew: true))
        expect(.rest, after: .ended(isComplete: false))
        #expect(!cycle.isPullComplete && !cycle.uploaded)
    }

    @Test mutating func `a clone's head has the device leave its origin before anything is joined`() {
        begin(uploading: true)
        expect(.leaveOrigin, after: pulled(.foreign, ["a"]))
        expect(.read("a"))
        expect(.endPull(joined: ["a"]), after: .joined(.changed))
        expect(.keep(isRead: true, tooLarge: []), after: .ended(isComplete: true))
        // The device publishes again under its new origin, though nothing is pending.
        expect(.beginPush)
    }

    @Test(arguments: [OwnPublication.missing, .outdated])
    mutating func `what was published and is not there is published once`(own: OwnPublication) {
        begin(uploading: true)
        expect(.endPull(joined: []), after: pulled(own))
        expect(.keep(isRead: true, tooLarge: []), after: .ended(isComplete: true))
        expect(.beginPush)
        expect(.synchronize, after: .began(stores: []))
        expect(.endPush)
        expect(.markPublished)
        expect(.rest)
        #expect(!cycle.needsRepublication)
    }

    @Test(arguments: [true, false])
    mutating func `a device publishes once a day, by a clock that goes forward or back`(forward: Bool) {
        facts.time = forward ? Self.start + Retention.day : Self.start - Retention.day
        facts.lastGarbageCollection = facts.time
        begin()
        pullNothing()
        expect(.beginPush)
    }

    @Test mutating func `a store that is forgotten during a pull has it read again at once`() {
        begin()
        expect(.read("a"), after: pulled(.asPublished, ["a", "b"]))
        expect(.read("b"), after: .joined(.changed))
        expect(.endPull(joined: ["a"]), after: .interrupted)
        expect(.rest, after: .ended(isComplete: true))
        #expect(cycle.isInterrupted && cycle.nextCycle == 0)
    }

    @Test mutating func `an upload under an origin that the device has left marks nothing`() {
        facts.isPending = true
        begin(uploading: true)
        pullNothing()
        expect(.beginPush)
        expect(.synchronize, after: .began(stores: ["a"]))
        expect(.upload("a"))
        expect(.rest, after: .interrupted)
        #expect(!cycle.uploaded && cycle.isInterrupted && cycle.nextCycle ?? 0 > facts.now)
    }

    @Test mutating func `garbage is collected once a day`() {
        facts.lastGarbageCollection -= Retention.day
        begin()
        pullNothing()
        expect(.collectGarbage)
        facts.lastGarbageCollection = facts.time
        expect(.rest)
    }

    @Test mutating func `parts of devices that were removed from the list are not waited for`() {
        facts.isDownloaded = true
        begin()
        expect(.endPull(joined: []), after: pulled())
        expect(
            .keep(isRead: false, tooLarge: []), after: .ended(isComplete: false, lacksOnlyForgotten: true))
        expect(.rest)
        #expect(!cycle.isPullComplete && !cycle.isAwaitingParts && cycle.problem == nil)
        begin()
        expect(.read("a"), after: pulled(.asPublished, ["a"]))
        expect(.endPull(joined: []), after: .joined(.notWhole))
        expect(
            .keep(isRead: false, tooLarge: []), after: .ended(isComplete: false, lacksOnlyForgotten: true))
        #expect(cycle.isAwaitingParts && cycle.problem?.code == .unavailable)
    }

    @Test mutating func `a cycle that fails is tried again, and uploads what it was to upload`() {
        begin(uploading: true)
        cycle.fail(RemoteError(.unavailable, "It is not there."), facts.now, jitter: 125_000)
        #expect(!cycle.isRunning && cycle.nextCycle == 1_000_000)
        let uploads = cycle.begin(1_000_000)
        #expect(uploads)
    }

    @Test mutating func `the first problem is the one that is told, until the next cycle`() {
        begin()
        cycle.noteProblem(RemoteError(.damaged, "One."))
        cycle.noteProblem(RemoteError(.damaged, "Two."))
        expect(.endPull(joined: []), after: pulled())
        expect(.keep(isRead: false, tooLarge: []), after: .ended(isComplete: false))
        expect(.rest)
        #expect(cycle.problem?.message == "One.")
        begin()
        #expect(cycle.problem == nil)
    }
}
