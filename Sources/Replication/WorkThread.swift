// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Work that is done in its order, one piece at a time, by a thread of a ``WorkPool`` that it has as long as there is
/// some.
package final class WorkThread: Sendable {
    private let pool: WorkPool
    /// Whose work it is, where an owner may have so many threads only.
    let owner: UInt32?
    private let state = Mutex(State())

    private struct State {
        var work: [@Sendable () -> Void] = []
        /// The pool has been told, and has not found the end of the work since.
        var isScheduled = false
    }

    /// Nothing to do yet.
    /// - Parameter owner: the user whose work it is, where a pool bounds that.
    package init(_ pool: WorkPool, owner: UInt32? = nil) { (self.pool, self.owner) = (pool, owner) }

    /// Does something after what was asked for before.
    package func run(_ work: @escaping @Sendable () -> Void) {
        let isNew = state.withLock { state in
            state.work.append(work)
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        if isNew { pool.add(self) }
    }

    /// Does something after what was asked for before.
    /// - Returns: what it returns.
    package func result<Result: Sendable>(
        of work: @escaping @Sendable () throws -> Result
    ) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            run { continuation.resume(with: .init(catching: work)) }
        }
    }

    /// Waits until all that was asked for before is done.
    package func finish() async {
        await withCheckedContinuation { continuation in run { continuation.resume() } }
    }

    /// Does the next piece, on a thread of the pool.
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
