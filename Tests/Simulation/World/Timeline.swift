// SPDX-License-Identifier: Apache-2.0

/// The future events of a run, and its only clock. Nothing else makes anything happen.
final class Timeline {
    /// Microseconds since 1970.
    private(set) var now: UInt64
    /// Called after each event.
    var afterEvent: (() -> Void)?

    private var agenda = Agenda()

    init(now: UInt64) { self.now = now }

    /// Schedules an event. Events at the same time happen in the order in which they were scheduled.
    func after(_ delay: UInt64, _ body: @escaping () -> Void) {
        agenda.add(now + delay, body)
    }

    /// Lets time pass.
    func run(for duration: UInt64) {
        let end = now + duration
        afterEvent?()
        while let (time, body) = agenda.next(until: end) {
            now = time
            body()
            afterEvent?()
        }
        now = end
    }

    /// Drops all future events.
    func clear() { agenda = Agenda() }
}

/// The future events: a heap of times, and beside it the closures.
private struct Agenda {
    private var entries: [Entry] = []
    private var count: UInt64 = 0
    private var bodies: [() -> Void] = []
    private var free: [Int] = []

    private struct Entry {
        let time: UInt64
        let order: UInt64
        let body: Int

        func precedes(_ other: Entry) -> Bool {
            time != other.time ? time < other.time : order < other.order
        }
    }

    mutating func add(_ time: UInt64, _ body: @escaping () -> Void) {
        count += 1
        let place = free.popLast() ?? bodies.count
        if place < bodies.count { bodies[place] = body } else { bodies.append(body) }
        siftUp(Entry(time: time, order: count, body: place))
    }

    /// Removes and returns the first event, if it is due.
    mutating func next(until end: UInt64) -> (UInt64, () -> Void)? {
        guard let first = entries.first, first.time <= end else { return nil }
        removeFirst()
        free.append(first.body)
        let body = bodies[first.body]
        bodies[first.body] = {}
        return (first.time, body)
    }

    private mutating func siftUp(_ entry: Entry) {
        var index = entries.count
        entries.append(entry)
        while index > 0 {
            let parent = (index - 1) / 2
            guard entry.precedes(entries[parent]) else { break }
            entries[index] = entries[parent]
            index = parent
        }
        entries[index] = entry
    }

    private mutating func removeFirst() {
        let entry = entries.removeLast()
        if entries.isEmpty { return }
        var index = 0
        while 2 * index + 1 < entries.count {
            let (left, right) = (2 * index + 1, 2 * index + 2)
            let child = right < entries.count && entries[right].precedes(entries[left]) ? right : left
            guard entries[child].precedes(entry) else { break }
            entries[index] = entries[child]
            index = child
        }
        entries[index] = entry
    }
}

let millisecond: UInt64 = 1000
let second: UInt64 = 1_000_000
let minute = 60 * second
let hour = 60 * minute
let day = 24 * hour
