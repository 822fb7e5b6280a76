// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// Something that threads wait for, for a limited time, and that happens once.
final class Gate: @unchecked Sendable {
    // @unchecked because the condition is the lock of what is beside it.
    private let condition = NSCondition()
    private var outcome: Bool?

    /// Lets everybody through, now and later; the first time counts.
    func open(_ outcome: Bool = true) {
        condition.withLock {
            self.outcome = self.outcome ?? outcome
            condition.broadcast()
        }
    }

    /// Waits until it is open.
    ///
    /// - Returns: what it was opened with; `nil` if the time was over first.
    func wait(atMost seconds: TimeInterval) -> Bool? {
        let end = Date(timeIntervalSinceNow: seconds)
        return condition.withLock {
            while outcome == nil, condition.wait(until: end) {}
            return outcome
        }
    }
}
