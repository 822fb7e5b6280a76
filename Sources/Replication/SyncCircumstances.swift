// SPDX-License-Identifier: Apache-2.0

/// What decides about how often a remote is looked at, besides the remote: where the person is, and what the machine is
/// to save.
public struct SyncCircumstances: Equatable, Sendable {
    /// Where the person is.
    public var presence = Presence.unknown
    /// The network is paid for by what goes over it.
    public var isMetered = false
    /// The machine is to save power.
    public var savesPower = false

    /// Where a person is, as far as the sessions of a machine tell.
    public enum Presence: Sendable {
        /// Nobody can tell.
        case unknown
        /// At the machine: a session is active, and neither idle nor locked.
        case present
        /// Logged in, and not at the machine.
        case away
        /// Not logged in.
        case absent
    }

    /// Nobody can tell anything.
    public init() {}

    /// Whether looks and uploads are to be fewer.
    public var isSparing: Bool { isMetered || savesPower }
}
