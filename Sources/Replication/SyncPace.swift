// SPDX-License-Identifier: Apache-2.0

/// How often remotes are looked at and uploaded to, where it is for an administrator to say.
public struct SyncPace: Equatable, Sendable {
    /// How long a change waits for others before it is uploaded, be it the first; `nil`: as the backend has it.
    public var coalescing: Duration?
    /// How often a remote without hints is polled while something happens.
    public var shortestPoll: Duration = .seconds(5)
    /// How often it is polled when nothing happens or no client subscribes. Never less than ``shortestPoll``.
    public var longestPoll: Duration = .seconds(300)
    /// How often it is polled in any case while the user is present.
    public var presentPoll: Duration = .seconds(30)
    /// How often it is polled while the user isn't logged in, and not more often than ``longestPoll``; zero: not at
    /// all.
    public var absentPoll: Duration = .seconds(900)
    /// How often there are looks and uploads on a metered network and while power is saved; zero: as otherwise.
    public var sparingPace: Duration = .seconds(900)

    /// The usual pace.
    public init() {}

    /// The shortest time between two looks, in microseconds.
    var shortestInterval: UInt64 { shortestPoll.microseconds }

    /// The longest time between two looks, in microseconds; `nil`: there are none.
    func longestInterval(_ presence: SyncCircumstances.Presence) -> UInt64? {
        let longest = max(longestPoll.microseconds, shortestInterval)
        return switch presence {
        case .present: max(min(longest, presentPoll.microseconds), shortestInterval)
        case .away, .unknown: longest
        case .absent: absentPoll == .zero ? nil : max(longest, absentPoll.microseconds)
        }
    }

    /// The shortest time between two looks and between two uploads, in microseconds.
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
