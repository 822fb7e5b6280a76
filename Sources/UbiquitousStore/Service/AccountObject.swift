// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
package import SDBus
package import StoreBus

/// A user's account, through the service.
@BusActor
package struct AccountObject: ServiceObject {
    package static let interface = BusNames.accountInterface
    /// The connection to the service.
    package let connection: ServiceConnection
    /// The object's path, with the user's number. Signals come from this path.
    package let path: String

    // MARK: Signing in and out

    /// `SignIn`: returns when the service has verified the remote; the download follows.
    ///
    /// - Parameters:
    ///   - url: the remote's URL, without secrets.
    ///   - timeout: how long a slow remote may take.
    /// - Returns: the account's identifier.
    package func signIn(_ url: String, _ options: SignInOptions, timeout: Duration) async throws -> String {
        try await call("SignIn", timeout: timeout) {
            try options.write(url, to: $0)
        } decode: {
            try $0.readString()
        }
    }

    /// `SignOut`: leaves the account.
    /// - Parameters:
    ///   - keepsPending: whether to fail if removing the values would lose changes that the account lacks.
    ///   - keepsLastKey: whether to fail if nobody has confirmed the encrypted account's recovery phrase, or if files
    ///     from before it had its key are left.
    ///   - onlyChecks: whether only to fail where signing out would.
    package func signOut(
        keepingValues: Bool = true, keepingPending keepsPending: Bool = false,
        keepingLastKey keepsLastKey: Bool = false, onlyChecking onlyChecks: Bool = false
    ) async throws {
        try await call("SignOut") { message in
            try message.appendDictionary {
                try message.append(entry: "keep-values", .boolean(keepingValues))
                if keepsPending { try message.append(entry: "keep-pending", .boolean(true)) }
                if keepsLastKey { try message.append(entry: "keep-last-key", .boolean(true)) }
                if onlyChecks { try message.append(entry: "only-check", .boolean(true)) }
            }
        }
    }

    /// `SignOut` with `only-attempt`: only ends this user's `SignIn`, `CheckBackend`, `Unlock` or `Resolve` under way.
    package func endAttempt() async throws {
        try await call("SignOut") { message in
            try message.appendDictionary { try message.append(entry: "only-attempt", .boolean(true)) }
        }
    }

    /// `CheckBackend`: tests a remote step by step.
    package func check(_ url: String, _ options: SignInOptions, timeout: Duration) async throws -> [BackendStep] {
        try await call("CheckBackend", timeout: timeout) {
            try options.write(url, to: $0)
        } decode: {
            try $0.readDictionaries().map {
                BackendStep(
                    step: $0.string("step"), isPassed: $0.boolean("ok"), isDoubtful: $0.boolean("doubtful"),
                    detail: $0.string("detail"), code: UbiquitousStoreError.code(named: $0.string("error")),
                    isAuthorityUnknown: $0.string("reason") == "authority-unknown")
            }
        }
    }

    // MARK: Encryption

    /// `GetRecoveryPhrase`: returns the twelve words of the encrypted account.
    /// - Parameter marksShown: whether the user has seen the phrase.
    package func recoveryPhrase(marksShown: Bool) async throws -> String {
        try await call("GetRecoveryPhrase") {
            try $0.append((marksShown ? 1 : 0) as UInt64)
        } decode: {
            try $0.readString()
        }
    }

    /// `Encrypt`: moves an unencrypted account to a key.
    /// - Parameter passesOver: whether to leave behind data in the account that can't be read.
    package func encrypt(passingOverUnread passesOver: Bool = false, timeout: Duration) async throws {
        try await move("Encrypt", passesOver, timeout)
    }

    /// `ReplaceKey`: moves an encrypted account to another key.
    /// - Parameter passesOver: whether to leave behind data in the account that can't be read.
    package func replaceKey(passingOverUnread passesOver: Bool = false, timeout: Duration) async throws {
        try await move("ReplaceKey", passesOver, timeout)
    }

    private func move(_ member: String, _ passesOver: Bool, _ timeout: Duration) async throws {
        try await call(member, timeout: timeout) { message in
            try message.appendDictionary {
                if passesOver { try message.append(entry: "pass-over-unread", .boolean(true)) }
            }
        }
    }

    /// `Unlock`: gives this device the key, and so ends the pause for KeyNeeded.
    package func unlock(_ phrase: String, timeout: Duration) async throws {
        try await call("Unlock", timeout: timeout) {
            $0.markSensitive()
            try $0.append(phrase)
        }
    }

    // MARK: Sync

    /// `SyncNow`: returns when upload and download are done.
    /// - Parameter verifies: whether to read back what was uploaded, and to upload again what the remote hasn't kept.
    package func syncNow(verifying verifies: Bool = false, timeout: Duration) async throws {
        try await call("SyncNow", timeout: timeout) { try $0.append((verifies ? 0x1 : 0) as UInt64) }
    }

    /// Uploads pending changes if this device is signed in, and makes sure that the remote has kept the others. What
    /// it lacks is pending afterwards.
    /// - Returns: the account's state after that.
    package func uploadPendingChanges(timeout: Duration) async throws -> AccountDescription {
        let account = try await properties()
        if !account.isSignedIn { return account }
        try? await syncNow(verifying: true, timeout: timeout)
        return try await properties()
    }

    /// `Resolve`: decides after RemoteReset which side is right.
    package func resolve(_ side: Side, timeout: Duration) async throws {
        try await call("Resolve", timeout: timeout) { try $0.append(side.rawValue) }
    }

    /// `SetPaused`: pauses sync, or resumes it.
    package func setPaused(_ isPaused: Bool) async throws {
        try await call("SetPaused") { try $0.append(isPaused) }
    }

    /// `SetStoreSynchronized`: includes a store in sync, or excludes it.
    package func setSynchronized(_ identifier: String, _ isOn: Bool) async throws {
        try await call("SetStoreSynchronized") {
            try $0.append(identifier)
            try $0.append(isOn)
        }
    }

    /// A side in ``resolve(_:)``.
    package enum Side: String, Sendable, CaseIterable {
        /// This device's values are right.
        case local
        /// The remote's values are right.
        case remote
    }

    // MARK: Room

    /// `GetUsage`: returns the size of the user's database.
    package func usage() async throws -> DatabaseUsage {
        try await call("GetUsage") { _ in
        } decode: {
            let usage = try $0.readDictionary()
            return DatabaseUsage(
                bytes: Int(usage.integer("database-bytes")), limit: Int(usage.integer("database-bytes-limit")),
                historyBytes: Int(usage.integer("history-bytes")))
        }
    }

    /// `TrimHistory`: removes the earlier values of all stores.
    /// - Returns: about how many bytes this freed.
    package func trimHistory() async throws -> Int {
        try await call("TrimHistory") {
            try $0.append(0 as UInt64)
        } decode: {
            Int(clamping: try $0.readUInt64())
        }
    }

    // MARK: Devices

    /// `ListDevices`: returns the account's devices, or only this one when signed out.
    package func devices() async throws -> [DeviceDescription] {
        try await call("ListDevices") { _ in
        } decode: {
            try $0.readDictionaries().map {
                DeviceDescription(
                    identifier: $0.string("identifier"), name: $0.string("name"),
                    lastSeen: UInt64(clamping: $0.integer("last-seen-usec")), isThisOne: $0.boolean("this"),
                    moves: $0.string("moves"), isPaused: $0.boolean("paused"))
            }
        }
    }

    /// `RenameDevice`: changes the name that users see for a device.
    package func renameDevice(_ identifier: String, _ name: String) async throws {
        try await call("RenameDevice") {
            try $0.append(identifier)
            try $0.append(name)
        }
    }

    /// `ForgetDevice`: removes a device from the account's list.
    package func forgetDevice(_ identifier: String) async throws {
        try await call("ForgetDevice") { try $0.append(identifier) }
    }

    // MARK: Following

    /// Reads the properties.
    package func properties() async throws -> AccountDescription {
        AccountDescription(try await allProperties())
    }

    /// Calls `handler` with each state that the service signals to this connection, as long as the slot is held. There
    /// are none before ``subscribe()``.
    package func onChange(_ handler: @escaping @BusActor (_ state: AccountStatus) -> Void) async throws -> Slot {
        try await connection.onSignal(path, Self.interface, "AccountChanged") { message in
            if let state = try? message.readString() { handler(AccountStatus(rawValue: state)) }
        }
    }

    /// `Subscribe`: makes the service signal changes of the account's state to this connection.
    package func subscribe() async throws {
        try await call("Subscribe") { try $0.append(0 as UInt64) }
    }

    /// `Unsubscribe`: ends the subscription.
    package func unsubscribe() async throws {
        try await call("Unsubscribe")
    }
}
