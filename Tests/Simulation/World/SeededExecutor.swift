// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Runs the jobs of tasks on the calling thread, in an order that a seed decides.
///
/// Actors that a task calls run on the task's preferred executor as well (SE-0417), so the seed orders all asynchronous
/// code of the engine.
final class SeededExecutor: TaskExecutor, @unchecked Sendable {
    // Safe because everything that touches it happens on one thread.
    private var jobs: [UnownedJob] = []
    private var work: [@Sendable () -> Void] = []
    private var chance: Chance
    /// Whether jobs run in the order of their arrival, for stories, which people read.
    private let isOrderly: Bool

    init(seed: UInt64, isOrderly: Bool) {
        chance = Chance(seed: seed, stream: 7)
        self.isOrderly = isOrderly
    }

    func enqueue(_ job: consuming ExecutorJob) {
        jobs.append(UnownedJob(job))
    }

    /// Runs a closure when its turn comes.
    func run(_ work: @escaping @Sendable () -> Void) {
        self.work.append(work)
    }

    /// Runs everything that is ready, and everything that becomes ready by that.
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

    /// A serial executor on top of this one, for actors that run on their own executor.
    var serial: any SerialExecutor { Serial(base: self) }

    private final class Serial: SerialExecutor {
        private let base: SeededExecutor

        init(base: SeededExecutor) { self.base = base }

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            base.run { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
        }
    }

    /// Starts a task on this executor.
    func start(_ body: sending @escaping () async -> Void) {
        Task(executorPreference: self) { await body() }
    }
}
