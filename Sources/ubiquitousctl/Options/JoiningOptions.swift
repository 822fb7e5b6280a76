// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import PropertyList
internal import RemoteAddress
internal import SDBus
internal import StoreBus
internal import UbiquitousStore

/// The options for joining an account.
struct JoiningOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The name that other devices show for this one.", valueName: "name"))
    var deviceName: String?

    @Flag(help: "Fail if there is no account yet, instead of creating one.")
    var noCreate = false

    @Flag(help: "Copy this device's values into a new, empty account.")
    var bringValues = false

    @OptionGroup var encryption: EncryptionOptions

    @Argument(help: "The account's address (default: the one that the administrator has configured).")
    var url: String?

    func validate() throws { if let url { try Credentials.check(url) } }

    /// Returns the address that is given, or else the administrator's default.
    func place(for account: AccountDescription) throws -> String {
        if let url { return url }
        guard !account.defaultBackend.isEmpty else {
            throw Failure(
                .usage, "No address is given, and this machine's settings name no default account.",
                advice: "Write folder:///PATH, webdavs://HOST/PATH or etcds://HOST/PREFIX.")
        }
        return account.defaultBackend
    }

    /// Signs in, unless this device is signed in already and nothing new is given.
    @BusActor
    func signIn(
        _ options: AccountOptions, _ credentials: Credentials, check: (AccountDescription, _ url: String) throws -> Void
    ) async throws {
        let (object, present) = try await options.present()
        var account = present
        let given = try place(for: account)
        try check(account, given)
        let isThere = account.isSignedIn && account.isAt(given)
        let url = isThere ? account.backend : given
        if isThere, encryption.phraseFile != nil {
            // The device may not have noticed yet that the account has another key.
            if !options.change.check, !account.needsKey { account = (try? await object.synced()) ?? account }
            if account.isReset, let error = account.lastError { throw error }
        }
        if isThere, encryption.encrypt == true, !account.isEncrypted {
            throw Failure(
                .refused, "The account that this device is signed in to is not encrypted.",
                advice: "\"ubiquitousctl account encrypt\" encrypts it.")
        }
        let isNamed = deviceName == nil || isThere && deviceName == account.deviceName
        let isNothingNew = isThere && isNamed && !credentials.hasAny && !encryption.hasAny
        if isNothingNew, options.change.check {
            // With the credentials that the device has.
            var request = SignInOptions()
            request.renews = true
            try await AccountOptions.check(object, url, request)
            return options.change.report(nil)
        }
        if isNothingNew, account.state != .authFailed {
            // Since the last poll, its folder may be back.
            if account.awaitsDecision { account = (try? await object.synced()) ?? account }
            if account.awaitsDecision, let error = account.lastError { throw error }
            if bringValues { Output.remark(Self.isSignedIn) }
            return options.change.report(nil)
        }
        // Warn before asking for a password.
        if let warning = RemoteAddress.warning(of: url) { Output.remark(Sentence(service: warning)) }
        var request = try await credentials.options(for: url)
        if !isThere { try credentials.checkLogin(for: url) }
        request.deviceName = deviceName
        request.createsAccount = !noCreate
        // The account that is signed in has this device's values.
        request.bringsValues = bringValues && !isThere
        let isLeaving = account.showsFormerAccount && !bringValues
        if isLeaving, options.change.check {
            Output.remark(
                """
                The values on this device are those of the account from before. If another account is there, they are \
                hidden; --bring-values takes them along into a new one
                """)
        }
        let before = isThere || options.change.check ? [] : await shownKeys(options)
        let isSameIfCredentialsAre = isThere && isNamed && account.state != .authFailed && !account.needsKey
        let asks = !options.change.check && !isThere
        let mayEndPause = account.isSignedIn && !options.change.check
        let wasPaused = mayEndPause ? (try? await object.isPaused(account)) == true : false
        let plan = "sign in to \(url)"
        let login = AskedLogin()
        try await encryption.signIn(
            url, request, to: object, asks: asks, mayLeaveValues: isLeaving,
            leavesEncrypted: account.isEncrypted && !isThere
        ) { request in
            var request = login.completing(request)
            do {
                try await options.signIn(
                    object, url, request, plan: plan, isSameIfCredentialsAre: isSameIfCredentialsAre)
            } catch let error as UbiquitousStoreError where error.code == .backendAuthenticationFailed && asks {
                guard try await login.ask(credentials, for: url) else { throw error }
                request = login.completing(request)
                try await options.signIn(
                    object, url, request, plan: plan, isSameIfCredentialsAre: isSameIfCredentialsAre)
            }
        }
        if wasPaused, (try? await object.isPaused(object.properties())) == false { Output.remark(Self.endsPause) }
        if !isThere, !options.change.check {
            await Progress.showing("Downloading the account's values") {
                await object.awaitValues(timeout: Patience.remote)
            }
        }
        if bringValues {
            if before.isEmpty, !options.change.check { Output.remark(isThere ? Self.isSignedIn : Self.bringsNothing) }
        } else if !before.isEmpty, !(await shownKeys(options)).isSuperset(of: before) {
            Output.remark(
                """
                Values from before belong to another account. They are kept, and come back when this device signs in to \
                that account; if it is gone, "ubiquitousctl restore KEY" brings one of them back. --bring-values takes \
                all of them along into a new account
                """)
        }
    }

    private static let endsPause: Sentence = "Sync was paused; signing in has ended the pause"
    private static let isSignedIn: Sentence = """
        --bring-values has brought nothing, because this device is signed in to the account already
        """
    private static let bringsNothing: Sentence = """
        --bring-values has brought nothing, because this device showed no values. Those of an account that it has left \
        come back when it signs in there; from there it can switch to another address with --bring-values
        """

    /// Returns the keys with values of the user's first hundred stores, which is enough here; none if they can't be
    /// read.
    @BusActor
    private func shownKeys(_ options: AccountOptions) async -> Set<ShownKey> {
        var shown: Set<ShownKey> = []
        guard let uid = try? options.service.uid(), let connection = try? await options.service.connectAsUser() else {
            return shown
        }
        for store in (try? await connection.manager.stores().filter { $0.uid == uid }.prefix(100)) ?? [] {
            let values = try? await connection.store(store.identifier, ofUser: uid).snapshot().values
            shown.formUnion((values ?? [:]).keys.map { ShownKey(store: store.identifier, key: $0) })
        }
        return shown
    }
}

/// A key that has a value.
private struct ShownKey: Hashable {
    let store: String
    let key: Text
}

/// The login that a user has typed, because the remote requires one.
@BusActor
private final class AskedLogin {
    private var typed: (user: String, password: String)?

    /// Asks for it, unless that was done before.
    /// - Returns: whether it was typed now.
    func ask(_ credentials: Credentials, for url: String) async throws -> Bool {
        if typed != nil { return false }
        typed = try await credentials.asked(for: url)
        return typed != nil
    }

    func completing(_ request: SignInOptions) -> SignInOptions {
        guard let typed else { return request }
        var request = request
        (request.user, request.password) = (typed.user, typed.password)
        return request
    }
}

extension AccountDescription {
    /// Whether the account is at an address, however that is written.
    func isAt(_ url: String) -> Bool { RemoteAddress.areSame(backend, url) }
}
