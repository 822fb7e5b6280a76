// SPDX-License-Identifier: Apache-2.0

/// A token bucket: it holds a number of tokens at most, and gains one per interval of a monotonic clock.
package struct TokenBucket: Equatable, Sendable {
    private let capacity: UInt64
    private let interval: UInt64
    /// When the bucket became full, or will; taking a token delays it.
    private var fullAt: UInt64 = 0

    /// Makes a full bucket.
    /// - Parameters:
    ///   - capacity: at least 1.
    ///   - interval: in microseconds.
    package init(capacity: UInt64, interval: UInt64) {
        self.capacity = capacity
        self.interval = interval
    }

    /// The earliest time at which there is a token: now, or later.
    package func nextToken(_ now: UInt64) -> UInt64 {
        let spare = (capacity - 1) * interval
        return max(now, fullAt > spare ? fullAt - spare : 0)
    }

    /// The number of tokens that were taken and not gained again.
    package func missing(_ now: UInt64) -> UInt64 { fullAt > now ? (fullAt - now) / interval : 0 }

    /// Takes tokens. Tokens that are missing must come first, so the next one comes later.
    package mutating func take(_ now: UInt64, _ count: UInt64 = 1) {
        fullAt = max(fullAt, now) + count * interval
    }
}
