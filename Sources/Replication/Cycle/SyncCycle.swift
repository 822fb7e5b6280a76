// SPDX-License-Identifier: Apache-2.0

// What a sync cycle does, and in which order. The service, each form of the simulation and the conformance suite's
// device carry out its actions and report the result of each.
//
//   pull → read and join each store that has news → end the pull → keep its cursor
//        → begin a push → sync the disk → upload each store → end the push → mark exactly that as published
//        → collect garbage → rest
//
// The second line happens if the device has something to publish and may, the third once a day. If a store has changed
// since the disk was synced, the disk is synced again before the store is uploaded. A cycle may be interrupted between
// any two actions; the next one leads to the same result.
//
// It is a value, without I/O, clock, tasks or storage.

/// The sync cycles of an account with one remote.
package struct SyncCycle: Sendable {
    /// What to do next.
    package enum Action: Equatable, Sendable {
        /// Begin a pull.
        case pull
        /// Continue under another origin, because another device writes under this one.
        case leaveOrigin
        /// Read what is new of a store, and join it.
        case read(String)
        /// End the pull. These stores are joined and committed.
        case endPull(joined: Set<String>)
        /// Store the cursor at which the pull ended.
        /// - Parameters:
        ///   - isRead: whether the pull read everything.
        ///   - tooLarge: the stores that were read but not joined.
        case keep(isRead: Bool, tooLarge: Set<String>)
        /// Count a publication, and begin it.
        case beginPush
        /// Sync the disk, so that a power cut can't make this device use a published dot again.
        case synchronize
        /// Upload the state of a store.
        case upload(String)
        /// Make the upload visible to other devices.
        case endPush
        /// Mark what was uploaded as published.
        case markPublished
        /// Let the backend collect garbage.
        case collectGarbage
        /// Wait until the next cycle is due.
        case rest
    }

    /// The result of an action.
    package enum Event: Sendable {
        /// The action is done.
        case done
        /// The pull has begun, and found something new of these stores.
        /// - Parameter beginsAnew: whether the pull reads everything, and counts only if it is complete.
        case pulled(OwnPublication, stores: [String], beginsAnew: Bool)
        /// The last pull was complete, and nothing can be new since.
        case unchanged
        /// A store was read.
        case joined(Joining)
        /// The pull has ended.
        /// - Parameter lacksOnlyForgotten: whether all that it lacks is from devices that the user has removed from the
        ///   account's list. Nobody waits for that any more.
        case ended(isComplete: Bool, lacksOnlyForgotten: Bool = false)
        /// The push has begun, and needs the states of these stores.
        case began(stores: [String])
        /// The store has changed since the disk was synced, so its state was read but not uploaded.
        case unsynced
        /// The action no longer counts, because a store was forgotten or the device has taken another origin.
        case interrupted
    }

    /// The result of joining what is new of a store.
    package enum Joining: Sendable {
        /// The store has changed.
        case changed
        /// The store already had everything.
        case unchanged
        /// Part of it has not arrived yet, so nothing was joined.
        case notWhole
        /// The store would become larger than a store may be, so nothing was joined. The cycle continues without this
        /// store, and every pull offers it again.
        case tooLarge
    }

    /// What the decisions depend on.
    package struct Facts {
        /// The monotonic clock's time, in microseconds.
        package var now: UInt64
        /// The device's clock's time, in microseconds since 1970.
        package var time: UInt64
        /// The backend's traits.
        package var traits: BackendTraits
        /// Whether the first download of the account is complete.
        package var isDownloaded: Bool
        /// Whether changes are pending that may be uploaded.
        package var isPending: Bool
        /// When the last upload ended, by the device's clock; 0 if there was none.
        package var lastPush: UInt64
        /// When garbage was last collected, by the device's clock; 0 if never.
        package var lastGarbageCollection: UInt64

        /// Makes facts from their parts.
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
    /// Whether a cycle is under way.
    package private(set) var isRunning = false
    /// Whether the device has to publish again, because its publication is gone from the remote or it has taken another
    /// origin.
    package private(set) var needsRepublication = true
    /// Whether the last pull didn't find what this device had published, and it has not published again since.
    package private(set) var isPublicationGone = false
    /// Whether cycles only read, and write nothing to the remote.
    package var onlyReads = false
    /// Whether the next cycle ends the first download without what can't be read, because the user has said so.
    package var wantsGaps = false
    /// Whether this cycle does.
    package private(set) var acceptsGaps = false
    /// An error that did not stop the cycle.
    package private(set) var problem: RemoteError?
    /// Whether something could not be read. The rest is joined.
    package private(set) var hasUnread = false
    /// Whether the last pull read everything.
    package private(set) var isPullComplete = false
    /// Whether the last pull lacked something that may still arrive.
    package private(set) var isAwaitingParts = false
    /// What the last pull found of this device's last publication; `nil` if it did not get that far.
    package private(set) var found: OwnPublication?
    /// Whether the last pull found this device's last publication.
    package var foundPublication: Bool { found == .asPublished }
    /// Whether the cycle left something undone, which the next one does.
    package private(set) var isInterrupted = false

    /// The action to do, or under way.
    package private(set) var action = Action.rest
    private var uploads = false
    /// Whether the cycle has uploaded.
    package private(set) var uploaded = false
    private var received = false
    private var beginsAnew = false
    /// The stores that are still to be read, or to be uploaded.
    private var stores: ArraySlice<String> = []
    private var joined: Set<String> = []
    private var isWaiting = false
    private var wasCut = false
    private var tooLarge: Set<String> = []

    /// Makes the cycles of an account without a remote.
    package init() {}

    /// Makes the cycles of an account with a remote.
    package init(_ schedule: SyncSchedule) { self.schedule = schedule }

    /// When the next cycle is due, by the monotonic clock; `nil` if none is before another event.
    package var nextCycle: UInt64? { isRunning ? nil : schedule?.nextCycle }

    // MARK: A cycle

    /// Begins a cycle.
    /// - Parameter now: the time by the monotonic clock.
    /// - Returns: whether the cycle is to upload pending changes.
    package mutating func begin(_ now: UInt64) -> Bool {
        uploads = schedule?.begin(now) ?? false
        // A cycle that was interrupted or cut has not used it.
        (acceptsGaps, wantsGaps) = (wantsGaps || acceptsGaps && (isInterrupted || wasCut), false)
        wasCut = false
        (isRunning, isInterrupted, problem, hasUnread) = (true, false, nil, false)
        (isPullComplete, isAwaitingParts) = (false, true)
        (uploaded, received, isWaiting, found) = (false, false, false, nil)
        (stores, joined, tooLarge) = ([], [], [])
        action = .pull
        return uploads
    }

    /// Begins a cycle at its upload, for the conformance suite.
    /// - Parameter now: the time by the monotonic clock.
    package mutating func beginPush(_ now: UInt64) {
        _ = begin(now)
        action = .beginPush
    }

    /// Takes an action's result, and decides on the next action.
    package mutating func next(after event: Event, _ facts: @autoclosure () -> Facts) -> Action {
        action = following(event, facts)
        return action
    }

    /// Ends a cycle that can't go on.
    /// - Parameter jitter: a random number, which spreads the attempts of many devices.
    package mutating func fail(_ error: RemoteError, _ now: UInt64, jitter: UInt64) {
        (isRunning, action) = (false, .rest)
        schedule?.failed(now, retryAfter: error.leastRest, jitter: jitter)
    }

    /// Ends a cycle early, without an error.
    package mutating func cut(_ now: UInt64) {
        (isRunning, action, wasCut) = (false, .rest, true)
        schedule?.cut(now)
    }

    private mutating func following(_ event: Event, _ facts: () -> Facts) -> Action {
        switch (action, event) {
        case (.pull, .pulled(let own, let stores, let beginsAnew)):
            (self.stores, self.beginsAnew) = (stores[...], beginsAnew)
            return note(own)
        case (.pull, .unchanged):
            (isPullComplete, isAwaitingParts) = (true, false)
            return publish(facts())
        case (.leaveOrigin, _): return read()
        case (.read(let store), .joined(let joining)):
            note(joining, of: store)
            return read()
        case (.read, _):
            (stores, isInterrupted) = ([], true)
            return .endPull(joined: joined)
        case (.endPull, .ended(let isComplete, let lacksOnlyForgotten)) where !isInterrupted:
            isAwaitingParts = isWaiting || !isComplete && !lacksOnlyForgotten
            return keep(isRead: isComplete && !isWaiting) ?? publish(facts())
        case (.endPull, _):
            // A store that came into use meanwhile may have been skipped in part.
            isInterrupted = true
            let facts = facts()
            schedule?.noteHint(facts.now)
            return publish(facts)
        case (.keep, _): return publish(facts())
        case (.beginPush, .began(let stores)):
            self.stores = stores[...]
            return Rule.syncFirst.isOn ? .synchronize : upload()
        case (.synchronize, .done), (.upload, .done): return upload()
        case (.upload(let store), .unsynced):
            stores.insert(store, at: stores.startIndex)
            return .synchronize
        case (.endPush, .done): return .markPublished
        case (.markPublished, _):
            (uploaded, needsRepublication, isPublicationGone) = (true, false, false)
            return collect(facts())
        case (.beginPush, _), (.synchronize, _), (.upload, _), (.endPush, _):
            isInterrupted = true
            return collect(facts())
        case (.pull, _), (.collectGarbage, _), (.rest, _): return rest(facts())
        }
    }

    // MARK: Download

    private mutating func note(_ own: OwnPublication) -> Action {
        found = own
        needsRepublication = !foundPublication
        isPublicationGone = own == .missing || own == .foreign
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
        let waits = isAwaitingParts && beginsAnew && !acceptsGaps
        if isAwaitingParts {
            noteProblem(
                RemoteError(
                    .unavailable, "Parts of the account have not arrived in the remote yet.",
                    reason: waits ? .firstPartsMissing : .partsMissing))
        }
        if waits { return nil }
        return .keep(isRead: isRead, tooLarge: tooLarge)
    }

    /// Notes an error that doesn't stop the cycle. Only the first is kept.
    package mutating func noteProblem(_ problem: RemoteError) { self.problem = self.problem ?? problem }

    /// Notes that something can't be read.
    package mutating func noteUnread(_ problem: RemoteError) {
        noteProblem(problem)
        hasUnread = true
    }

    /// Whether the last pull joined everything that it read.
    package var hasJoinedReadable: Bool { tooLarge.isEmpty }

    /// Notes that the device has taken another origin.
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

    /// Whether a day has passed since the last upload, or there was none. Publishing daily keeps what this device has
    /// received if the other devices are lost, and shows them that it still exists.
    private static func isPublicationDue(_ facts: Facts) -> Bool {
        Rule.dailyHead.isOn && facts.isDownloaded
            && (facts.lastPush == 0 || isDayAway(facts.time, from: facts.lastPush))
    }

    /// Whether two times are at least a day apart.
    package static func isDayAway(_ time: UInt64, from other: UInt64) -> Bool {
        isAway(time, from: other, by: Retention.day)
    }

    /// Whether two times are at least an interval apart, in microseconds. A clock that was wrong may have put the
    /// earlier one after the later.
    package static func isAway(_ time: UInt64, from other: UInt64, by interval: UInt64) -> Bool {
        max(time, other) - min(time, other) >= interval
    }

    // MARK: The end

    /// Collects garbage once a day. After a failure it tries again the next day.
    private mutating func collect(_ facts: Facts) -> Action {
        guard facts.isDownloaded, Self.isDayAway(facts.time, from: facts.lastGarbageCollection) else {
            return rest(facts)
        }
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
