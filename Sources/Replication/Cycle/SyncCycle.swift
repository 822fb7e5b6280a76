// SPDX-License-Identifier: Apache-2.0

// What a sync cycle does, and in which order. This is the only place that decides it: the service, each form of the
// simulation and the conformance suite's device carry out its actions, and say what came of each.
//
//   pull → read and join each store that has news → end the pull → keep its cursor
//        → begin a push → sync the disk → upload each store → end the push → mark exactly that as published
//        → collect garbage → rest
//
// The second line is for a device that has something to publish and may, the third for once a day. A cycle may be cut
// between any two actions; the next one leads to the same result.
//
// A value: it has no I/O, no clock, no tasks, and no storage.

/// The sync cycles of an account with one remote.
package struct SyncCycle: Sendable {
    /// What to do next.
    package enum Action: Equatable, Sendable {
        /// Look what is new in the remote.
        case pull
        /// Go on under another origin, since another device writes under this one.
        case leaveOrigin
        /// Read a store's news, and join them.
        case read(String)
        /// End the pull, of which these stores are joined and committed.
        case endPull(joined: Set<String>)
        /// Keep the cursor at which the pull ended.
        /// - Parameters:
        ///   - isRead: everything that was there was read.
        ///   - tooLarge: the stores that were read and not joined.
        case keep(isRead: Bool, tooLarge: Set<String>)
        /// Count a publication, and begin it.
        case beginPush
        /// Sync the disk. A dot that was published must never be used again.
        case synchronize
        /// Upload the state of a store.
        case upload(String)
        /// Make what was uploaded visible to others.
        case endPush
        /// Mark what was uploaded as published.
        case markPublished
        /// Have the remote collect garbage.
        case collectGarbage
        /// Wait until the next cycle is due.
        case rest
    }

    /// What came of an action.
    package enum Event: Sendable {
        /// It was done.
        case done
        /// The remote has news of these stores.
        /// - Parameter beginsAnew: the pull reads everything, and counts only if it is complete.
        case pulled(OwnPublication, stores: [String], beginsAnew: Bool)
        /// Nothing can be new since the last pull, which was complete.
        case unchanged
        /// The news of a store were read.
        case joined(Joining)
        /// The pull has ended.
        case ended(isComplete: Bool)
        /// The remote needs the states of these stores.
        case began(stores: [String])
        /// What was under way is worth nothing any more: a store was forgotten, or the origin is another one.
        case interrupted
    }

    /// What became of a store's news.
    package enum Joining: Sendable {
        /// The store is another one now.
        case changed
        /// There was nothing new in them.
        case unchanged
        /// They wait until all of them have arrived.
        case notWhole
        /// They would make the store larger than a store may be. Waiting does not help: the rest of the account goes
        /// on without the store, which is offered again with every pull.
        case tooLarge
    }

    /// What the decisions depend on.
    package struct Facts {
        /// By a clock that never jumps, in microseconds.
        package var now: UInt64
        /// By the device's clock, in microseconds since 1970.
        package var time: UInt64
        /// What the remote costs.
        package var traits: BackendTraits
        /// The first download of the account is complete.
        package var isDownloaded: Bool
        /// There is something that the remote does not have and may have.
        package var isPending: Bool
        /// When the last upload ended, by the device's clock; 0: there was none.
        package var lastPush: UInt64
        /// When garbage was collected last, by the device's clock; 0: never.
        package var lastGarbageCollection: UInt64

        /// Facts of their parts.
        package init(
            now: UInt64, time: UInt64, traits: BackendTraits, isDownloaded: Bool, isPending: Bool, lastPush: UInt64,
            lastGarbageCollection: UInt64
        ) {
            (self.now, self.time, self.traits) = (now, time, traits)
            (self.isDownloaded, self.isPending) = (isDownloaded, isPending)
            (self.lastPush, self.lastGarbageCollection) = (lastPush, lastGarbageCollection)
        }
    }

    /// When cycles are due; `nil` without a remote.
    package var schedule: SyncSchedule?
    /// A cycle is under way.
    package private(set) var isRunning = false
    /// What this device published is not in the remote any more, or what it wrote goes under another name.
    package private(set) var needsRepublication = true
    /// The remote is read, and nothing is written there.
    package var onlyReads = false
    /// A device was forgotten: what it left in the remote may go.
    package var collectsGarbage = false
    /// Something that is wrong while the rest went well.
    package private(set) var problem: RemoteError?
    /// Something was there that can't be read, and the rest is joined.
    package private(set) var hasUnread = false
    /// The last pull read everything that was there.
    package private(set) var isPullComplete = false
    /// The last pull found what this device had published last.
    package private(set) var foundPublication = false
    /// The cycle could not do all that it was to do: the next one does it.
    package private(set) var isInterrupted = false

    /// What is to be done, or being done.
    package private(set) var action = Action.rest
    private var uploads = false
    /// The cycle has uploaded.
    package private(set) var uploaded = false
    private var received = false
    private var beginsAnew = false
    /// The stores that are still to be read, or to be uploaded.
    private var stores: ArraySlice<String> = []
    private var joined: Set<String> = []
    private var isWaiting = false
    private var tooLarge: Set<String> = []

    /// Those of an account without a remote.
    package init() {}

    /// Those of an account with a remote.
    package init(_ schedule: SyncSchedule) { self.schedule = schedule }

    /// When the next cycle is due, on the clock that never jumps; `nil`: not before something happens.
    package var nextCycle: UInt64? { isRunning ? nil : schedule?.nextCycle }

    // MARK: A cycle

    /// Begins a cycle.
    /// - Parameter now: by the clock that never jumps.
    /// - Returns: whether it is to upload what is pending.
    package mutating func begin(_ now: UInt64) -> Bool {
        uploads = schedule?.begin(now) ?? false
        (isRunning, isInterrupted, isPullComplete, problem, hasUnread) = (true, false, false, nil, false)
        (uploaded, received, isWaiting, foundPublication) = (false, false, false, false)
        (stores, joined, tooLarge) = ([], [], [])
        action = .pull
        return uploads
    }

    /// Begins a cycle at its upload: for a device that is told what to do, in the conformance suite.
    /// - Parameter now: by the clock that never jumps.
    package mutating func beginPush(_ now: UInt64) {
        _ = begin(now)
        action = .beginPush
    }

    /// The action after one.
    package mutating func next(after event: Event, _ facts: @autoclosure () -> Facts) -> Action {
        action = following(event, facts)
        return action
    }

    /// Ends a cycle that can't go on.
    /// - Parameter jitter: any number; it spreads the attempts of many devices.
    package mutating func fail(_ error: RemoteError, _ now: UInt64, jitter: UInt64) {
        cut()
        schedule?.failed(now, retryAfter: error.leastRest, jitter: jitter)
    }

    /// Ends a cycle that is not to go on.
    package mutating func cut() { (isRunning, action) = (false, .rest) }

    private mutating func following(_ event: Event, _ facts: () -> Facts) -> Action {
        switch (action, event) {
        case (.pull, .pulled(let own, let stores, let beginsAnew)):
            (self.stores, self.beginsAnew) = (stores[...], beginsAnew)
            return note(own)
        case (.pull, .unchanged):
            isPullComplete = true
            return publish(facts())
        case (.leaveOrigin, _): return read()
        case (.read(let store), .joined(let joining)):
            note(joining, of: store)
            return read()
        case (.read, _):
            (stores, isInterrupted) = ([], true)
            return .endPull(joined: joined)
        case (.endPull, .ended(let isComplete)) where !isInterrupted:
            return keep(isRead: isComplete && !isWaiting) ?? publish(facts())
        case (.endPull, _):
            // Of a store that was taken into use meanwhile something may have been skipped.
            isInterrupted = true
            let facts = facts()
            schedule?.noteHint(facts.now)
            return publish(facts)
        case (.keep, _): return publish(facts())
        case (.beginPush, .began(let stores)):
            self.stores = stores[...]
            return Rule.syncFirst.isOn ? .synchronize : upload()
        case (.synchronize, .done), (.upload, .done): return upload()
        case (.endPush, .done): return .markPublished
        case (.markPublished, _):
            (uploaded, needsRepublication) = (true, false)
            return collect(facts())
        case (.beginPush, _), (.synchronize, _), (.upload, _), (.endPush, _):
            isInterrupted = true
            return collect(facts())
        case (.pull, _), (.collectGarbage, _), (.rest, _): return rest(facts())
        }
    }

    // MARK: Download

    private mutating func note(_ own: OwnPublication) -> Action {
        foundPublication = own == .asPublished
        needsRepublication = !foundPublication
        if Rule.leaveClones.isOn, case .foreign = own { return .leaveOrigin }
        return read()
    }

    private mutating func read() -> Action { stores.popFirst().map { .read($0) } ?? .endPull(joined: joined) }

    private mutating func note(_ joining: Joining, of store: String) {
        switch joining {
        case .changed:
            received = true
            joined.insert(store)
        case .unchanged: joined.insert(store)
        case .notWhole: isWaiting = true
        case .tooLarge: tooLarge.insert(store)
        }
    }

    private mutating func keep(isRead: Bool) -> Action? {
        isPullComplete = isRead
        if !isRead {
            noteProblem(RemoteError(.unavailable, "Parts of the account have not arrived in the remote yet."))
        }
        return isRead || !beginsAnew ? .keep(isRead: isRead, tooLarge: tooLarge) : nil
    }

    /// Something is wrong. The first one is kept.
    package mutating func noteProblem(_ problem: RemoteError) { self.problem = self.problem ?? problem }

    /// Something can't be read.
    package mutating func noteUnread(_ problem: RemoteError) {
        noteProblem(problem)
        hasUnread = true
    }

    /// The last pull joined all that can be read.
    package var hasJoinedAll: Bool { isPullComplete && tooLarge.isEmpty }

    /// What this device wrote goes under another name.
    package mutating func noteLeftOrigin() { needsRepublication = true }

    // MARK: Upload

    private mutating func publish(_ facts: Facts) -> Action {
        if onlyReads { return rest(facts) }
        let isDue = uploads || Self.isPublicationDue(facts)
        return isDue && facts.isDownloaded && wantsPublication(facts) ? .beginPush : collect(facts)
    }

    private mutating func upload() -> Action { stores.popFirst().map { .upload($0) } ?? .endPush }

    /// Whether there is something to publish.
    package func wantsPublication(_ facts: Facts) -> Bool {
        facts.isPending || needsRepublication || Self.isPublicationDue(facts)
    }

    /// A day has passed since the last upload, or there was none: what this device has received since would be lost
    /// with the others, and they would not know that it is still there.
    private static func isPublicationDue(_ facts: Facts) -> Bool {
        Rule.dailyHead.isOn && facts.isDownloaded
            && (facts.lastPush == 0 || isDayAway(facts.time, from: facts.lastPush))
    }

    /// Whether a time is a day from another, before or, by a clock that was wrong, after.
    package static func isDayAway(_ time: UInt64, from other: UInt64) -> Bool {
        max(time, other) - min(time, other) >= Retention.day
    }

    // MARK: The end

    /// Once a day, or when a device was forgotten: what that left may go once all of it is known to be published by
    /// this device. What fails is tried again the next day.
    private mutating func collect(_ facts: Facts) -> Action {
        guard facts.isDownloaded,
            (collectsGarbage && !facts.isPending) || Self.isDayAway(facts.time, from: facts.lastGarbageCollection)
        else { return rest(facts) }
        collectsGarbage = false
        return .collectGarbage
    }

    private mutating func rest(_ facts: Facts) -> Action {
        let isPending = !onlyReads && facts.isDownloaded && wantsPublication(facts)
        isRunning = false
        schedule?.traits = facts.traits
        schedule?.passed(
            facts.now, received: received || !facts.isDownloaded, uploaded: uploaded, isPending: isPending)
        return .rest
    }
}
