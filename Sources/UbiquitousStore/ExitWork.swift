// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Synchronization

/// Work that may remain for the end of the process.
package final class ExitWork: Sendable {
    private static let due = Mutex<[ExitWork]>([])

    private let work: @Sendable () -> Void

    /// - Parameter work: waits for a bounded time at most.
    package init(_ work: @escaping @Sendable () -> Void) { self.work = work }

    /// Has the work done at the end of the process.
    ///
    /// The app's exit handlers that were registered before may come later than the work, and make it due again.
    package func becomeDue() {
        let isFirst = Self.due.withLock { due in
            if due.contains(where: { $0 === self }) { return false }
            due.append(self)
            return due.count == 1
        }
        if isFirst { atexit { ExitWork.doAll() } }
    }

    private static func doAll() {
        let works = due.withLock { due in
            defer { due = [] }
            return due
        }
        for work in works { work.work() }
    }
}
