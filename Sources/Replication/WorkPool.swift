// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Synchronization

/// A few threads for work that takes long, or that waits for a disk or another machine. Threads start when there is
/// work, and end soon after the last of it, so idle accounts have none.
///
/// Each ``WorkThread`` gives its work to a pool, which takes one piece of each in turn. Work that can block for hours,
/// for example on a mount whose server is gone, has a pool of its own, so that it delays nothing else. There, one
/// owner's work has at most two threads: a user's mount may never answer, and the user may sign in again and again.
///
/// It is no dispatch queue, because libdispatch wakes up every second to look after its pool, and sets its threads'
/// priorities, which the service's unit forbids.
package final class WorkPool: Sendable {
    /// For the databases of users, on this machine's disk.
    package static let disk = WorkPool(threads: 8)
    /// For folders that users have chosen, which may be anywhere.
    package static let folders = WorkPool(threads: 24, perOwner: 2)
    /// For work that takes only CPU time.
    package static let decoding = WorkPool(threads: 4)

    private let limit: Int
    /// The number of threads that one owner's work may have at a time.
    private let ownerLimit: Int
    /// How many seconds a thread waits for more work.
    private let patience: Double
    private let startThread: @Sendable (WorkPool) -> Bool
    private let state = Mutex(State())
    // A semaphore is there for threads to share.
    private nonisolated(unsafe) let hasMore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    private struct State {
        /// The queues with work that no thread has taken yet, in their order.
        var ready: [WorkThread] = []
        var threads = 0
        /// The number of waiting threads that were not woken yet.
        var idle = 0
        /// The number of threads that work for each owner.
        var working: [UInt32: Int] = [:]

        /// The first queue whose owner may have another thread.
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

    /// Makes a pool, without starting a thread.
    ///
    /// - Parameters:
    ///   - threads: the most threads at a time.
    ///   - ownerLimit: the most threads for one owner's work; `nil` means all.
    ///   - patience: how many seconds a thread waits for more work: longer than a disk or a nearby server takes to
    ///     answer, since the work of a sync cycle comes in pieces.
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

    /// Whether no thread works, and none has anything to do.
    package var isAtRest: Bool { state.withLock { $0.ready.isEmpty && $0.threads == $0.idle } }

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

    func start() -> Bool {
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

    /// Handles a thread that could not be started: the existing ones do the work. If there are none, another attempt
    /// comes later. The caller never does the work, since it may be the thread that answers calls.
    private func withoutThread() {
        let isAlone = state.withLock { state in
            state.threads -= 1
            return state.threads == 0 && !state.ready.isEmpty
        }
        guard isAlone else { return }
        let wait = Self.later.withLock(\.self)
        wait { self.startAgain() }
    }

    /// Starts a thread for work that waits for one.
    private func startAgain() {
        let isNeeded = state.withLock { state in
            guard state.threads == 0, !state.ready.isEmpty else { return false }
            state.threads = 1
            return true
        }
        if isNeeded, !startThread(self) { withoutThread() }
    }

    private static let later = Mutex<@Sendable (@escaping @Sendable () -> Void) -> Void>({ _ in })

    /// Sets what calls a closure a little later, without a thread for it: an event loop.
    package static func retry(by later: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) {
        self.later.withLock { $0 = later }
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
