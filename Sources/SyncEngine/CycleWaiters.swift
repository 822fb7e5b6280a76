// SPDX-License-Identifier: Apache-2.0

internal import Replication

/// The calls that wait for a sync cycle to end.
package struct CycleWaiters {
    typealias Waiter = CheckedContinuation<Result<Void, RemoteError>, Never>

    /// The number of calls that may wait for the next cycle, or for other long work on an account. All are answered at
    /// once.
    package static let most = 256
    /// The message of the error if there are more.
    package static let refusal = "\(most) calls are waiting for this account already. Try again later."

    /// The calls that came during a cycle, or before the first. They wait for one that begins later.
    private var waiting: [Waiter] = []
    /// The calls that the cycle under way will answer.
    private var served: [Waiter] = []

    /// Whether no call waits for the next cycle.
    var isEmpty: Bool { waiting.isEmpty }

    var isFull: Bool { waiting.count >= Self.most }

    mutating func add(_ waiter: Waiter) { waiting.append(waiter) }

    /// Notes that a cycle begins, which will answer all waiting calls.
    mutating func beginCycle() { (served, waiting) = (waiting, []) }

    /// Answers the calls that the cycle served. `nil`, for an interrupted cycle, leaves that to the next one.
    mutating func endCycle(_ result: Result<Void, RemoteError>?) {
        if let result { Self.answer(served, result) } else { waiting = served + waiting }
        served = []
    }

    /// Fails the waiting calls, because no cycle comes for the time being.
    mutating func failWaiting(_ error: RemoteError) {
        Self.answer(waiting, .failure(error))
        waiting = []
    }

    /// Fails all calls, because neither the cycle under way nor another one will answer them.
    mutating func failAll(_ error: RemoteError) {
        endCycle(.failure(error))
        failWaiting(error)
    }

    private static func answer(_ waiters: [Waiter], _ result: Result<Void, RemoteError>) {
        for waiter in waiters { waiter.resume(returning: result) }
    }
}
