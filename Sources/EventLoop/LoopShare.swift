// SPDX-License-Identifier: Apache-2.0

/// A share of the loop's time: a fifth in the long run, and 20 ms at once. A user who takes more leaves the loop to
/// others for a while.
package struct LoopShare: Sendable {
    /// How much may be taken at once, in microseconds. Others hardly notice less.
    package static let allowance: UInt64 = 20_000
    /// How many times as long as what was taken the rest afterwards is.
    package static let rest: UInt64 = 4

    /// What was taken and not granted again, and when that was counted, in microseconds.
    private var taken: UInt64 = 0
    private var counted: UInt64 = 0

    /// Makes a share of which nothing is taken.
    package init() {}

    /// Returns what was taken and not granted again, in microseconds.
    /// - Parameter now: the time on the loop's clock.
    package func missing(_ now: UInt64) -> UInt64 { taken - min(taken, (now - counted) / (Self.rest + 1)) }

    /// Takes time.
    /// - Parameters:
    ///   - now: the time on the loop's clock.
    ///   - microseconds: how much.
    /// - Returns: what has been taken so far, if a rest is due that makes up for it; otherwise `nil`.
    package mutating func take(_ now: UInt64, _ microseconds: UInt64) -> UInt64? {
        (taken, counted) = (missing(now) + microseconds, now)
        guard taken >= Self.allowance else { return nil }
        defer { taken = 0 }
        return taken
    }
}
