// SPDX-License-Identifier: Apache-2.0

internal import Replication

/// Runs an actor on a thread of its own. A mount whose server is gone blocks whoever touches it, for hours perhaps, and
/// to read megabytes takes a while: that must be none of the few threads that everything else shares.
final class ThreadExecutor: SerialExecutor {
    private let thread = WorkThread()

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        thread.run { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
