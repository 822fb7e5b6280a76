// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Runs the jobs of tasks on the thread that asks for it, in an order that a seed decides.
///
/// Tasks that prefer it bring the actors that they call along (SE-0417), so all that is asynchronous in the engine is
/// under one order.
final class SeededExecutor: TaskExecutor, @unchecked Sendable {
    // Because everything that has to do with it happens on one thread.
    private var jobs: [UnownedJob] = []
    private var work: [@Sendable () -> Void] = []
    private var chance: Chance
    /// First come, first served: for scenarios, which people read.
    private let isOrderly: Bool

    init(seed: UInt64, isOrderly: Bool) {
        chance = Chance(seed: seed, stream: 7)
        self.isOrderly = isOrderly
    }

    func enqueue(_ job: consuming ExecutorJob) {
        jobs.append(UnownedJob(job))
    }

    /// Does something, when its turn has come.
    func run(_ work: @escaping @Sendable () -> Void) {
        self.work.append(work)
    }

    /// Runs what is ready, and what that makes ready.
    func drain() {
        while !jobs.isEmpty || !work.isEmpty {
            let index = isOrderly ? 0 : chance.below(jobs.count + work.count)
            if index < jobs.count {
                jobs.remove(at: index).runSynchronously(on: asUnownedTaskExecutor())
            } else {
                work.remove(at: index - jobs.count)()
            }
        }
    }

    /// For actors that run on an executor of their own.
    var serial: any SerialExecutor { Serial(base: self) }

    private final class Serial: SerialExecutor {
        private let base: SeededExecutor

        init(base: SeededExecutor) { self.base = base }

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            base.run { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
        }
    }

    /// Starts a task here.
    func start(_ body: sending @escaping () async -> Void) {
        Task(executorPreference: self) { await body() }
    }
}
