// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Synchronization

/// Something that threads wait for, for a limited time, and that happens once.
final class Gate: Sendable {
    private let outcome = Mutex<Bool?>(nil)
    // A group waits by the monotonic clock. NSCondition waits by the wall clock, which may be set meanwhile.
    private let closed = DispatchGroup()

    init() {
        closed.enter()
    }

    deinit {
        // A group that is released before everybody left ends the process.
        open()
    }

    /// Lets everybody through, now and later; the first time counts.
    func open(_ outcome: Bool = true) {
        let isFirst = self.outcome.withLock { present in
            defer { present = present ?? outcome }
            return present == nil
        }
        if isFirst { closed.leave() }
    }

    /// Waits until it is open.
    ///
    /// - Returns: what it was opened with; `nil` if the time was over first.
    func wait(atMost seconds: Double) -> Bool? {
        _ = closed.wait(timeout: .now() + seconds)
        return outcome.withLock { $0 }
    }
}
