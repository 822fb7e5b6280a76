// SPDX-License-Identifier: Apache-2.0

internal import Dispatch

/// Runs an actor on a queue of its own. A mount whose server is gone blocks whoever touches it, for hours perhaps:
/// that must be none of the few threads that everything else shares.
final class QueueExecutor: SerialExecutor {
    private let queue: DispatchQueue

    init(label: String) {
        queue = DispatchQueue(label: label, qos: .utility)
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
