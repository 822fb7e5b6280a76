// SPDX-License-Identifier: Apache-2.0

import SDBus
import Testing

@testable import StoreDaemon

@BusActor
@Suite(.timeLimit(.minutes(30)))
struct PacedQueueTests {
    private let burst = PacedQueue<Int>.usualBurst

    @Test func `few are served at once, and in order`() {
        var served: [Int] = []
        let queue = PacedQueue<Int> { served.append($0) }
        queue.add(0..<burst / 2)
        queue.add(0..<burst / 2)
        #expect(served == Array(0..<burst / 2) + Array(0..<burst / 2))
    }

    @Test func `of what costs much one is served at once, also if they are added one by one`() async throws {
        var served: [Int] = []
        let queue = PacedQueue<Int>(burst: 10, cost: { _ in 100 }) { served.append($0) }
        let start = EventLoop.now
        for number in 0..<4 { queue.add([number]) }
        #expect(served == [0])
        try await eventually { served.count == 4 }
        // Each leaves ten times as long to others as a burst.
        #expect(served == [0, 1, 2, 3] && EventLoop.now - start >= 3 * 50_000)
    }

    @Test func `slow ones that are added one by one aren't served at once for being slow`() async throws {
        var served: [Int] = []
        var noted = 0
        let queue = PacedQueue<Int>(burst: 10, cost: { _ in 4 }, noting: { _ in noted += 1 }) {
            served.append($0)
            let end = EventLoop.now + 10_000
            while EventLoop.now < end {}
        }
        let start = EventLoop.now
        for number in 0..<8 { queue.add([number]) }
        // On a busy machine, this takes so long that it is several bursts.
        let isQuick = EventLoop.now - start < 40_000
        if isQuick { #expect(served == [0, 1, 2]) }
        try await eventually { served.count == 8 }
        if isQuick { #expect(noted >= 2) }
    }

    @Test func `the rest of many are served later, each once`() async throws {
        var served: [Int] = []
        let queue = PacedQueue<Int> { served.append($0) }
        queue.add(0..<3 * burst)
        #expect(served == Array(0..<burst))
        // All but the first burst are in the queue already.
        queue.add(0..<3 * burst)
        try await eventually { served.count == 4 * burst }
        #expect(served == Array(0..<3 * burst) + Array(0..<burst))
    }

    @Test func `each is served next after at most all others, however often they are added`() async throws {
        var served: [Int] = []
        let queue = PacedQueue<Int> { served.append($0) }
        var additions: [Int] = []
        for _ in 0..<200 {
            additions.append(served.count)
            queue.add(0..<4 * burst)
            await Task.yield()
        }
        try await eventually { served.count >= (additions.last ?? 0) + 4 * burst }
        for start in additions { #expect(Set(served[start..<start + 4 * burst]).count == 4 * burst) }
    }
}

/// Waits until a condition holds.
@BusActor
func eventually(_ condition: () -> Bool) async throws {
    while !condition() { try await Task.sleep(for: .milliseconds(1)) }
}
