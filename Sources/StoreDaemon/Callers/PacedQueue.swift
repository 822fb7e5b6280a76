// SPDX-License-Identifier: Apache-2.0

internal import SDBus

/// Serves many elements, a few at a time, so that others don't wait while hundreds of one user's subscribers are
/// notified.
///
/// An element that is waiting is not queued again, so none is starved, however often elements are added.
@BusActor
final class PacedQueue<Element: Hashable> {
    private var waiting: ArraySlice<Element> = []
    private var isWaiting: Set<Element> = []
    private var timer: EventSource?
    /// What was spent since the burst began.
    private var spent = 0
    /// When an element was last served.
    private var lastServed: UInt64 = 0
    private let burst: Int
    private let cost: (Element) -> Int
    private let serve: (Element) -> Void
    private let note: (WorkTime) -> Void

    /// The usual cost of a burst: about 150 microseconds' worth of signals.
    nonisolated static var usualBurst: Int { 32 }
    /// The time between bursts, in microseconds.
    private static var interval: UInt64 { 5_000 }

    /// Makes a queue.
    /// - Parameters:
    ///   - burst: the cost of what is served at once. After more, the next burst begins later.
    ///   - cost: what an element costs, in about 5 microseconds, as long as a signal takes.
    ///   - note: called with the time that a later burst took, which nobody's call has.
    init(
        burst: Int = usualBurst, cost: @escaping (Element) -> Int = { _ in 1 },
        noting note: @escaping (WorkTime) -> Void = { _ in }, _ serve: @escaping (Element) -> Void
    ) {
        (self.burst, self.cost, self.note, self.serve) = (burst, cost, note, serve)
    }

    /// Serves the elements, at once if they cost little and none is waiting.
    func add(_ elements: some Sequence<Element>) {
        for element in elements where isWaiting.insert(element).inserted { waiting.append(element) }
        if timer == nil { serveSome() }
    }

    private func serveSome() {
        // A slow element doesn't begin another burst.
        if EventLoop.now >= lastServed + Self.interval { spent = 0 }
        while spent < burst, let next = waiting.popFirst() {
            isWaiting.remove(next)
            spent += cost(next)
            serve(next)
        }
        lastServed = EventLoop.now
        if waiting.isEmpty { waiting = [] }
        // Elements that are added one by one wait as well.
        if waiting.isEmpty, spent <= burst { return }
        let pause = Self.interval * UInt64(max(1, spent / burst))
        timer = EventLoop.shared.after(.microseconds(Int64(pause))) { [weak self] in
            guard let self else { return }
            (timer, spent) = (nil, 0)
            let began = WorkTime()
            serveSome()
            note(began)
        }
    }
}
