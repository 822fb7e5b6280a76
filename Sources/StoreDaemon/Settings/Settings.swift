// SPDX-License-Identifier: Apache-2.0

public import Logging
public import PropertyList
public import Replication
internal import SyncEngine

/// An administrator's settings, as the files of settings have them: ubiquitous-stored.conf(5).
public struct Settings: Equatable, Sendable {
    /// The least severe level that is logged.
    public var logLevel = Logger.Level.notice
    /// The name of this device, as other devices show it; `nil` if it is the host's name.
    public var deviceName: String?
    /// After how long without work the service ends; `nil` if never.
    public var idleExit: Duration? = .seconds(300)
    /// Whether ``idleExit`` was set, so that the service ends even if the bus can't start it again.
    public var isIdleExitAskedFor = false
    /// The folders under which accounts may be, in system mode.
    public var folderRoots: [String] = []
    /// The address schemes that accounts may have; `nil` allows every backend's.
    public var backends: Set<String>?
    /// The account that users sign in to without an address; `nil` if there is none.
    public var defaultAccount: DefaultAccount?
    /// Whether accounts must be encrypted.
    public var requiresEncryption = false
    /// How often the service polls and uploads.
    public var pace = SyncPace()
    /// The limits of a store.
    public var limits = Limits.standard
    /// The limits of one layer of a defaults domain.
    public var layerLimits = Limits.domain
    /// The bounds of what the service keeps for one user.
    public var bounds = UserBounds()

    /// Makes the default settings.
    public init() {}

    /// Sets ``idleExit``; zero means never.
    public mutating func ask(forIdleExit time: Duration) {
        (idleExit, isIdleExitAskedFor) = (time == .zero ? nil : time, true)
    }
}

/// The bounds of what the service keeps for one user, in memory and on disk.
public struct UserBounds: Equatable, Sendable {
    /// Stores that hold entries, be they only tombstones.
    public var stores = 16384
    /// Bytes of the database, including history and tombstones.
    public var databaseBytes = 256 << 20
    /// Defaults domains that hold values.
    public var domains = 1024
    /// Subscriptions to domains, of all connections together.
    public var domainSubscriptions = 1024
    /// Other subscriptions, of all connections together.
    public var subscriptions = 256
    /// Subscriptions of one connection, without those to domains.
    public var subscriptionsPerConnection = 64
    /// Manifests that the user's apps have registered.
    public var registeredManifests = 64
    /// Unanswered calls of one connection, which wait because it doesn't read or because they take long.
    public var waitingCalls = 256

    /// Makes the default bounds.
    public init() {}

    /// The largest size of the database's file, in bytes. Only removals and changes from other devices may use what is
    /// above ``databaseBytes``.
    var largestDatabase: Int { databaseBytes + databaseBytes / 4 }
}
