// SPDX-License-Identifier: Apache-2.0

/// What happens when, and the only clock. Nothing else makes anything happen.
final class Timeline {
    /// Microseconds since 1970.
    private(set) var now: UInt64
    /// Called after each event.
    var afterEvent: () -> Void = {}

    private var events: [Event] = []
    private var scheduled: UInt64 = 0

    private struct Event {
        let time: UInt64
        let order: UInt64
        let body: () -> Void

        func precedes(_ other: Event) -> Bool {
            time != other.time ? time < other.time : order < other.order
        }
    }

    init(now: UInt64) { self.now = now }

    /// Makes something happen later. Of what happens at one time, what was asked for first is first.
    func after(_ delay: UInt64, _ body: @escaping () -> Void) {
        scheduled += 1
        events.append(Event(time: now + delay, order: scheduled, body: body))
        siftUp(events.count - 1)
    }

    /// Lets time go on.
    func run(for duration: UInt64) {
        let end = now + duration
        afterEvent()
        while let event = events.first, event.time <= end {
            removeFirst()
            now = event.time
            event.body()
            afterEvent()
        }
        now = end
    }

    /// Nothing that was asked for happens any more.
    func clear() { events = [] }

    // MARK: A heap

    private func siftUp(_ start: Int) {
        var index = start
        while index > 0 {
            let parent = (index - 1) / 2
            guard events[index].precedes(events[parent]) else { return }
            events.swapAt(index, parent)
            index = parent
        }
    }

    private func removeFirst() {
        events.swapAt(0, events.count - 1)
        events.removeLast()
        var index = 0
        while true {
            let left = 2 * index + 1
            guard left < events.count else { return }
            let right = left + 1
            let child = right < events.count && events[right].precedes(events[left]) ? right : left
            guard events[child].precedes(events[index]) else { return }
            events.swapAt(index, child)
            index = child
        }
    }
}

let millisecond: UInt64 = 1000
let second: UInt64 = 1_000_000
let minute = 60 * second
let hour = 60 * minute
let day = 24 * hour
