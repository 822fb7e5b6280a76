// SPDX-License-Identifier: Apache-2.0

internal import Files
package import Logging
package import PropertyList
internal import RemoteAddress
package import Replication
package import SDBus
package import Sealing
internal import SyncEngine

/// The configuration that the service runs with: settings, directories and backends.
package struct Configuration: Sendable {
    /// The bus to serve on.
    package var bus: BusAddress
    /// Whether the service is the machine's or one user's. Either serves callers of every user.
    package var mode: Mode
    /// The directory of the databases and accounts. It must exist.
    package var stateDirectory: String
    /// A directory that is emptied when the system restarts; `nil` if there is none.
    package var runtimeDirectory: String?
    /// The directories of the apps' manifests. A file in a later one replaces one of the same name in an earlier one.
    package var manifestDirectories: [String]
    /// The directories of managed settings. A file in a later one replaces one of the same name in an earlier one.
    package var managedDirectories = ["/usr/share", "/run", "/etc"].map { $0 + "/ubiquitous-store/managed.d" }
    /// The file that assigns ranges of additional ids to users: subuid(5).
    var subordinateUsersFile = "/etc/subuid"
    /// The folders under which accounts may be, in system mode.
    package var folderRoots: [String]
    /// The name of this device, as other devices show it.
    package var deviceName: String
    /// Whether stores without a manifest may be opened, for development.
    package var allowsUndeclared: Bool
    /// After how long without work the service ends; `nil` if never.
    package var idleExit: Duration?
    /// Whether to end after ``idleExit`` even if the bus can't start the service again.
    package var isIdleExitAskedFor: Bool
    /// The address schemes that accounts may have; `nil` allows every backend's.
    package var backends: Set<String>?
    /// Whether accounts must be encrypted.
    package var requiresEncryption: Bool
    /// The account that users sign in to without an address; `nil` if there is none.
    package var defaultAccount: DefaultAccount?
    /// The certificates to trust for the default account's server, in PEM; `nil` if none are set.
    package var defaultAuthority: [UInt8]?
    /// What is wrong in the settings, in sentences. The other settings apply.
    package var settingsErrors: [String]
    /// Returns why folder roots can't be used, in sentences. It may wait for a server that doesn't answer.
    package var checkFolderRoots: @Sendable () -> [String] = { [] }
    /// How often the service polls and uploads.
    package var pace: SyncPace
    /// The limits of a store. They don't change while the service runs, because clients read them as a constant.
    package var limits: Limits
    /// The limits of one layer of a defaults domain. They don't change while the service runs.
    package var layerLimits: Limits
    /// The bounds of what the service keeps for one user.
    package var bounds: UserBounds
    /// The version that the service reports.
    package var version: String
    /// The address schemes of all backends.
    package var backendSchemes: [String]
    /// Makes the backend of an account.
    package var makeBackend: @Sendable (BackendRequest) throws(RemoteError) -> any RemoteBackend
    /// Tests a remote step by step.
    package var checkBackend: @Sendable (BackendRequest) async throws(RemoteError) -> [BackendCheck]
    /// The service's log.
    package var logger: Logger

    /// Whom a service runs for.
    package enum Mode: String, Sendable {
        /// The users of the machine. The service enters no homes, and folders must be below ``folderRoots``.
        case system
        /// One user: accounts may be in any folder of the user's.
        case user
    }

    /// Makes a configuration from its parts.
    package init(
        bus: BusAddress, mode: Mode, stateDirectory: String, runtimeDirectory: String?,
        manifestDirectories: [String], deviceName: String, allowsUndeclared: Bool, settings: Settings,
        defaultAuthority: [UInt8]? = nil, settingsErrors: [String] = [], version: String,
        backendSchemes: [String],
        makeBackend: @escaping @Sendable (BackendRequest) throws(RemoteError) -> any RemoteBackend,
        checkBackend: @escaping @Sendable (BackendRequest) async throws(RemoteError) -> [BackendCheck], logger: Logger
    ) {
        self.bus = bus
        self.mode = mode
        self.stateDirectory = stateDirectory
        self.runtimeDirectory = runtimeDirectory
        self.manifestDirectories = manifestDirectories
        folderRoots = settings.folderRoots.filter { mode == .user || !Self.overlap($0, stateDirectory) }
        self.deviceName = deviceName
        self.allowsUndeclared = allowsUndeclared
        (idleExit, isIdleExitAskedFor) = (settings.idleExit, settings.isIdleExitAskedFor)
        backends = settings.backends
        requiresEncryption = settings.requiresEncryption
        defaultAccount = settings.defaultAccount
        self.defaultAuthority = defaultAuthority
        self.settingsErrors = settingsErrors
        pace = settings.pace
        limits = settings.limits
        layerLimits = settings.layerLimits
        bounds = settings.bounds
        self.version = version
        self.backendSchemes = backendSchemes
        self.makeBackend = makeBackend
        self.checkBackend = checkBackend
        self.logger = logger
    }
}

extension Configuration {
    /// Whether a folder root is, contains or is in the state directory. It must not: the service opens a user's folder
    /// in a root to that user.
    package static func overlap(_ root: String, _ stateDirectory: String) -> Bool {
        let (root, state) = (RealPath.components(of: root), RealPath.components(of: stateDirectory))
        return root.starts(with: state) || state.starts(with: root)
    }

    /// The folders below which the users' accounts may be.
    var allowedFolders: [String] { mode == .user ? ["/"] : folderRoots }

    /// The schemes of the addresses at which accounts may be.
    var allowedSchemes: [String] { backendSchemes.filter(isAllowed) }

    /// Returns whether the administrator allows accounts at addresses with a scheme.
    private func isAllowed(_ scheme: String) -> Bool {
        guard let backends, BackendKind.schemes.contains(scheme) else { return true }
        return backends.contains(scheme)
    }

    /// Refuses addresses with schemes that the administrator doesn't allow.
    func check(scheme url: String) throws(RemoteError) {
        let scheme = RemoteAddress.scheme(of: url)
        if isAllowed(scheme) { return }
        throw RemoteError(.denied, "Accounts at \(scheme): addresses are not allowed on this machine.")
    }
}

extension Configuration {
    /// Refuses an unencrypted account if the administrator requires encryption.
    func check(_ protection: Protection) throws(RemoteError) {
        if requiresEncryption, !protection.isWanted { throw EncryptedOnlyBackend.notEncrypted }
    }
}

/// What a backend is made for.
package struct BackendRequest: Sendable {
    /// The remote's URL, without secrets.
    package let url: String
    /// The user id of the account's user.
    package let uid: UInt32
    /// Determines which folders may be used.
    package let mode: Configuration.Mode
    /// The folders under which accounts may be, in system mode.
    package let folderRoots: [String]
    /// The credentials for the remote.
    package let credentials: BackendCredentials
    /// The directory of the service's own data, in which no account may be; `nil` if that doesn't matter.
    package var stateDirectory: String?
    /// What is known about the account's encryption.
    package var protection = Protection.none
    /// Called with the microseconds of the bus thread that the backend has taken, once they are many.
    package var whenBusy: (@BusActor @Sendable (UInt64) -> Void)?

    /// The address's scheme, in lower case.
    package var scheme: String { RemoteAddress.scheme(of: url) }
}
