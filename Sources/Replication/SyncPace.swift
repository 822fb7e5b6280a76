// SPDX-License-Identifier: Apache-2.0

/// How often the service polls and uploads, as far as an administrator can set it; see ubiquitous-stored.conf(5).
public struct SyncPace: Equatable, Sendable {
    /// How long a change waits for others before it is uploaded; `nil` leaves it to the backend.
    public var coalescing: Duration?
    /// The interval of polls while there is activity and a client subscribes, for remotes without hints.
    public var shortestPoll: Duration = .seconds(5)
    /// The interval of polls without activity or subscribers; at least ``shortestPoll``.
    public var longestPoll: Duration = .seconds(300)
    /// The longest interval of polls while the user is present.
    public var presentPoll: Duration = .seconds(30)
    /// The interval of polls while the user isn't logged in, at least ``longestPoll``; zero means no polls.
    public var absentPoll: Duration = .seconds(900)
    /// The shortest interval of polls, and of uploads, on a metered network and while saving power; zero is no limit.
    public var sparingPace: Duration = .seconds(900)

    /// Makes the default pace.
    public init() {}

    /// The shortest interval of polls, in microseconds.
    var shortestInterval: UInt64 { shortestPoll.microseconds }

    /// The longest interval of polls, in microseconds; `nil` means no polls.
    func longestInterval(_ presence: SyncCircumstances.Presence) -> UInt64? {
        let longest = max(longestPoll.microseconds, shortestInterval)
        return switch presence {
        case .present: max(min(longest, presentPoll.microseconds), shortestInterval)
        case .away, .unknown: longest
        case .absent: absentPoll == .zero ? nil : max(longest, absentPoll.microseconds)
        }
    }

    /// The shortest interval of polls and of uploads that the circumstances allow, in microseconds.
    func rest(_ circumstances: SyncCircumstances) -> UInt64 {
        circumstances.isSparing ? sparingPace.microseconds : 0
    }
}

extension Duration {
    /// Whole microseconds, the unit of a schedule's clock.
    var microseconds: UInt64 {
        UInt64(max(0, components.seconds)) * 1_000_000 + UInt64(max(0, components.attoseconds / 1_000_000_000_000))
    }
}
