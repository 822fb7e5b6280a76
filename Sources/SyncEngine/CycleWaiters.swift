// SPDX-License-Identifier: Apache-2.0

internal import Replication

/// The calls that wait for a sync cycle to end.
struct CycleWaiters {
    typealias Waiter = CheckedContinuation<Result<Void, RemoteError>, Never>

    /// So many may wait for the next cycle.
    static let most = 256

    /// Those that came during a cycle, or before the first: they wait for one that begins later.
    private var waiting: [Waiter] = []
    /// Those that the cycle under way will answer.
    private var served: [Waiter] = []

    /// Whether no call waits for the next cycle.
    var isEmpty: Bool { waiting.isEmpty }

    var isFull: Bool { waiting.count >= Self.most }

    mutating func add(_ waiter: Waiter) { waiting.append(waiter) }

    /// A cycle begins, and answers all that wait.
    mutating func beginCycle() { (served, waiting) = (waiting, []) }

    /// The cycle has ended with a result; `nil` if it was interrupted, and the next one answers in its place.
    mutating func endCycle(_ result: Result<Void, RemoteError>?) {
        if let result { Self.answer(served, result) } else { waiting = served + waiting }
        served = []
    }

    /// There is no next cycle for the time being.
    mutating func failWaiting(_ error: RemoteError) {
        Self.answer(waiting, .failure(error))
        waiting = []
    }

    /// Neither the cycle under way nor a next one will answer.
    mutating func failAll(_ error: RemoteError) {
        endCycle(.failure(error))
        failWaiting(error)
    }

    private static func answer(_ waiters: [Waiter], _ result: Result<Void, RemoteError>) {
        for waiter in waiters { waiter.resume(returning: result) }
    }
}
