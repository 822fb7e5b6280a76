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
    private let serve: (Element) -> Void

    /// How many elements are served at once: about 150 microseconds' worth of signals.
    nonisolated static var burst: Int { 32 }
    /// The time between bursts.
    nonisolated static var interval: Duration { .milliseconds(5) }

    init(_ serve: @escaping (Element) -> Void) { self.serve = serve }

    /// Serves the elements, at once if they are few and none is waiting.
    func add(_ elements: some Sequence<Element>) {
        for element in elements where isWaiting.insert(element).inserted { waiting.append(element) }
        if timer == nil { serveSome() }
    }

    private func serveSome() {
        let next = waiting.prefix(Self.burst)
        waiting.removeFirst(next.count)
        isWaiting.subtract(next)
        for element in next { serve(element) }
        if waiting.isEmpty { return waiting = [] }
        timer = EventLoop.shared.after(Self.interval) { [weak self] in
            self?.timer = nil
            self?.serveSome()
        }
    }
}
