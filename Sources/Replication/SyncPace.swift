// SPDX-License-Identifier: Apache-2.0

/// How often remotes are looked at and uploaded to, where it is for an administrator to say.
public struct SyncPace: Equatable, Sendable {
    /// How long the first change waits for others before it is uploaded; `nil`: as the backend has it.
    public var coalescing: Duration?
    /// How often a remote that tells of nothing is looked at while something happens.
    public var shortestPoll: Duration = .seconds(5)
    /// How often it is looked at when nothing happens, and when nobody subscribes. Never less than ``shortestPoll``.
    public var longestPoll: Duration = .seconds(300)

    /// The usual pace.
    public init() {}

    /// The shortest and the longest time between two looks, in microseconds.
    var polls: (shortest: UInt64, longest: UInt64) {
        let shortest = shortestPoll.microseconds
        return (shortest, max(longestPoll.microseconds, shortest))
    }
}

extension Duration {
    /// Whole microseconds, the unit of a schedule's clock.
    var microseconds: UInt64 {
        UInt64(max(0, components.seconds)) * 1_000_000 + UInt64(max(0, components.attoseconds / 1_000_000_000_000))
    }
}
