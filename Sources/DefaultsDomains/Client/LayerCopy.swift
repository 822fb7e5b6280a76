// SPDX-License-Identifier: Apache-2.0

// The copy of a layer, from which reads are answered. It receives events, and knows no bus, thread or clock.
//
//     base     the service's values, as of `generation`
//     sent     writes that were sent and not answered yet: one call at a time
//     queue    writes that are not sent yet
//     visible  base with the writes of `sent` and then of `queue` applied: what reads see
//
// Settings have no order among each other, so queued writes are one dictionary, in which the last write of a key
// counts. Only a write that must be made as a whole (setPersistentDomain) stays separate. A refused call is sent again
// in halves, until only writes remain that are refused by themselves; these are taken back. So one key of many
// costs a few calls, and not one for each key.
//
// A write is late if it could not be sent before the service went, because another program may have written the key
// since. It is sent with the generation that was known when the service went, and the service keeps what changed after
// that. Only the next snapshot tells which of these writes won, so until then they cover the service's values.

internal import ManagedDefaults
package import PropertyList

/// Keys with their new values; `nil` removes a key.
package typealias Changes = [Text: Value?]

/// Identifies a caller that waits for a write's answer.
package typealias Ticket = UInt64

/// The state machine described above.
package struct LayerCopy {
    /// Changes that are sent together.
    package struct Write: Equatable {
        /// The changes.
        package var changes: Changes
        /// Whether the changes are made all or not at all. Of a late write, those are left out that lose.
        package var isWhole = false
        /// The keys that mean this layer even if they roam, because they were written as a whole.
        var own: Set<Text> = []
        /// Whether everything else that the layer holds goes, because it wasn't known what that is.
        package var replacesAll = false
        /// The tickets of callers that wait for the answer.
        package var tickets: [Ticket] = []
        /// For a late write, the generation that was known when the service went. What changed after it wins.
        package var since: UInt64?
    }

    /// The contents of one call.
    package struct Call: Equatable {
        /// The new values.
        package let changes: Changes
        /// Keys that changed after this generation stay as they are; `nil` to change all keys.
        package let since: UInt64?
        /// Whether a refusal counts at once, because there are no parts to send again.
        package let isIndivisible: Bool

        /// Makes a call from its parts.
        package init(changes: Changes, since: UInt64?, isIndivisible: Bool) {
            (self.changes, self.since, self.isIndivisible) = (changes, since, isIndivisible)
        }
    }

    /// The values that reads see.
    package private(set) var visible: [Text: Value] = [:]
    private var base: [Text: Value] = [:]
    /// The generation of the last snapshot; `nil` before the first one.
    package private(set) var generation: UInt64?
    /// The newest generation that this process knows of, its own writes included.
    package private(set) var seen: UInt64 = 0
    private var sent: [Write] = []
    private var queue: [Write] = []
    private var isUp = false
    /// How many writes at the head of the queue are to be sent one by one, because they were refused together.
    private var singles = 0
    /// If ``sent`` are late writes: the generation of their answer. A snapshot of it tells which of them won.
    private var verifying: UInt64?
    /// Writes that were on their way when the service went, and may have been taken.
    private var uncertain: Changes = [:]
    /// When the keys that wait were set, in microseconds since 1970.
    private var times: [Text: Int64] = [:]
    /// When what an outbox holds was set, as it was shown. What is set here is later, whatever the clock says.
    private var shownTimes: [Text: Int64] = [:]
    /// What this process has delivered for ended ones since the service went.
    private var delivered: [Text: Outbox.Write] = [:]

    /// Makes a layer of which nothing is known.
    package init() {}

    /// Whether the service has everything that was written.
    package var isSettled: Bool { waiting.isEmpty }

    /// The changes that the service has not acknowledged.
    package var pending: Changes { waiting.reduce(into: [:]) { $0.merge($1.changes) { $1 } } }

    /// The keys whose pending writes are parts of one that must be made as a whole. It means this layer, even if they
    /// roam.
    package var keysOfWhole: Set<Text> {
        waiting.reduce(into: []) { keys, write in
            keys.subtract(write.changes.keys)
            keys.formUnion(write.own)
        }
    }

    /// Returns the generation that was known when the pending write of a key was made.
    package func known(_ key: Text) -> UInt64 { waiting.last { $0.changes[key] != nil }?.since ?? seen }

    /// Returns when a key that waits was set, in microseconds since 1970.
    package func time(_ key: Text) -> Int64 { times[key] ?? 0 }

    /// Returns the value of a key that the service may have taken without this process hearing of it, if there is one.
    package func unanswered(_ key: Text) -> [Value?] {
        let onItsWay = verifying == nil ? sent.last { $0.changes[key] != nil }?.changes[key] : nil
        return [onItsWay ?? uncertain[key]].compactMap { $0 }
    }

    private var waiting: [Write] { (verifying == nil ? sent : []) + queue }

    // MARK: The app

    /// Takes a write of the app.
    ///
    /// - Parameters:
    ///   - time: when it was made, in microseconds since 1970.
    ///   - replacesAll: whether the write is to leave nothing else. That counts as long as it isn't known what the
    ///     service has.
    package mutating func write(
        _ changes: Changes, at time: Int64 = 0, isWhole: Bool = false, replacingAll replacesAll: Bool = false,
        ticket: Ticket? = nil
    ) {
        for key in changes.keys { times[key] = Outbox.Write.time(time, after: shownTimes[key]) }
        var write = Write(changes: changes, isWhole: isWhole, tickets: ticket.map { [$0] } ?? [])
        if isWhole { write.own = Set(changes.keys) }
        if replacesAll && generation == nil {
            // Nothing was sent yet, and what was set before goes with all the rest.
            write.replacesAll = true
            write.tickets = queue.flatMap(\.tickets) + write.tickets
            queue = []
        }
        if let last = queue.indices.last, !isWhole, !queue[last].isWhole, queue[last].since == nil {
            queue[last].changes.merge(changes) { $1 }
            queue[last].tickets += write.tickets
        } else {
            queue.append(write)
        }
        visible.make(changes)
    }

    /// Adds a ticket for the answer to everything that was written until now.
    /// - Returns: false if everything is answered already.
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

    /// Shows what an outbox holds, as long as nothing is known of the service's values.
    package mutating func preload(_ writes: [Outbox.Write]) {
        guard generation == nil else { return }
        let changes = Changes(writes.map { ($0.key, $0.value) }) { $1 }
        for write in writes { shownTimes[write.key] = write.time }
        base.make(changes)
        // A write that leaves nothing else has removed these keys, too.
        if queue.contains(where: \.replacesAll) { return }
        for (key, value) in changes where pendingValue(key) == nil { visible[key] = value }
    }

    // MARK: The service

    /// Returns the next call; `nil` if there is nothing to send.
    package mutating func nextCall() -> Call? {
        guard isUp, sent.isEmpty, let first = queue.first else { return nil }
        let count = singles > 0 ? 1 : queue.prefix { $0.since == first.since }.count
        singles = max(0, singles - 1)
        sent = Array(queue.prefix(count))
        queue.removeFirst(count)
        return Call(
            changes: sent.reduce(into: [:]) { $0.merge($1.changes) { $1 } }, since: first.since,
            isIndivisible: count == 1 && first.isIndivisible)
    }

    /// Notes that this process has delivered a write of this layer that an ended process had left in an outbox.
    package mutating func noteDelivered(_ write: Outbox.Write) { delivered[write.key] = write }

    /// Notes that the service has taken what was sent.
    /// - Returns: the tickets of callers that waited for this.
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
        if isSettled { times = [:] }
        // A snapshot that is newer than this answer is right already.
        if generation > self.generation ?? 0 { for write in writes { base.make(write.changes) } }
        for write in writes { uncover(write.changes.keys) }
        return tickets
    }

    /// Notes that the service refuses what was sent, for good.
    ///
    /// - Parameter isForAll: whether the reason holds for each other write too, so that none has to be tried.
    /// - Returns: the write that is taken back; `nil` if it is sent again in parts.
    package mutating func refused(isForAll: Bool = false) -> Write? {
        let writes = sent
        sent = []
        guard writes.count == 1, var write = writes.first, write.isIndivisible else {
            let parts = writes.count > 1 ? writes : writes.flatMap(\.halves)
            queue = parts + queue
            singles += parts.count
            return nil
        }
        if isForAll {
            for other in queue.prefix(singles) {
                write.changes.merge(other.changes) { $1 }
                write.tickets += other.tickets
            }
            queue.removeFirst(singles)
            singles = 0
        }
        uncover(write.changes.keys)
        return write
    }

    /// The keys of the writes that were sent and not answered.
    package var keysSent: [Text] { sent.flatMap(\.changes.keys) }

    /// Notes that the service, or the connection to it, is gone.
    package mutating func lost() {
        isUp = false
        singles = 0
        if verifying != nil {
            // The writes were answered. The next snapshot tells which of them won, whatever its generation.
            verifying = 0
            return
        }
        for write in sent { uncertain.merge(write.changes) { $1 } }
        queue = sent + queue
        sent = []
    }

    /// Takes over a snapshot: all the service's values, or what has changed since the last snapshot.
    /// - Returns: the keys whose visible values may have changed.
    package mutating func loaded(
        _ generation: UInt64, isComplete: Bool, _ values: [Text: Value], removed: [Text] = []
    ) -> Set<Text> {
        shownTimes = [:]
        for index in queue.indices where queue[index].replacesAll {
            queue[index].replacesAll = false
            // What was set before this write goes too, and what was set afterwards is in later writes.
            for key in values.keys where queue[index].changes[key] == nil {
                queue[index].changes[key] = .some(nil)
                queue[index].own.insert(key)
            }
        }
        var yielded: [Text] = []
        if !isUp {
            if seen == 0 { yielded = yieldToDelivered(values) }
            noteLateWrites(generation, values)
            (uncertain, delivered) = ([:], [:])
        }
        isUp = true
        // An older snapshot of changes was overtaken by what is known.
        guard isComplete || generation >= self.generation ?? 0 else { return [] }
        let keys = Set(values.keys).union(isComplete ? Array(base.keys) : removed)
        for key in keys { base[key] = values[key] }
        self.generation = generation
        seen = max(seen, generation)
        let verified = verify(generation)
        let changed = keys.union(verified).union(yielded)
        uncover(changed)
        return changed
    }

    /// Makes the waiting writes late: each key is sent once, with the generation known when it was last written.
    ///
    /// - Parameters:
    ///   - generation: the generation of the first snapshot after the service's return.
    ///   - values: the snapshot's values.
    private mutating func noteLateWrites(_ generation: UInt64, _ values: [Text: Value]) {
        let (changes, tickets) = (pending, queue.flatMap(\.tickets))
        guard seen > 0, !changes.isEmpty else { return }
        var since: [Text: UInt64] = [:]
        for write in queue {
            for key in write.changes.keys { since[key] = write.since ?? seen }
        }
        // What was written here must not lose to this process's own earlier writes, if the service had taken them before
        // it went, nor to what this process has delivered since for others, if they had set it earlier.
        let taken = since.keys.filter { key in
            let earlier = delivered[key].map { $0.time <= time(key) ? [$0.value] : [] } ?? []
            return (unanswered(key) + earlier).contains(values[key])
        }
        for key in taken { since[key] = generation }
        let (isWhole, whole) = (queue.contains(where: \.isWhole), keysOfWhole)
        let groups = Dictionary(grouping: changes) { since[$0.key] ?? seen }
        queue = groups.sorted { $0.key < $1.key }.map { since, changes in
            let changes = Changes(changes.map { ($0.key, $0.value) }) { $1 }
            return Write(changes: changes, isWhole: isWhole, own: whole.intersection(changes.keys), since: since)
        }
        queue[queue.count - 1].tickets = tickets
    }

    /// Drops the writes of keys that ended processes have set later, according to what this process has delivered for them.
    /// The service can't tell, because these writes know no generation.
    /// - Returns: the keys.
    private mutating func yieldToDelivered(_ values: [Text: Value]) -> [Text] {
        // The service may have refused what was delivered.
        let later = delivered.values.filter { $0.time > time($0.key) && values[$0.key] == $0.value }.map(\.key)
        for index in queue.indices where !queue[index].isWhole {
            for key in later { queue[index].changes[key] = nil }
        }
        return later
    }

    /// - Returns: the keys of late writes whose outcome this snapshot tells.
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

    /// Makes the visible values of keys those of the remaining writes, or else of ``base``.
    private mutating func uncover(_ keys: some Sequence<Text>) {
        for key in keys { visible[key] = pendingValue(key) ?? base[key] }
    }
}

extension LayerCopy.Write {
    fileprivate var isIndivisible: Bool { isWhole || changes.count <= 1 }

    /// The write in two parts. The callers wait for the second one.
    fileprivate var halves: [Self] {
        let entries = Array(changes)
        let middle = entries.count / 2
        return [
            Self(changes: Changes(uniqueKeysWithValues: entries[..<middle].map { ($0.key, $0.value) }), since: since),
            Self(
                changes: Changes(uniqueKeysWithValues: entries[middle...].map { ($0.key, $0.value) }), tickets: tickets,
                since: since),
        ]
    }
}

extension [Text: Value] {
    /// Applies changes.
    mutating func make(_ changes: Changes) {
        for (key, value) in changes { self[key] = value }
    }
}
