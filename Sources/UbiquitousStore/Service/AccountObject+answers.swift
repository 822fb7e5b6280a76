// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import SDBus
package import StoreBus

/// The options of `SignIn` and `CheckBackend`; `nil` options are not sent.
package struct SignInOptions: Sendable {
    /// The user name at the server.
    package var user: String?
    /// The password at the server.
    package var password: String?
    /// The bearer token, in place of a user name and password.
    package var token: String?
    /// Certificates to trust for this server, in PEM.
    package var certificateAuthority: [UInt8]?
    /// The name that users see for this device.
    package var deviceName: String?
    /// Whether to create an account if there is none.
    package var createsAccount: Bool?
    /// Whether to copy the present values into a new, empty account.
    package var bringsValues: Bool?
    /// Whether options that are not given keep the signed-in account's values.
    package var renews: Bool?
    /// Whether a new account is encrypted.
    package var encrypts: Bool?
    /// The twelve words of an encrypted account.
    package var recoveryPhrase: String?
    /// Whether this device ignores other keys in the remote; with ``recoveryPhrase``.
    package var rejectsOthers: Bool?

    /// Whether a check also says whether signing in would be refused.
    package var triesSignIn: Bool?

    /// Makes empty options.
    package init() {}

    /// Writes the arguments of a call.
    @BusActor
    func write(_ url: String, to message: Message) throws {
        message.markSensitive()
        try message.append(url)
        try message.appendDictionary {
            for case (let name, let text?) in [
                ("user", user), ("password", password), ("token", token), ("device-name", deviceName),
                ("recovery-phrase", recoveryPhrase),
            ] {
                try message.append(entry: name, .string(Text(text)))
            }
            if let certificateAuthority { try message.append(entry: "ca-pem", .data(certificateAuthority)) }
            if let createsAccount { try message.append(entry: "create", .boolean(createsAccount)) }
            if let renews { try message.append(entry: "renew", .boolean(renews)) }
            if let encrypts { try message.append(entry: "encrypt", .boolean(encrypts)) }
            if let rejectsOthers { try message.append(entry: "reject-others", .boolean(rejectsOthers)) }
            if let triesSignIn { try message.append(entry: "sign-in", .boolean(triesSignIn)) }
            if let bringsValues { try message.append(entry: "bring-values", .boolean(bringsValues)) }
        }
    }
}

/// A step of `CheckBackend`.
package struct BackendStep: Sendable, Equatable {
    /// The step's name.
    package let step: String
    /// Whether it succeeded.
    package let isPassed: Bool
    /// Whether something is probably wrong although it succeeded.
    package var isDoubtful = false
    /// Whether nothing is wrong.
    package var isRight: Bool { isPassed && !isDoubtful }
    /// What was found, as a sentence for users.
    package let detail: String
    /// The error that signing in would have; `nil` if the step passed, or the service doesn't say.
    package var code: UbiquitousStoreError.Code?
    /// Whether it failed because no authority that this device trusts has signed the server's certificate.
    package var isAuthorityUnknown = false
}

/// The size of a user's database, in bytes.
package struct DatabaseUsage: Sendable, Equatable {
    /// The size of the database.
    package let bytes: Int
    /// The size at which writes are refused.
    package let limit: Int
    /// About how many of the bytes are earlier values. The service drops them before it refuses a write.
    package let historyBytes: Int
}

/// A device of an account.
package struct DeviceDescription: Sendable, Equatable {
    /// Its identifier.
    package let identifier: String
    /// Its name.
    package let name: String
    /// When it last uploaded something, in microseconds since 1970-01-01T00:00:00Z; 0 if never.
    package let lastSeen: UInt64
    /// Whether it is this device.
    package let isThisOne: Bool
    /// `encrypt` or `replace-key` while this device moves the account to a new key; otherwise, and for others, "".
    package let moves: String
    /// Whether it is this device, and its user has paused sync.
    package let isPaused: Bool

    /// Makes a description from its parts.
    package init(
        identifier: String, name: String, lastSeen: UInt64, isThisOne: Bool, moves: String, isPaused: Bool = false
    ) {
        (self.identifier, self.name, self.lastSeen, self.isThisOne) = (identifier, name, lastSeen, isThisOne)
        (self.moves, self.isPaused) = (moves, isPaused)
    }
}

/// The properties of an account. Times are microseconds since 1970-01-01T00:00:00Z; 0 is never.
package struct AccountDescription: Sendable {
    /// What it is doing.
    package let state: AccountStatus
    /// The remote's URL, without secrets.
    package let backend: String
    /// The account's identifier.
    package let accountIdentifier: String
    /// This device's identifier.
    package let deviceIdentifier: String
    /// This device's name.
    package let deviceName: String
    /// Whether the first download is complete.
    package let isInitialSyncDone: Bool
    /// Whether the account is encrypted.
    package let isEncrypted: Bool
    /// Whether nobody has confirmed the encrypted account's recovery phrase; false if an older service doesn't say.
    package let isPhraseUnconfirmed: Bool
    /// Whether the stores show the values of an account that the user has signed out of; false if an older service
    /// doesn't say.
    package let showsFormerAccount: Bool
    /// The number of pending changes.
    package let pendingChanges: Int
    /// How many changes the account lacks because their stores are excluded from sync.
    package let excludedChanges: Int
    /// When the service last polled the remote successfully.
    package let lastPull: UInt64
    /// When the remote last acknowledged an upload.
    package let lastPush: UInt64
    /// The current error of sync, with the code of its name; `nil` if there is none.
    package let lastError: UbiquitousStoreError?
    /// Whether the error is that the remote answers, but the account's folder is missing; false if an older service
    /// doesn't say.
    package let isFolderMissing: Bool
    /// Whether the error is that a device which has this device's key of the account has replaced it.
    package let isKeyReplaced: Bool
    /// When the service will retry after an error; 0 if there is none.
    package let nextAttempt: UInt64
    /// When the next sync cycle is due; 0 if none is.
    package let nextSync: UInt64
    /// Why sync cycles are less frequent than usual: `metered-network`, `power-saver`.
    package let slowedBy: [String]
    /// The URL of the account that the administrator has configured; "" if there is none.
    package let defaultBackend: String
    /// The bytes left for the user's data on this device's disk; `Int64.max` if an older service doesn't say.
    package let freeBytes: Int64
    /// The names of the user's databases that were damaged and set aside.
    package let databasesSetAside: [String]

    /// Whether the user is signed in.
    package var isSignedIn: Bool { state != .signedOut }

    /// Whether the service can't read its file with the account, so that nobody knows the address. Signing in there
    /// again writes the file anew.
    package var isUnreadable: Bool { isSignedIn && backend.isEmpty }

    /// Whether the remote was emptied or holds another account, so that the user has to decide.
    package var isReset: Bool { lastError?.code == .remoteReset }

    /// Whether this device lacks the account's key.
    package var needsKey: Bool { lastError?.code == .keyNeeded }

    /// Whether the remote may lack what this device has, though nothing is pending: it was emptied, removed, damaged or
    /// restored to a backup, or the account got another key while this device uploaded without it.
    package var mayLackChanges: Bool { awaitsDecision || isUnpublished || isFolderUnusable }

    /// Whether the remote isn't the account to which this device has uploaded, or can't be used as it is, until the user
    /// decides something.
    package var awaitsDecision: Bool {
        isReset || needsKey || isFolderMissing || state == .error && lastError?.code == .corrupt
    }

    /// Whether the remote is a folder that is missing or can't be used, or that may be so unnoticed while sync is paused.
    /// It may have been deleted or replaced, whereas a server that doesn't answer usually still has what was uploaded.
    private var isFolderUnusable: Bool {
        backend.hasPrefix("folder:") && (state == .paused || lastError != nil && [.offline, .error].contains(state))
    }

    /// Whether the remote has nothing of this device, and that isn't changing now.
    private var isUnpublished: Bool { lastPush == 0 && ![.idle, .syncing, .initialSync].contains(state) }

    /// Whether the user has paused sync. An emptied remote also pauses it, but leaves an error.
    package var isPausedByUser: Bool { state == .paused && lastError == nil }

    init(_ properties: [String: Value]) {
        state = AccountStatus(rawValue: properties.string("State"))
        backend = properties.string("Backend")
        accountIdentifier = properties.string("AccountIdentifier")
        deviceIdentifier = properties.string("DeviceIdentifier")
        deviceName = properties.string("DeviceName")
        isInitialSyncDone = properties.boolean("InitialSyncDone")
        isEncrypted = properties.boolean("Encrypted")
        isPhraseUnconfirmed = properties.boolean("PhraseUnconfirmed")
        showsFormerAccount = properties.boolean("ShowsFormerAccount")
        pendingChanges = Int(properties.integer("PendingChanges"))
        excludedChanges = Int(properties.integer("ExcludedChanges"))
        lastPull = UInt64(clamping: properties.integer("LastPullUSec"))
        lastPush = UInt64(clamping: properties.integer("LastPushUSec"))
        nextAttempt = UInt64(clamping: properties.integer("NextAttemptUSec"))
        nextSync = UInt64(clamping: properties.integer("NextSyncUSec"))
        slowedBy = properties.strings("SlowedBy")
        defaultBackend = properties.string("DefaultBackend")
        freeBytes = properties["FreeBytes"] == nil ? .max : properties.integer("FreeBytes")
        databasesSetAside = properties.strings("DatabasesSetAside")
        let reason = properties.string("LastErrorReason")
        isFolderMissing = reason == "folder-missing"
        isKeyReplaced = reason == "key-replaced"
        let name = properties.string("LastErrorName")
        let message = properties.string("LastErrorMessage")
        lastError =
            name.isEmpty
            ? nil : UbiquitousStoreError.mapping(BusError(name: name, message: message)) as? UbiquitousStoreError
    }
}
