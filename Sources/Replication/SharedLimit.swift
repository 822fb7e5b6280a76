// SPDX-License-Identifier: Apache-2.0

/// How much of a shared resource, such as memory, each of many holders may take.
///
/// Each may hold at most half of what all others leave. So all together stay within the limit, however many there are
/// and in whatever order they come. Holders of at most 1 MiB share a reserve beyond the limit.
package struct SharedLimit: Sendable {
    /// The limit for all together, without the reserve.
    private let limit: Int
    /// What small holders may hold together beyond the limit.
    private let reserve: Int
    /// The most that a small holder holds.
    private static let floor = 1 << 20

    package init(_ limit: Int, reserve: Int) { (self.limit, self.reserve) = (limit, reserve) }

    /// Whether one may hold `own` while all others hold `others`.
    package func allows(_ own: Int, beside others: Int) -> Bool {
        own <= Self.floor && others + own <= limit + reserve || own <= (limit - others) / 2
    }
}
