// SPDX-License-Identifier: Apache-2.0

// The copy of a layer that reads come from: it is told what happened, and knows no bus, no thread and no clock.
//
//     base     what the service has, as of `generation`
//     sent     writes that were sent and not answered yet: one call at a time
//     queue    writes that wait for their turn
//     visible  base with the writes of `sent` and then of `queue` on it: what reads see
//
// Settings have no order among each other, so writes that wait are one dictionary: the last one of a key counts. Only
// a write that goes as a whole (setPersistentDomain) stays apart. A call that is refused is sent again in parts, until
// what is refused by itself is left, and taken back.
//
// A write that could not be sent before the service went comes late: another program may have written the key since.
// It is sent with the generation that was known when the service went, and the service keeps what changed after that.
// Only the next snapshot tells which of these writes won, so they cover the copy until then.

internal import ManagedDefaults
package import PropertyList

/// Keys with their new values; `nil` removes.
package typealias Changes = [Text: Value?]

/// Who waits for a write's answer.
package typealias Ticket = UInt64

/// The state machine above.
package struct LayerCopy {
    /// Changes that go together.
    package struct Write: Equatable {
        /// What it changes.
        package var changes: Changes
        /// All or nothing.
        package var isWhole = false
        /// Who waits for its answer.
        package var tickets: [Ticket] = []
        /// Of a late write: the generation that was known when the service went; what changed after it wins.
        package var since: UInt64?
    }

    /// What is sent at once.
    package struct Call: Equatable {
        /// The new values.
        package let changes: Changes
        /// Keys that changed after this generation stay as they are; `nil`: none do.
        package let since: UInt64?

        /// A call of its parts.
        package init(changes: Changes, since: UInt64?) {
            (self.changes, self.since) = (changes, since)
        }
    }

    /// What reads see.
    package private(set) var visible: [Text: Value] = [:]
    private var base: [Text: Value] = [:]
    /// Of the last snapshot; `nil` before the first one.
    package private(set) var generation: UInt64?
    /// The newest generation that this process knows of, its own writes included.
    package private(set) var seen: UInt64 = 0
    private var sent: [Write] = []
    private var queue: [Write] = []
    private var isUp = false
    /// So many writes are sent one by one, after they were refused together.
    private var singles = 0
    /// ``sent`` are late writes that were answered with this generation; a snapshot of it tells which of them won.
    private var verifying: UInt64?
    /// What was sent when the service went, and may have been taken.
    private var uncertain: Changes = [:]
    /// What was put into an outbox, and may have been delivered since: the last two values of a key. Those before were
    /// replaced in the file.
    private var boxed: [Text: [Value?]] = [:]

    /// A layer of which nothing is known.
    package init() {}

    /// Whether the service has everything that was written.
    package var isSettled: Bool { waiting.isEmpty }

    /// What the service has not acknowledged.
    package var pending: Changes { waiting.reduce(into: [:]) { $0.merge($1.changes) { $1 } } }

    /// The generation that was known when the pending write of a key was made.
    package func known(_ key: Text) -> UInt64 { waiting.last { $0.changes[key] != nil }?.since ?? seen }

    /// What the service may have taken of a key without this process hearing of it.
    package func unanswered(_ key: Text) -> [Value?] {
        let onItsWay = verifying == nil ? sent.last { $0.changes[key] != nil }?.changes[key] : nil
        return (boxed[key] ?? []) + [onItsWay ?? uncertain[key]].compactMap { $0 }
    }

    /// The last values of some keys are in an outbox.
    package mutating func keptInOutbox(_ keys: some Sequence<Text>) {
        let pending = pending
        for key in keys {
            guard let value = pending[key], boxed[key]?.last != .some(value) else { continue }
            boxed[key] = (boxed[key] ?? []).suffix(1) + [value]
        }
    }

    private var waiting: [Write] { (verifying == nil ? sent : []) + queue }

    // MARK: The app

    /// The app writes.
    package mutating func write(_ changes: Changes, isWhole: Bool = false, ticket: Ticket? = nil) {
        let write = Write(changes: changes, isWhole: isWhole, tickets: ticket.map { [$0] } ?? [])
        if let last = queue.indices.last, !isWhole, !queue[last].isWhole, queue[last].since == nil {
            queue[last].changes.merge(changes) { $1 }
            queue[last].tickets += write.tickets
        } else {
            queue.append(write)
        }
        visible.make(changes)
    }

    /// Somebody wants to know when everything that was written until now is answered.
    /// - Returns: false if it is already.
    package mutating func wait(_ ticket: Ticket) -> Bool {
        if let last = queue.indices.last {
            queue[last].tickets.append(ticket)
        } else if verifying == nil, let last = sent.indices.last {
            sent[last].tickets.append(ticket)
        } else {
            return false
        }
        return true
    }

    /// What an outbox has is shown as long as nothing is known of the service.
    package mutating func preload(_ changes: Changes) {
        guard generation == nil else { return }
        base.make(changes)
        for (key, value) in changes where pendingValue(key) == nil { visible[key] = value }
    }

    // MARK: The service

    /// What is to be sent now; `nil`: nothing.
    package mutating func nextCall() -> Call? {
        guard isUp, sent.isEmpty, let first = queue.first else { return nil }
        let count = singles > 0 ? 1 : queue.prefix { $0.since == first.since }.count
        singles = max(0, singles - 1)
        sent = Array(queue.prefix(count))
        queue.removeFirst(count)
        return Call(changes: sent.reduce(into: [:]) { $0.merge($1.changes) { $1 } }, since: first.since)
    }

    /// Another process has given the service what an outbox had of this layer.
    package mutating func delivered(_ key: Text, _ value: Value?) {
        // Where a generation is known, the service decides.
        guard seen == 0 else { return }
        for index in queue.indices where !queue[index].isWhole && queue[index].tickets.isEmpty {
            if queue[index].changes[key] == .some(value) { queue[index].changes[key] = nil }
        }
        queue.removeAll { $0.changes.isEmpty }
        base[key] = value
    }

    /// The service has taken what was sent.
    /// - Returns: who waited for that.
    package mutating func acknowledged(_ generation: UInt64) -> [Ticket] {
        let tickets = sent.flatMap(\.tickets)
        seen = max(seen, generation)
        if sent.contains(where: { $0.since != nil }) {
            verifying = generation
            for index in sent.indices { sent[index].tickets = [] }
            return tickets
        }
        let writes = sent
        sent = []
        // A snapshot that was ahead of this answer has what is right.
        if generation > self.generation ?? 0 { for write in writes { base.make(write.changes) } }
        for write in writes { uncover(write.changes.keys) }
        return tickets
    }

    /// The service refuses what was sent, for good.
    /// - Returns: the write that is taken back; `nil`: it is sent again in parts.
    package mutating func refused() -> Write? {
        let writes = sent
        sent = []
        guard writes.count == 1, let write = writes.first, write.isWhole || write.changes.count == 1 else {
            let parts = writes.count > 1 ? writes : writes.flatMap(\.parts)
            queue = parts + queue
            singles = parts.count
            return nil
        }
        uncover(write.changes.keys)
        return write
    }

    /// The service has gone, or the way to it.
    package mutating func lost() {
        isUp = false
        singles = 0
        if verifying != nil {
            // They were answered. The next snapshot tells which of them won, whatever its generation.
            verifying = 0
            return
        }
        for write in sent { uncertain.merge(write.changes) { $1 } }
        queue = sent + queue
        sent = []
    }

    /// Everything that the service has, or what changed since the last snapshot.
    /// - Returns: the keys that may have another visible value now.
    package mutating func loaded(
        _ generation: UInt64, isComplete: Bool, _ values: [Text: Value], removed: [Text] = []
    ) -> Set<Text> {
        if !isUp { noteLateWrites(generation, values) }
        isUp = true
        // What is older than what is here was overtaken.
        guard isComplete || generation >= self.generation ?? 0 else { return [] }
        let keys = Set(values.keys).union(isComplete ? Array(base.keys) : removed)
        for key in keys { base[key] = values[key] }
        self.generation = generation
        seen = max(seen, generation)
        let verified = verify(generation)
        uncover(keys.union(verified))
        return keys.union(verified)
    }

    /// What waits comes late: each key is sent once, with the generation that was known when it was written last.
    ///
    /// - Parameters:
    ///   - generation: that of the snapshot which the service has sent on its return.
    ///   - values: what is in it.
    private mutating func noteLateWrites(_ generation: UInt64, _ values: [Text: Value]) {
        defer { (uncertain, boxed) = ([:], [:]) }
        guard seen > 0, !queue.isEmpty else { return }
        var since: [Text: UInt64] = [:]
        for write in queue {
            for key in write.changes.keys { since[key] = write.since ?? seen }
        }
        // The service had taken these before it went: what was written here since must not lose to them.
        let taken = since.keys.filter { unanswered($0).contains(values[$0]) }
        for key in taken { since[key] = generation }
        let (changes, tickets) = (pending, queue.flatMap(\.tickets))
        if queue.contains(where: \.isWhole) {
            let latest = taken.isEmpty ? since.values.min() : generation
            queue = [Write(changes: changes, isWhole: true, tickets: tickets, since: latest)]
            return
        }
        let groups = Dictionary(grouping: changes) { since[$0.key] ?? seen }
        queue = groups.map { Write(changes: Changes($1.map { ($0.key, $0.value) }) { $1 }, since: $0) }
        queue[queue.count - 1].tickets = tickets
    }

    /// - Returns: the keys of late writes of which it is known now whether they won.
    private mutating func verify(_ generation: UInt64) -> [Text] {
        guard let verifying, generation >= verifying else { return [] }
        let keys = sent.flatMap(\.changes.keys)
        (self.verifying, sent) = (nil, [])
        return keys
    }

    // MARK: Parts

    private func pendingValue(_ key: Text) -> Value?? {
        (queue.last { $0.changes[key] != nil } ?? sent.last { $0.changes[key] != nil })?.changes[key]
    }

    /// Makes the visible values of keys what they are with the writes that are left.
    private mutating func uncover(_ keys: some Sequence<Text>) {
        for key in keys { visible[key] = pendingValue(key) ?? base[key] }
    }
}

extension LayerCopy.Write {
    /// The same, key by key.
    fileprivate var parts: [Self] {
        var parts = changes.map { Self(changes: [$0: $1], since: since) }
        if !parts.isEmpty { parts[parts.count - 1].tickets = tickets }
        return parts
    }
}

extension [Text: Value] {
    /// Makes changes.
    mutating func make(_ changes: Changes) {
        for (key, value) in changes { self[key] = value }
    }
}
