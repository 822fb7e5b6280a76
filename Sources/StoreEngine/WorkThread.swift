// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Synchronization

/// A thread for work that waits for a disk or for a folder on another machine, started when there is some and ended when
/// there is none.
///
/// Not a dispatch queue: the threads of its pool are looked after every second once there was one, and a service
/// that has nothing to do should not wake up. Nor may a service set the priorities that the pool gives its threads.
package final class WorkThread: Sendable {
    private let state = Mutex(State())

    private struct State {
        var work: [@Sendable () -> Void] = []
        var isRunning = false
    }

    /// A thread that isn't there yet.
    package init() {}

    /// Does something after what was asked for before.
    package func run(_ work: @escaping @Sendable () -> Void) {
        let needsThread = state.withLock { state in
            state.work.append(work)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        guard needsThread, !start() else { return }
        // Late is better than never: the caller waits where no thread is to be had.
        runAll()
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
        while let work = next() { work() }
    }

    private func next() -> (@Sendable () -> Void)? {
        state.withLock { state in
            if state.work.isEmpty {
                state.isRunning = false
                return nil
            }
            return state.work.removeFirst()
        }
    }
}
