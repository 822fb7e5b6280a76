// SPDX-License-Identifier: Apache-2.0

/// What decides how often a remote is polled, besides the remote itself: whether the user is present, and whether the
/// machine saves power or traffic.
public struct SyncCircumstances: Equatable, Sendable {
    /// Whether the user is present.
    public var presence = Presence.unknown
    /// Whether the network is metered.
    public var isMetered = false
    /// Whether the machine saves power.
    public var savesPower = false

    /// Whether the user is present, according to systemd-logind.
    public enum Presence: Sendable {
        /// Unknown, for example because there is no systemd-logind.
        case unknown
        /// At the machine: a session is active, and neither idle nor locked.
        case present
        /// Logged in, but not at the machine.
        case away
        /// Not logged in.
        case absent
    }

    /// Makes circumstances of which nothing is known.
    public init() {}

    /// Whether to poll and upload less often.
    public var isSparing: Bool { isMetered || savesPower }
}
