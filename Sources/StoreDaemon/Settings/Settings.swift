// SPDX-License-Identifier: Apache-2.0

package import Logging
package import PropertyList
package import Replication
internal import SyncEngine

/// An administrator's settings, as the files of settings have them: ubiquitous-stored.conf(5).
package struct Settings: Equatable, Sendable {
    /// The least severe level that is logged.
    package var logLevel = Logger.Level.notice
    /// The name of this device, as other devices show it; `nil` if it is the host's name.
    package var deviceName: String?
    /// After how long without work the service ends; `nil` if never.
    package var idleExit: Duration? = .seconds(300)
    /// Whether ``idleExit`` was set, so that the service ends even if the bus can't start it again.
    package var isIdleExitAskedFor = false
    /// The folders under which accounts may be, in system mode.
    package var folderRoots: [String] = []
    /// The address schemes that accounts may have; `nil` allows every backend's.
    package var backends: Set<String>?
    /// The account that users sign in to without an address; `nil` if there is none.
    package var defaultAccount: DefaultAccount?
    /// Whether accounts must be encrypted.
    package var requiresEncryption = false
    /// How often the service polls and uploads.
    package var pace = SyncPace()
    /// The limits of a store.
    package var limits = Limits.standard
    /// The limits of one layer of a defaults domain.
    package var layerLimits = Limits.domain
    /// The bounds of what the service keeps for one user.
    package var bounds = UserBounds()

    /// Makes the default settings.
    package init() {}

    /// Sets ``idleExit``; zero means never.
    package mutating func ask(forIdleExit time: Duration) {
        (idleExit, isIdleExitAskedFor) = (time == .zero ? nil : time, true)
    }

    /// Changes ``defaultAccount``. Without an address and a file of certificates there is none.
    mutating func changeDefaultAccount(_ change: (inout DefaultAccount) -> Void) {
        var account = defaultAccount ?? DefaultAccount()
        change(&account)
        defaultAccount = account == DefaultAccount() ? nil : account
    }
}

/// The bounds of what the service keeps for one user, in memory and on disk.
package struct UserBounds: Equatable, Sendable {
    /// Stores that hold entries, be they only tombstones.
    package var stores = 16384
    /// Bytes of the database, including history and tombstones.
    package var databaseBytes = 256 << 20
    /// Defaults domains that hold values.
    package var domains = 1024
    /// Subscriptions to domains, of all connections together.
    package var domainSubscriptions = 1024
    /// Other subscriptions, of all connections together.
    package var subscriptions = 256
    /// Subscriptions of one connection, without those to domains.
    package var subscriptionsPerConnection = 64
    /// Manifests that the user's apps have registered.
    package var registeredManifests = 64
    /// Unanswered calls of one connection, which wait because it doesn't read or because they take long.
    package var waitingCalls = 256

    /// Makes the default bounds.
    package init() {}

    /// The largest size of the database's file, in bytes. Only removals, changes from other devices, and values that are
    /// replaced and become history may use what is above ``databaseBytes``.
    var largestDatabase: Int { databaseBytes + databaseBytes / 4 + min(databaseBytes, 16 << 20) }
}
