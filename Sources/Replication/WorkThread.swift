// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Synchronization

/// A thread for work that waits for a disk or for another machine, started when there is some and ended when there was
/// none for a moment.
///
/// Not a dispatch queue: the threads of its pool are looked after every second once there was one, and a service
/// that has nothing to do should not wake up. Nor may a service set the priorities that the pool gives its threads.
package final class WorkThread: Sendable {
    private let state = Mutex(State())
    // A semaphore is there for threads to share.
    private nonisolated(unsafe) let hasMore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    /// Longer than a disk or a server nearby takes to answer: the work of a pass comes in pieces.
    private static let patience = 0.25

    private struct State {
        var work: [@Sendable () -> Void] = []
        var isRunning = false
    }

    /// A thread that isn't there yet.
    package init() { sem_init(hasMore, 0, 0) }

    deinit {
        sem_destroy(hasMore)
        hasMore.deallocate()
    }

    /// Does something after what was asked for before.
    package func run(_ work: @escaping @Sendable () -> Void) {
        let needsThread = state.withLock { state in
            state.work.append(work)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if !needsThread {
            sem_post(hasMore)
        } else if !start() {
            // Late is better than never: the caller waits where no thread is to be had.
            while let work = next(isLast: true) { work() }
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
                if let argument { Unmanaged<WorkThread>.fromOpaque(argument).takeRetainedValue().runAll() }
                return nil
            }, argument)
        if result != 0 {
            Unmanaged<WorkThread>.fromOpaque(argument).release()
            return false
        }
        pthread_detach(thread)
        return true
    }

    private func runAll() {
        while true {
            while let work = next(isLast: false) { work() }
            if waitForMore() { continue }
            guard let work = next(isLast: true) else { return }
            work()
        }
    }

    /// - Parameter isLast: whether the thread ends if there is nothing.
    private func next(isLast: Bool) -> (@Sendable () -> Void)? {
        state.withLock { state in
            if state.work.isEmpty {
                if isLast { state.isRunning = false }
                return nil
            }
            return state.work.removeFirst()
        }
    }

    /// - Returns: false if nothing came.
    private func waitForMore() -> Bool {
        var end = timespec()
        // By the clock that may be set: then the thread is there for shorter or longer, which harms nobody.
        clock_gettime(CLOCK_REALTIME, &end)
        let nanoseconds = end.tv_nsec + Int(Self.patience * 1e9)
        (end.tv_sec, end.tv_nsec) = (end.tv_sec + nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000)
        return sem_timedwait(hasMore, &end) == 0 || errno == EINTR
    }
}
