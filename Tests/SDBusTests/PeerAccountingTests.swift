// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Testing

@testable import SDBus

/// Others decide how long the answers are, so there are few.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct PeerAccountingTests {
    private struct Refused: Error {}

    @Test func `questions that come during another one are asked together, after it`() async throws {
        var asked: [Set<String>] = []
        var answer: CheckedContinuation<Void, Never>?
        let accounting = PeerAccounting { names in
            asked.append(names)
            await withCheckedContinuation { answer = $0 }
            return (["a": asked.count, "b": 10], 1)
        }
        let first = Task { try await accounting.bytes(of: "a") }
        try await eventually { answer != nil }
        let others = ["a", "b", "unknown"].map { name in Task { try await accounting.bytes(of: name) } }
        for _ in 0..<10 { await EventLoop.pause(.milliseconds(1)) }
        #expect(asked == [["a"]])
        answer.take()?.resume()
        #expect(try await first.value == 1)
        try await eventually { answer != nil }
        answer.take()?.resume()
        #expect(try await others[0].value == 2)
        #expect(try await others[1].value == 10)
        #expect(try await others[2].value == nil)
        #expect(asked == [["a"], ["a", "b", "unknown"]])
    }

    @Test func `everybody who waits is told a failure, and the next question is asked`() async throws {
        var attempts = 0
        let accounting = PeerAccounting { _ in
            attempts += 1
            if attempts == 1 { throw Refused() }
            return (["a": 1], 1)
        }
        await #expect(throws: Refused.self) { try await accounting.bytes(of: "a") }
        #expect(try await accounting.bytes(of: "a") == 1)
    }
}
