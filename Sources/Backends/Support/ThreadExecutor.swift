// SPDX-License-Identifier: Apache-2.0

package import Replication

/// Runs an actor on threads of a pool, away from the thread that answers calls and from the few that everything else
/// shares: a mount whose server is gone blocks whoever touches it, for hours perhaps, and to read megabytes takes a while.
package final class ThreadExecutor: SerialExecutor {
    private let thread: WorkThread

    /// An actor has a thread only while it has something to do.
    /// - Parameters:
    ///   - pool: the one of folders for what touches them.
    ///   - owner: the user whose folder it is.
    package init(_ pool: WorkPool = .decoding, owner: UInt32? = nil) { thread = WorkThread(pool, owner: owner) }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        thread.run { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
