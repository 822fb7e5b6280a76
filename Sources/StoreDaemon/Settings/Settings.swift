// SPDX-License-Identifier: Apache-2.0

public import Logging
public import PropertyList
public import Replication
internal import SyncEngine

/// What an administrator decides, as the file of settings has it.
public struct Settings: Equatable, Sendable {
    /// What is logged.
    public var logLevel = Logger.Level.notice
    /// What other devices are told this one is called; `nil`: the host's name.
    public var deviceName: String?
    /// After so long without anything to do the service ends; `nil`: never.
    public var idleExit: Duration? = .seconds(300)
    /// ``idleExit`` was set: the service ends after it even where nothing starts it again.
    public var isIdleExitAskedFor = false
    /// The folders under which accounts may be, in system mode.
    public var folderRoots: [String] = []
    /// The schemes of the addresses that accounts may be at; `nil`: every one that there is a backend for.
    public var backends: Set<String>?
    /// The account that users sign in to without naming one; `nil`: there is none.
    public var defaultAccount: DefaultAccount?
    /// Accounts have to be encrypted.
    public var requiresEncryption = false
    /// How often remotes are looked at and uploaded to.
    public var pace = SyncPace()
    /// What one store may hold.
    public var limits = Limits.standard
    /// What one layer of a defaults domain may hold.
    public var layerLimits = Limits.domain
    /// What one user may have the service hold.
    public var bounds = UserBounds()

    /// What holds where no file says anything.
    public init() {}

    /// Has the service end after so long without anything to do; never after none.
    public mutating func ask(forIdleExit time: Duration) {
        (idleExit, isIdleExitAskedFor) = (time == .zero ? nil : time, true)
    }

    /// No account may be anywhere: what holds where it can't be known which ones may.
    public static var closed: Settings {
        var settings = Settings()
        settings.backends = []
        return settings
    }
}

/// What one user may have the service hold, in memory and on disk.
public struct UserBounds: Equatable, Sendable {
    /// Stores that hold something, be it only a trace of what was there.
    public var stores = 16384
    /// Bytes of the database, history and traces included.
    public var databaseBytes = 256 << 20
    /// Defaults domains that hold a value.
    public var domains = 1024
    /// Subscriptions of all connections to domains.
    public var domainSubscriptions = 1024
    /// Subscriptions of all connections.
    public var subscriptions = 256
    /// Subscriptions of one connection.
    public var subscriptionsPerConnection = 64
    /// Manifests that the user's apps have registered.
    public var registeredManifests = 64
    /// Calls of one connection that are not answered yet, since it doesn't read or they take a while.
    public var waitingCalls = 256

    /// The usual bounds.
    public init() {}

    /// The database's file never gets larger. Removing, and what comes from other devices, may use what is above
    /// ``databaseBytes``.
    var largestDatabase: Int { databaseBytes + databaseBytes / 4 }
}
