// SPDX-License-Identifier: Apache-2.0

package import Replication

/// Runs an actor on threads of a pool, so that it blocks neither the thread that answers calls nor the few that
/// everything else shares. Access to a mount whose server is gone may block for hours; reading megabytes takes a while.
package final class ThreadExecutor: SerialExecutor {
    private let thread: WorkThread

    /// Makes an executor, which has a thread only while its actor has something to do.
    /// - Parameters:
    ///   - pool: the pool of threads; the one for folders if the actor accesses a folder.
    ///   - owner: the user whose folder it is.
    package init(_ pool: WorkPool = .decoding, owner: UInt32? = nil) { thread = WorkThread(pool, owner: owner) }

    /// The mount point of the folder's file system, once it is known.
    package var place: String? {
        get { thread.place }
        set { thread.place = newValue }
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        thread.run { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
