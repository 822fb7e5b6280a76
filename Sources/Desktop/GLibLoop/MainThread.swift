// SPDX-License-Identifier: Apache-2.0

internal import Dispatch

/// Runs tasks on the main queue, even those that are not the main actor's.
///
/// A task without this preference resumes on libdispatch's pool of threads before it returns to the main actor, and
/// from then on the pool wakes up every second.
package final class MainThread: TaskExecutor {
    private static let shared = MainThread()

    private init() {}

    /// Starts a task of the main actor that stays on the main thread.
    @discardableResult
    package static func task<Value: Sendable>(
        _ body: sending @escaping @MainActor () async -> Value
    ) -> Task<Value, Never> {
        Task(executorPreference: shared, operation: body)
    }

    /// Queues a job on the main queue.
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        DispatchQueue.main.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
