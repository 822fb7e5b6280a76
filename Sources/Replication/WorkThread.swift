// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// A serial queue: its work is done in order, one piece at a time, by a thread of a ``WorkPool``.
package final class WorkThread: Sendable {
    private let pool: WorkPool
    /// The user whose work it is, if the pool limits the threads per owner.
    let owner: UInt32?
    private let state = Mutex(State())

    private struct State {
        var work: [@Sendable () -> Void] = []
        var place: String?
        /// Whether the pool knows that there is work.
        var isScheduled = false
    }

    /// Makes an empty queue.
    /// - Parameter owner: the user whose work it is, if the pool limits the threads per owner.
    package init(_ pool: WorkPool, owner: UInt32? = nil) { (self.pool, self.owner) = (pool, owner) }

    /// Where the work is done, if the pool limits the threads per place.
    package var place: String? {
        get { state.withLock(\.place) }
        set { state.withLock { $0.place = newValue } }
    }

    /// Queues work.
    package func run(_ work: @escaping @Sendable () -> Void) {
        let isNew = state.withLock { state in
            state.work.append(work)
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        if isNew { pool.add(self) }
    }

    /// Queues work, and returns its result.
    package func result<Value: Sendable, Failure: Error>(
        of work: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result: Result<Value, Failure> = await withCheckedContinuation { continuation in
            run { continuation.resume(returning: Result(catching: work)) }
        }
        return try result.get()
    }

    /// Returns when all work queued so far is done.
    package func finish() async {
        await withCheckedContinuation { continuation in run { continuation.resume() } }
    }

    /// Does the next piece of work, on a thread of the pool.
    /// - Returns: whether there is more.
    func runOne() -> Bool {
        let work = state.withLock { $0.work.isEmpty ? nil : $0.work.removeFirst() }
        work?()
        return state.withLock { state in
            state.isScheduled = !state.work.isEmpty
            return state.isScheduled
        }
    }
}
