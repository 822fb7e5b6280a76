// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Synchronization

/// A few threads for work that waits for a disk or another machine, or that takes long: started when there is some, and
/// ended when there was none for a moment, so that idle accounts have none.
///
/// Each ``WorkThread`` gives its work to a pool, which takes one piece of each in turn. What can block for hours, as a
/// mount whose server is gone, has a pool of its own, so that it holds up nothing else. There, the work of one owner has
/// two threads at most: a user's mount may never answer, and the user may sign in again and again.
///
/// Not a dispatch queue: the threads of its pool are looked after every second once there was one, and a service that has
/// nothing to do should not wake up. Nor may a service set the priorities that the pool gives its threads.
package final class WorkPool: Sendable {
    /// For the databases of users, on this machine's disk.
    package static let disk = WorkPool(threads: 8)
    /// For folders that users have chosen, which may be anywhere.
    package static let folders = WorkPool(threads: 24, perOwner: 2)
    /// For what takes the processor's time alone.
    package static let decoding = WorkPool(threads: 4)

    private let limit: Int
    /// Threads that one owner's work may have at a time.
    private let ownerLimit: Int
    /// How many seconds a thread waits for more work.
    private let patience: Double
    private let startThread: @Sendable (WorkPool) -> Bool
    private let state = Mutex(State())
    // A semaphore is there for threads to share.
    private nonisolated(unsafe) let hasMore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    private struct State {
        /// Those that have work which no thread has taken, in their order.
        var ready: [WorkThread] = []
        var threads = 0
        /// Threads that wait and were not woken yet.
        var idle = 0
        /// How many threads work for each owner.
        var working: [UInt32: Int] = [:]

        /// The first queue whose owner may have a thread more.
        func next(perOwner limit: Int) -> Int? {
            ready.firstIndex { $0.owner.map { working[$0, default: 0] < limit } ?? true }
        }

        /// Takes that queue, whose turn begins.
        mutating func take(perOwner limit: Int) -> WorkThread? {
            guard let index = next(perOwner: limit) else { return nil }
            let queue = ready.remove(at: index)
            if let owner = queue.owner { working[owner, default: 0] += 1 }
            return queue
        }

        /// Notes that a queue's turn is over.
        mutating func release(_ queue: WorkThread) {
            guard let owner = queue.owner, let count = working[owner] else { return }
            working[owner] = count > 1 ? count - 1 : nil
        }
    }

    private enum Need { case nothing, wakeUp, thread }

    /// A pool of at most so many threads, none of which is there yet.
    ///
    /// - Parameters:
    ///   - ownerLimit: how many of them one owner's work may have at a time; all if `nil`.
    ///   - patience: how many seconds a thread waits for more work: longer than a disk or a server nearby takes to answer,
    ///     since the work of a sync cycle comes in pieces.
    package convenience init(threads: Int, perOwner ownerLimit: Int? = nil, patience: Double = 0.25) {
        self.init(threads: threads, perOwner: ownerLimit, patience: patience) { $0.start() }
    }

    /// A pool that starts its threads in another way.
    init(
        threads: Int, perOwner ownerLimit: Int? = nil, patience: Double = 0.25,
        start: @escaping @Sendable (WorkPool) -> Bool
    ) {
        (limit, self.ownerLimit, self.patience, startThread) = (threads, ownerLimit ?? threads, patience, start)
        sem_init(hasMore, 0, 0)
    }

    deinit {
        sem_destroy(hasMore)
        hasMore.deallocate()
    }

    /// Notes that a queue has work.
    func add(_ queue: WorkThread) {
        let need = state.withLock { state -> Need in
            state.ready.append(queue)
            if state.idle > 0 {
                state.idle -= 1
                return .wakeUp
            }
            guard state.threads < limit else { return .nothing }
            state.threads += 1
            return .thread
        }
        switch need {
        case .nothing: break
        case .wakeUp: sem_post(hasMore)
        case .thread: if !startThread(self) { withoutThread() }
        }
    }

    private func start() -> Bool {
        let argument = Unmanaged.passRetained(self).toOpaque()
        var thread = pthread_t()
        let result = pthread_create(
            &thread, nil,
            { argument in
                var signals = sigset_t()
                sigfillset(&signals)
                pthread_sigmask(SIG_BLOCK, &signals, nil)
                if let argument { Unmanaged<WorkPool>.fromOpaque(argument).takeRetainedValue().runAll() }
                return nil
            }, argument)
        if result == 0 {
            pthread_detach(thread)
        } else {
            Unmanaged<WorkPool>.fromOpaque(argument).release()
        }
        return result == 0
    }

    /// Leaves the work to the threads that there are. Where there are none, late is better than never: the caller works,
    /// and is counted as one until nothing is left.
    private func withoutThread() {
        while let queue = nextWithoutThread() { runOne(of: queue) }
    }

    private func nextWithoutThread() -> WorkThread? {
        state.withLock { state in
            if state.threads == 1, let queue = state.take(perOwner: ownerLimit) { return queue }
            state.threads -= 1
            return nil
        }
    }

    private func runAll() {
        while true {
            while let queue = next() { runOne(of: queue) }
            if !waitForMore() { return }
        }
    }

    private func runOne(of queue: WorkThread) {
        let hasMore = queue.runOne()
        state.withLock { state in
            state.release(queue)
            if hasMore { state.ready.append(queue) }
        }
    }

    /// The queue whose turn it is.
    private func next() -> WorkThread? {
        state.withLock { $0.take(perOwner: ownerLimit) }
    }

    /// - Returns: false if nothing came, and this thread ends.
    private func waitForMore() -> Bool {
        let hasWork = state.withLock { state in
            let hasWork = state.next(perOwner: ownerLimit) != nil
            if !hasWork { state.idle += 1 }
            return hasWork
        }
        if hasWork || hasBeenWoken() { return true }
        let isOver = state.withLock { state in
            guard state.idle > 0 else { return false }
            state.idle -= 1
            state.threads -= 1
            return true
        }
        // All that wait are about to be woken, this one too.
        if !isOver { while sem_wait(hasMore) != 0 {} }
        return !isOver
    }

    private func hasBeenWoken() -> Bool {
        var end = timespec()
        // On a clock that may be set: the thread then ends sooner or later, which does no harm.
        clock_gettime(CLOCK_REALTIME, &end)
        let nanoseconds = end.tv_nsec + Int(patience * 1e9)
        (end.tv_sec, end.tv_nsec) = (end.tv_sec + nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000)
        while sem_timedwait(hasMore, &end) != 0 {
            if errno != EINTR { return false }
        }
        return true
    }
}
