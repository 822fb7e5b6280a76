// SPDX-License-Identifier: Apache-2.0

// The copy of a store that reads come from, as a state machine: its methods report events, and return what to do. It
// uses no bus, thread or clock.
//
//     base     what the service has, as of `generation`
//     sent     writes that were sent and not answered yet: one call at a time
//     queue    writes that wait for their turn
//     visible  base with the writes of `sent` and then of `queue` on it: what reads see
//
// A write is visible at once. When the previous call has its reply, the copy sends all writes made meanwhile as one
// atomic call. If the service refuses that call, the copy sends its writes one by one, and reverts only those that the
// service refuses again. The queue is bounded: it drops a write that a later one of the same key replaces, where no
// other program could tell, and the copy refuses what the service could never accept.
//
// The bus keeps the order of the service's messages, so the generation decides between replies, signals and snapshots.
// A reply to a write with a generation up to the last snapshot's is already part of that snapshot. A signal with a
// later generation than the snapshot's makes the copy request a snapshot since then; one with an earlier generation
// only tells the reason of a change that is already here. So each change is announced once, with the service's reason:
// changes that arrive with a snapshot before their signal wait for it (`unannounced`).
//
// A write is late if it could not be sent before the service went, because another program may have written the key
// since. It is sent with the generation that was known when it was made, and the service keeps what changed after that
// (decision 156). Only a snapshot tells which of these writes won, so until then they cover the service's values.
//
// If the service goes away before it replies, the copy can't know whether it applied the call. What the next service
// doesn't have is sent again, as a late write: if the call was applied, it loses to what was written since. A store
// without changes has no generation to name. What is there afterwards counts as written later, and a call is sent again
// only if it certainly was not applied.

internal import PropertyList
internal import StoreBus

/// Changes of one call: keys with their new values; `nil` removes.
typealias Changes = [Text: Value?]

/// Identifies a caller that waits for the reply to a write.
typealias Ticket = UInt64

struct LocalCopy {
    /// What the caller that reports an event must do, in order.
    enum Action {
        /// Request what changed since a generation, and pass it to ``LocalCopy/loaded(_:)``.
        case fetch(since: UInt64)
        /// On the bus's thread, send what ``LocalCopy/nextCall()`` returns.
        case send
        /// Notify the app.
        case announce(Announcement)
        /// Resume the callers that wait for a reply.
        case finish([Ticket], UbiquitousStoreError?)
    }

    /// The contents of one call.
    struct Call: Equatable {
        let changes: Changes
        /// What changed after this generation stays as it is; `nil` to change all keys.
        var since: UInt64?
        /// If it is late, when it was made, in microseconds since 1970.
        var time: UInt64 = 0
    }

    /// The connection to the service.
    enum Link {
        case down
        /// Subscribed; the first snapshot is on its way.
        case loading
        case up
    }

    /// What became of the call in ``LocalCopy/sent``.
    private enum Fate {
        /// Its reply is on its way.
        case awaited
        /// The service went away before it replied. `since` is the generation of its last reply before the call.
        case unknown(since: UInt64)
    }

    private(set) var visible: [Text: Value] = [:]
    private(set) var base: [Text: Value] = [:]
    /// The generation of the last snapshot; `nil` before the first one.
    private(set) var generation: UInt64?
    private(set) var sent: [Write] = []
    private(set) var queue = WriteBacklog()
    private(set) var link = Link.down

    private var fate = Fate.awaited
    /// If ``sent`` are late writes that the service has taken: the generation of its reply. A snapshot of it tells which of
    /// them won.
    private var verifying: UInt64?
    /// The generation of the last reply to a write.
    private var acknowledgedGeneration: UInt64 = 0

    /// Whether the app read before the first snapshot arrived.
    private var isReadEarly = false
    /// Whether a ``Action/send`` is under way.
    private var isSending = false
    private var isFetching = false
    /// The number of writes to send one by one, after they were refused together.
    private var singles = 0
    /// Signals whose changes the snapshot under way will contain.
    private var signals: [ExternalChange] = []
    /// Keys whose visible value changed before the signal with the reason arrived, with the value that the app knows.
    private var unannounced: [Text: Value?] = [:]
    /// Keys of our own refused calls, which the service's signal will report again.
    private var ownViolations: Set<Text> = []

    /// Whether a read need not wait for the first snapshot.
    var isReadable: Bool { generation != nil || isReadEarly }

    /// Whether the service has replied to every write.
    var isSettled: Bool { inFlight.isEmpty && queue.isEmpty }

    /// The changes that the service has not acknowledged.
    var pending: Changes { (inFlight + queue.writes).changes }

    /// The changes that were sent and not answered; the service may have applied them.
    var unanswered: Changes { inFlight.changes }

    /// The generation that was known when the last pending write of each key was made.
    var knownToPending: [Text: UInt64] {
        (inFlight + queue.writes).reduce(into: [:]) { known, write in
            for key in write.changes.keys { known[key] = write.since ?? self.known }
        }
    }

    private var inFlight: [Write] { verifying == nil ? sent : [] }

    /// The newest known generation.
    var known: UInt64 { max(generation ?? 0, acknowledgedGeneration) }

    // MARK: The app

    /// The app stops waiting and reads; later it is notified of what it missed.
    mutating func readEarly() {
        if generation == nil { isReadEarly = true }
    }

    /// The app writes.
    mutating func write(_ write: Write) -> [Action] {
        defer { if link != .up { noteLoss() } }
        guard queue.append(write) else {
            let error = UbiquitousStoreError(
                .quotaExceeded, "More is waiting for the service than a store can hold; the write was dropped.")
            return [.announce(refusal(of: write, error))] + finish(write.tickets, error)
        }
        for (key, value) in write.changes {
            visible[key] = value
            // The app knows its own value now.
            unannounced[key] = nil
        }
        return sendNext()
    }

    /// The app wants to be resumed when everything written so far has a reply.
    mutating func settle(_ ticket: Ticket) -> [Action] {
        if queue.addTicket(ticket) { return [] }
        guard let last = inFlight.indices.last else { return finish([ticket], nil) }
        sent[last].tickets.append(ticket)
        return []
    }

    // MARK: The service

    /// The service was found, and has our subscription.
    mutating func linked() -> [Action] {
        lost()
        link = .loading
        isFetching = true
        return [.fetch(since: generation ?? 0)]
    }

    /// The service or the connection is gone.
    mutating func lost() {
        link = .down
        isFetching = false
        isSending = false
        singles = 0
        ownViolations = []
        // The next snapshot tells which of the late writes won, whatever its generation.
        if verifying != nil { verifying = 0 }
        if case .awaited = fate, !inFlight.isEmpty { fate = .unknown(since: known) }
        noteLoss()
    }

    private mutating func noteLoss() {
        // A copy that knows nothing has no generation to tell: its writes count as made when they are sent.
        if known > 0 { queue.noteLoss(at: known) }
    }

    /// Returns the call to send now; `nil` if there is none.
    mutating func nextCall() -> Call? {
        isSending = false
        guard link == .up, sent.isEmpty, !queue.isEmpty else { return nil }
        sent = queue.take(atMost: singles > 0 ? 1 : .max)
        singles = max(0, singles - 1)
        return Call(changes: sent.changes, since: sent.first?.since, time: sent.first?.time ?? 0)
    }

    /// The service has applied the call in flight.
    mutating func acknowledged(_ generation: UInt64) -> [Action] {
        acknowledgedGeneration = generation
        let tickets = sent.flatMap(\.tickets)
        if sent.contains(where: { $0.since != nil }) {
            verifying = generation
            return finish(tickets, nil) + (verify().map { announce($0) + sendNext() } ?? fetchIfNeeded())
        }
        let writes = sent
        sent = []
        // Our generation stays the snapshot's, even if this one is the next: writing what another client has just
        // written makes no new generation, so this may be theirs, with more changes in it.
        if generation > self.generation ?? 0 { for write in writes { base.merge(write.changes) } }
        // If a snapshot was ahead of this reply, it is right.
        for key in Set(writes.flatMap(\.changes.keys)) { uncover(key) }
        return finish(tickets, nil) + sendNext()
    }

    /// The service refuses the call in flight permanently.
    mutating func refused(_ error: UbiquitousStoreError) -> [Action] {
        let writes = sent
        sent = []
        if error.code == .quotaExceeded { ownViolations.formUnion(writes.flatMap(\.changes.keys)) }
        guard writes.count == 1 else {
            queue.putBack(writes)
            singles = writes.count
            return sendNext()
        }
        let announcements = writes.map { Action.announce(refusal(of: $0, error)) }
        return announcements + finish(writes.flatMap(\.tickets), error) + sendNext()
    }

    /// The service can't apply the call in flight now, but may later: link again after a while. Waiting callers get the
    /// error; the write stays.
    mutating func postponed(_ error: UbiquitousStoreError) -> [Action] {
        let tickets = sent.flatMap(\.tickets)
        for index in sent.indices { sent[index].tickets = [] }
        queue.putBack(sent)
        sent = []
        lost()
        return finish(tickets, error)
    }

    /// The answer to ``Action/fetch(since:)``.
    mutating func loaded(_ snapshot: Snapshot) -> [Action] {
        let isFirst = generation == nil
        take(snapshot)
        // Before the first snapshot the app has seen nothing, unless it read early.
        if isFirst && !isReadEarly { unannounced = [:] }
        let verified = verify() ?? []
        guard case .unknown(let since) = fate else { return upToDate(verified) }
        return sendAgain(since: since)
    }

    /// The service signals a change.
    mutating func received(_ signal: ExternalChange) -> [Action] {
        var signal = signal
        if signal.reason == ChangeReason.quotaViolation {
            let own = ownViolations.intersection(signal.keys)
            ownViolations.subtract(own)
            if !own.isEmpty { signal.keys.removeAll { own.contains($0) } }
            if !own.isEmpty && signal.keys.isEmpty { return [] }
        }
        signals.append(signal)
        return explain() + fetchIfNeeded()
    }
}

// MARK: - Carrying out events

extension LocalCopy {
    /// Returns the last value written to a key whose reply is outstanding.
    private func pending(_ key: Text) -> Value?? {
        queue.value(key) ?? sent.last { $0.changes[key] != nil }?.changes[key]
    }

    /// Recomputes a key's visible value after writes to it are gone.
    private mutating func uncover(_ key: Text) {
        visible[key] = pending(key) ?? base[key]
    }

    /// Sends the call whose reply was lost again, unless the service has applied it.
    /// - Parameter since: the generation of the last reply before the call.
    private mutating func sendAgain(since: UInt64) -> [Action] {
        fate = .awaited
        let writes = sent
        sent = []
        let own = Set(writes.changes.filter { base[$0.key] == $0.value }.keys)
        // The service applies a call as a whole. To a store that was empty it certainly was not applied if a key that it
        // sets is missing.
        let isMissing = writes.changes.contains { key, value in
            base[key] != value && (since > 0 || base[key] == nil)
        }
        if isMissing {
            queue.putBack(writes)
            if since > 0 { queue.noteLoss(at: since) }
            return upToDate(following: own)
        }
        reveal(writes)
        return finish(writes.flatMap(\.tickets), nil) + upToDate(following: own)
    }

    /// The copy equals the service's state, and the outcome of every call is known.
    /// - Parameters:
    ///   - verified: the keys of late writes whose outcome is known now.
    ///   - own: the keys whose present value may be this program's own, sent before the service went. What it has set
    ///     later must not lose to that.
    private mutating func upToDate(_ verified: [Text] = [], following own: Set<Text> = []) -> [Action] {
        let isReturn = link == .loading
        isFetching = false
        link = .up
        if isReturn { queue.prepareLate(following: own, at: known) }
        var actions = explain()
        // Changes from while we were disconnected have no signal.
        actions += announce(isReturn ? Array(unannounced.keys) : verified)
        return actions + fetchIfNeeded() + sendNext()
    }

    /// Announces changes of which no signal tells.
    private mutating func announce(_ keys: [Text]) -> [Action] {
        let change = announcement(ExternalChange(returningTo: generation ?? 0, keys))
        return change.map { [.announce($0)] } ?? []
    }

    /// - Returns: the keys of late writes whose outcome the snapshot tells; `nil` if they wait for another one.
    private mutating func verify() -> [Text]? {
        guard let verifying, generation ?? 0 >= verifying else { return nil }
        let writes = sent
        (self.verifying, sent) = (nil, [])
        reveal(writes)
        return Array(writes.changes.keys)
    }

    /// Shows what others wrote to keys that were written here.
    private mutating func reveal(_ writes: [Write]) {
        for key in Set(writes.flatMap(\.changes.keys)) where pending(key) == nil && visible[key] != base[key] {
            unannounced[key] = unannounced[key] ?? .some(visible[key])
            visible[key] = base[key]
        }
    }

    private mutating func take(_ snapshot: Snapshot) {
        let covered = Set(sent.flatMap(\.changes.keys)).union(queue.keys)
        let keys = Set(snapshot.values.keys).union(snapshot.isComplete ? Array(base.keys) : snapshot.removed)
        for key in keys {
            let value = snapshot.values[key]
            base[key] = value
            guard !covered.contains(key), visible[key] != value else { continue }
            unannounced[key] = unannounced[key] ?? .some(visible[key])
            visible[key] = value
        }
        generation = snapshot.generation
    }

    /// Announces the signals whose changes have arrived.
    private mutating func explain() -> [Action] {
        guard let generation, link == .up else { return [] }
        var explained = signals.filter { $0.generation <= generation }
        signals.removeAll { $0.generation <= generation }
        // A signal that leaves out its keys is about those that no other signal has named.
        if let index = explained.lastIndex(where: \.leavesOutKeys) {
            var signal = explained.remove(at: index)
            if let latest = signals.map(\.generation).max() {
                signal.generation = latest
                signals.append(signal)
            } else {
                signal.keys = Set(unannounced.keys).subtracting(explained.flatMap(\.keys)).sorted()
                explained.append(signal)
            }
        }
        return explained.compactMap { announcement($0).map(Action.announce) }
    }

    /// `nil` if nothing is left to announce: changes are announced once, but the other reasons are news in themselves.
    private mutating func announcement(_ signal: ExternalChange) -> Announcement? {
        var changes: [KeyChange] = []
        for key in signal.keys {
            let known = unannounced.removeValue(forKey: key)
            let change = KeyChange(key: key, old: known ?? visible[key], new: visible[key])
            if !signal.isOnlyAboutValues || change.old != change.new { changes.append(change) }
        }
        if signal.isOnlyAboutValues && changes.isEmpty { return nil }
        return Announcement(reason: signal.reason, changes: changes, originDevice: signal.originDevice)
    }

    /// Reverts what a write made visible.
    private mutating func refusal(of write: Write, _ error: UbiquitousStoreError) -> Announcement {
        let changes = write.changes.keys.sorted().map { key in
            let old = visible[key]
            uncover(key)
            return KeyChange(key: key, old: old, new: visible[key])
        }
        return Announcement(reason: ChangeReason.of(error), changes: changes, error: error)
    }

    private mutating func fetchIfNeeded() -> [Action] {
        guard link == .up, !isFetching, !signals.isEmpty || verifying != nil else { return [] }
        isFetching = true
        return [.fetch(since: generation ?? 0)]
    }

    private mutating func sendNext() -> [Action] {
        guard link == .up, sent.isEmpty, !queue.isEmpty, !isSending else { return [] }
        isSending = true
        return [.send]
    }

    private func finish(_ tickets: [Ticket], _ error: UbiquitousStoreError?) -> [Action] {
        tickets.isEmpty ? [] : [.finish(tickets, error)]
    }
}

extension [Write] {
    /// Their combined changes.
    var changes: Changes { reduce(into: [:]) { $0.merge($1.changes) { $1 } } }
}

extension [Text: Value] {
    /// Makes changes.
    mutating func merge(_ changes: Changes) {
        for (key, value) in changes { self[key] = value }
    }
}
