// SPDX-License-Identifier: Apache-2.0

/// What decides how often a remote is polled, besides the remote: whether the user is present, and what the machine is
/// to save.
public struct SyncCircumstances: Equatable, Sendable {
    /// Whether the user is present.
    public var presence = Presence.unknown
    /// The network is paid for by what goes over it.
    public var isMetered = false
    /// The machine is to save power.
    public var savesPower = false

    /// Whether the user is present, as far as the machine's sessions tell.
    public enum Presence: Sendable {
        /// It is unknown.
        case unknown
        /// At the machine: a session is active, and neither idle nor locked.
        case present
        /// Logged in, and not at the machine.
        case away
        /// Not logged in.
        case absent
    }

    /// Nothing is known.
    public init() {}

    /// Whether looks and uploads are to be fewer.
    public var isSparing: Bool { isMetered || savesPower }
}
