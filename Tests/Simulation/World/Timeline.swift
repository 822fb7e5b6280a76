// SPDX-License-Identifier: Apache-2.0

/// What happens when, and the only clock. Nothing else makes anything happen.
final class Timeline {
    /// Microseconds since 1970.
    private(set) var now: UInt64
    /// Called after each event.
    var afterEvent: () -> Void = {}

    private var events: [Event] = []
    private var scheduled: UInt64 = 0
    /// What events do, beside the heap, which moves numbers only.
    private var bodies: [() -> Void] = []
    private var freeBodies: [Int] = []

    private struct Event {
        let time: UInt64
        let order: UInt64
        let body: Int

        func precedes(_ other: Event) -> Bool {
            time != other.time ? time < other.time : order < other.order
        }
    }

    init(now: UInt64) { self.now = now }

    /// Makes something happen later. Of what happens at one time, what was asked for first is first.
    func after(_ delay: UInt64, _ body: @escaping () -> Void) {
        scheduled += 1
        let place = freeBodies.popLast() ?? bodies.count
        if place < bodies.count { bodies[place] = body } else { bodies.append(body) }
        siftUp(Event(time: now + delay, order: scheduled, body: place))
    }

    /// Lets time go on.
    func run(for duration: UInt64) {
        let end = now + duration
        afterEvent()
        while let event = events.first, event.time <= end {
            removeFirst()
            now = event.time
            takeBody(event.body)()
            afterEvent()
        }
        now = end
    }

    /// Nothing that was asked for happens any more.
    func clear() { (events, bodies, freeBodies) = ([], [], []) }

    private func takeBody(_ place: Int) -> () -> Void {
        let body = bodies[place]
        bodies[place] = {}
        freeBodies.append(place)
        return body
    }

    // MARK: A heap

    private func siftUp(_ event: Event) {
        var index = events.count
        events.append(event)
        while index > 0 {
            let parent = (index - 1) / 2
            guard event.precedes(events[parent]) else { break }
            events[index] = events[parent]
            index = parent
        }
        events[index] = event
    }

    private func removeFirst() {
        let event = events.removeLast()
        if events.isEmpty { return }
        var index = 0
        while 2 * index + 1 < events.count {
            let (left, right) = (2 * index + 1, 2 * index + 2)
            let child = right < events.count && events[right].precedes(events[left]) ? right : left
            guard events[child].precedes(event) else { break }
            events[index] = events[child]
            index = child
        }
        events[index] = event
    }
}

let millisecond: UInt64 = 1000
let second: UInt64 = 1_000_000
let minute = 60 * second
let hour = 60 * minute
let day = 24 * hour
