// SPDX-License-Identifier: Apache-2.0

package import Dispatch
internal import Synchronization

/// A one-time event that threads can wait for with a timeout.
package final class Gate: Sendable {
    private let outcome = Mutex<Bool?>(nil)
    // A group waits by the monotonic clock. NSCondition waits by the wall clock, which may be set meanwhile.
    private let closed = DispatchGroup()

    /// Makes a closed gate.
    package init() {
        closed.enter()
    }

    deinit {
        // Releasing a group that still has members crashes the process.
        open()
    }

    /// Opens the gate for all present and later waiters. Only the first call has an effect.
    package func open(_ outcome: Bool = true) {
        let isFirst = self.outcome.withLock { present in
            defer { present = present ?? outcome }
            return present == nil
        }
        if isFirst { closed.leave() }
    }

    /// Waits until the gate is open.
    ///
    /// - Returns: the outcome it was opened with; `nil` after the timeout.
    package func wait(atMost seconds: Double) -> Bool? { wait(until: .now() + seconds) }

    /// Waits until the gate is open, or until a time by the monotonic clock. The result is that of ``wait(atMost:)``.
    package func wait(until end: DispatchTime) -> Bool? {
        _ = closed.wait(timeout: end)
        return outcome.withLock { $0 }
    }
}
