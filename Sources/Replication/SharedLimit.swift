// SPDX-License-Identifier: Apache-2.0

/// How much each of many may hold of something that they share, as memory.
///
/// Each may hold at most half of what all others leave, so that all of them together stay within the limit, however many
/// they are and in whichever order they come. Those that hold hardly anything have a reserve beyond it.
package struct SharedLimit: Sendable {
    /// What all may hold together.
    private let limit: Int
    /// What those that hold hardly anything may hold together beyond the limit.
    private let reserve: Int
    /// What hardly anything is.
    private static let floor = 1 << 20

    package init(_ limit: Int, reserve: Int) { (self.limit, self.reserve) = (limit, reserve) }

    /// Whether one may hold so much, beside what all others hold.
    package func allows(_ own: Int, beside others: Int) -> Bool {
        own <= Self.floor && others + own <= limit + reserve || own <= (limit - others) / 2
    }
}
