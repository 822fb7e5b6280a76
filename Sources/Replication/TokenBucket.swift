// SPDX-License-Identifier: Apache-2.0

/// At most so many tokens at once, and one more in each interval, by a clock that doesn't go back.
package struct TokenBucket: Equatable, Sendable {
    private let capacity: UInt64
    private let interval: UInt64
    /// When the bucket was, or will be, full; each token that is taken puts it off.
    private var fullAt: UInt64 = 0

    /// A full one.
    /// - Parameters:
    ///   - capacity: 1 and more.
    ///   - interval: in microseconds.
    package init(capacity: UInt64, interval: UInt64) {
        self.capacity = capacity
        self.interval = interval
    }

    /// When there is a token: now, or later.
    package func nextToken(_ now: UInt64) -> UInt64 {
        let spare = (capacity - 1) * interval
        return max(now, fullAt > spare ? fullAt - spare : 0)
    }

    /// Takes tokens. If there are fewer, the next one comes so much later.
    package mutating func take(_ now: UInt64, _ count: UInt64 = 1) {
        fullAt = max(fullAt, now) + count * interval
    }
}
