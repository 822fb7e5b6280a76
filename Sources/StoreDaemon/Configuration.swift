// SPDX-License-Identifier: Apache-2.0

public import Logging
internal import PlaceAddress
public import PropertyList
public import Replication
public import SDBus
package import Sealing
internal import SyncEngine

/// What the service was started with.
public struct Configuration: Sendable {
    /// The bus to serve on.
    public var bus: BusAddress
    /// Decides about folders and manifests; callers of every user are served in both.
    public var mode: Mode
    /// Where the databases and accounts are kept. It exists.
    public var stateDirectory: String
    /// A directory that does not outlive the running system; `nil` where there is none.
    public var runtimeDirectory: String?
    /// Where the apps' manifests are; a file in a later one replaces one of the same name in an earlier one.
    public var manifestDirectories: [String]
    /// Where administrators put managed settings; a file in a later one replaces one of the same name in an earlier one.
    public var managedDirectories = ["/usr/share", "/run", "/etc"].map { $0 + "/ubiquitous-store/managed.d" }
    /// The ids that users have beside their own.
    var subordinateUsersFile = "/etc/subuid"
    /// The folders under which accounts may be, in system mode.
    public var folderRoots: [String]
    /// What other devices are told this one is called.
    public var deviceName: String
    /// Identifiers without a manifest may be opened, for development.
    public var allowsUndeclared: Bool
    /// After so long without anything to do the service ends; `nil`: never.
    public var idleExit: Duration?
    /// It ends after that where nothing starts it again, too.
    public var isIdleExitAskedFor: Bool
    /// The schemes of the addresses that accounts may be at; `nil`: every one that there is a backend for.
    public var backends: Set<String>?
    /// Accounts have to be encrypted.
    public var requiresEncryption: Bool
    /// The account that users sign in to without naming one; `nil`: there is none.
    public var defaultAccount: DefaultAccount?
    /// The certificates to trust for the default account's server, in PEM.
    public var defaultAuthority: [UInt8]?
    /// What of the settings isn't right, in sentences; the rest of them is in force.
    public var settingsErrors: [String]
    /// How often remotes are looked at and uploaded to.
    public var pace: SyncPace
    /// What one store may hold, as long as the service runs: the bus has it as a constant.
    public var limits: Limits
    /// What one layer of a defaults domain may hold, as long as the service runs.
    public var layerLimits: Limits
    /// What one user may have the service hold.
    public var bounds: UserBounds
    /// The version that the service calls itself.
    public var version: String
    /// What the addresses begin with that accounts may have.
    public var backendSchemes: [String]
    /// Makes the backend of an account.
    public var makeBackend: @Sendable (BackendRequest) throws(RemoteError) -> any RemoteBackend
    /// Tries a backend step by step.
    public var checkBackend: @Sendable (BackendRequest) async throws(RemoteError) -> [BackendCheck]
    /// Where the service says what happens to it.
    public var logger: Logger

    /// What the mode decides.
    public enum Mode: String, Sendable {
        /// A service of the machine: it enters no homes.
        case system
        /// A service of one user: a folder is that user's own.
        case user
    }

    /// A configuration of its parts.
    public init(
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
        folderRoots = settings.folderRoots
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
    /// Refuses addresses of schemes that the administrator doesn't allow.
    func check(scheme url: String) throws(RemoteError) {
        let scheme = PlaceAddress.scheme(of: url)
        guard let backends, PlaceKind.schemes.contains(scheme), !backends.contains(scheme) else { return }
        throw RemoteError(.denied, "Accounts at \(scheme): addresses are not allowed on this machine.")
    }
}

extension Configuration {
    /// Refuses an account in plain where the administrator wants accounts encrypted.
    func check(_ protection: Protection) throws(RemoteError) {
        if requiresEncryption, !protection.isWanted { throw EncryptedOnlyBackend.notEncrypted }
    }
}

/// What a backend is made from.
public struct BackendRequest: Sendable {
    /// The address of the account's place, without secrets.
    public let url: String
    /// Whose account it is.
    public let uid: UInt32
    /// Decides which folders may be used.
    public let mode: Configuration.Mode
    /// The folders under which accounts may be, in system mode.
    public let folderRoots: [String]
    /// What the place asks for.
    public let credentials: BackendCredentials
    /// What is known of the account's encryption.
    package var protection = Protection.none

    /// What the address begins with, in small letters.
    public var scheme: String { PlaceAddress.scheme(of: url) }
}

/// What a user signs in with. It never appears in a log, an error or a property.
public struct BackendCredentials: Equatable, Sendable, Codable {
    /// A name.
    public var user: String?
    /// A password.
    public var password: String?
    /// A bearer token.
    public var token: String?
    /// The certificate of a private authority.
    public var certificateAuthority: [UInt8]?

    /// These, with others in place of what is missing. A password is in place of a token, and a token of a password.
    func completed(by others: BackendCredentials) -> BackendCredentials {
        var credentials = self
        credentials.user = user ?? others.user
        if password == nil, token == nil { (credentials.password, credentials.token) = (others.password, others.token) }
        credentials.certificateAuthority = certificateAuthority ?? others.certificateAuthority
        return credentials
    }

    /// Refuses what can't be any of these: it would be kept.
    func check() throws(BusError) {
        for (name, secret) in [("user", user), ("password", password), ("token", token)] {
            guard let secret else { continue }
            if secret.utf8.count > 8192 { throw .invalidArguments("The option \"\(name)\" has 8192 bytes at most.") }
            if secret.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) {
                throw .invalidArguments("\(name) has a control character in it, as the end of a line is: leave it out.")
            }
        }
        if let certificateAuthority, certificateAuthority.count > 256 << 10 {
            throw .invalidArguments("The option \"ca-pem\" has 256 KiB at most.")
        }
    }
}
