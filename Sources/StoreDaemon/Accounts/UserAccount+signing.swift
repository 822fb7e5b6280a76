// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import RemoteAddress
internal import Replication
internal import SDBus
internal import Sealing
internal import StoreBus
internal import StoreEngine
internal import SyncEngine

extension UserAccount {
    /// Signs in, or takes new credentials for the account that is signed in.
    ///
    /// - Parameter isRenewal: whether missing values are taken from the account that is signed in.
    /// - Returns: the account's identifier.
    func signIn(
        _ url: String, _ credentials: BackendCredentials, deviceName: String?, creatingAccount: Bool,
        bringingValues: Bool, isRenewal: Bool = false, _ encryption: EncryptionOptions
    ) async throws -> String {
        try credentials.check()
        try AccountFile.removeLeft(in: directory)
        let credentials = isRenewal ? try renewed(credentials, at: url) : credentials
        let signOuts = attempts.signOuts
        await attempts.turn()
        try checkIsSignedIn(since: signOuts)
        if try attempts.change({ try move.goesOn(at: url, credentials) }) { return accountIdentifier }
        let staysPaused = isRenewal ? try saved.read()?.isPaused ?? false : false
        var wasMade = false
        let former =
            encryption.phrase == nil ? nil : try saved.read().flatMap { $0.isPlace(url) ? $0 : nil }
        let before = former.map { keys.former(of: $0) } ?? (nil, FormerForms())
        func enter(_ protection: Protection, creatingAccount: Bool) async throws {
            try await reach(url, credentials, protection) {
                try await Self.open(
                    $0, creatingAccount: creatingAccount, joiningFrom: before, rejectingOthers: encryption.rejectsOthers
                )
            } then: { backend, remote, held in
                try checkIsSignedIn(since: signOuts)
                wasMade = remote.wasMade
                guard remote.isNew || !bringingValues else { throw BusError.store(.conflict, Self.inUse) }
                let file = AccountFile(
                    url: url, account: remote.identifier, credentials: credentials,
                    deviceName: deviceName ?? sync.devices.own.name,
                    announcesName: deviceName != nil || sync.devices.announcesName,
                    isEncrypted: held == nil ? nil : true, isPaused: staysPaused ? true : nil)
                // The account in this remote may have moved to the key since.
                if var former, !remote.isNamed(former.account) {
                    former.credentials = credentials
                    former.isPaused = staysPaused ? true : nil
                    return try adoptKey(former, to: remote, backend, held, before.1)
                }
                try keys.keep(held, wasShown: encryption.phrase != nil)
                try saved.commit(file) {
                    try sync.signIn(
                        to: backend, as: remote, bringingValues: bringingValues, deviceName: deviceName,
                        isPaused: staysPaused)
                }
            }
        }
        let protection = try keys.protection(at: url, encryption, isTrial: !creatingAccount)
        do { try await enter(protection, creatingAccount: creatingAccount) } catch let error as RemoteError
            where error.code == .keyNeeded && encryption.phrase == nil
        {
            let entered: Void? = try await withCandidates(at: url, besides: protection) {
                try await enter(.key($0), creatingAccount: false)
            }
            if entered == nil {
                if isRenewal { try attempts.change { try take(credentials, at: url, beforeKey: error) } }
                throw error
            }
        }
        self.url = url
        forgetRefusal()
        // Another name for a device that is listed already is a change, which is uploaded.
        if let deviceName { _ = try sync.rename(device: sync.devices.own.identifier, to: deviceName) }
        attempts.change { keys.settle(accountIdentifier) }
        listen()
        move.watch()
        log(
            act: "\(userName) signed in to \(url)\(wasMade ? ", where an account was made" : "").",
            warning: RemoteAddress.warning(of: url).map { "\(url): \($0)" })
        return accountIdentifier
    }

    /// Runs `body` with the keys that may open an encrypted account at a URL, until one does.
    /// - Parameter tried: a protection whose key doesn't.
    /// - Returns: the result of `body`; `nil` if no key opens the account.
    func withCandidates<Result>(
        at url: String, besides tried: Protection, _ body: (HeldKey) async throws -> Result
    ) async throws -> Result? {
        for key in keys.candidates(at: url) where tried.held != key {
            do { return try await body(key) } catch let error as RemoteError where error.code == .keyNeeded {}
        }
        return nil
    }

    /// Takes credentials that the remote accepts, although the account can't be read without its new key. Otherwise a
    /// device could not get at the account again once both have changed.
    /// - Parameter error: asks for the key's recovery phrase.
    private func take(_ credentials: BackendCredentials, at url: String, beforeKey error: RemoteError) throws {
        guard var file = try saved.read(), file.isPlace(url), file.credentials != credentials else { return }
        file.credentials = credentials
        let backend = try remotes.makeBackend(file.url, credentials, keys.protection(of: file).0)
        try saved.commit(file) { sync.change(to: backend, onlyReads: false) }
        forgetRefusal()
        sync.postpone(error)
        listen()
        log(act: "\(userName) renewed the credentials for \(url).")
    }

    /// Settles which side is right, after the remote was emptied or became another account's.
    ///
    /// If the device is, its account is restored beside the one in the remote, and both are one account from then on.
    /// Devices that have paused for the same reason find it again. If the remote is, this device switches to the
    /// remote's account, as by signing in. If the account has come back by itself, either choice continues with it.
    ///
    /// If the first download waits for parts of the account that will never arrive, `local` continues without them.
    func resolve(inFavourOf side: Side) async throws {
        let file = try saved.signedIn()
        if sync.needsKey, side == .local { return try await rejectOtherKeys(in: file) }
        if sync.lacksParts, side == .local {
            try await sync.acceptGaps()
            return log(act: "\(userName) continued without parts of the account that have not arrived.")
        }
        // Publishing everything again repairs what is damaged in the remote.
        let isDamaged = side == .local && !sync.isReset ? try await isDamaged(in: file) : false
        guard sync.isReset || isDamaged else {
            throw BusError.store(.conflict, "There is nothing to resolve: the remote has not been emptied or replaced.")
        }
        do {
            try await continueSync(with: file, inFavourOf: side)
        } catch let error as RemoteError where error.code == .keyNeeded {
            // The remote now holds an account under another key. The device waits for its recovery phrase.
            if side == .remote { try await awaitOtherKey(in: file, error) } else { sync.postpone(error) }
            throw error
        }
        listen()
        log(act: "\(userName) resolved the account in favour of the \(side.rawValue) side.")
    }

    /// Whether the remote is damaged. Checks it now, because sync rarely reads again what it has verified, and a device
    /// that signs in may have found damage that this one has not.
    private func isDamaged(in file: AccountFile) async throws -> Bool {
        if sync.lastError?.code == .damaged { return true }
        do {
            // With the account's key, reading repairs its marker, and this would not be noticed.
            try await reach(file.url, file.credentials, file.isEncrypted == true ? .locked : .none) {
                try await $0.open(creatingAccount: false)
            } then: { backend, _, _ in
                Self.close(backend)
            }
            return false
        } catch let error as RemoteError where error.code != .unavailable {
            // A folder that is only away, as without its drive, is not made again.
            return error.code == .damaged || error.isFolderMissing
        }
    }

    private func continueSync(with file: AccountFile, inFavourOf side: Side) async throws {
        var next = file
        // A move that has not switched to its key yet ends with the former account.
        if side == .remote { next.movingTo = nil }
        try await reach(file.url, file.credentials, keys.protection(of: next).0) { backend in
            switch side {
            case .local: try await backend.restore(file.account)
            case .remote: try await backend.open(creatingAccount: true)
            }
        } then: { backend, remote, _ in
            (next.account, next.isPaused, next.deviceName) = (remote.identifier, nil, sync.devices.own.name)
            try saved.commit(next) {
                switch side {
                case .local where next.movingTo != nil:
                    sync.setPaused(false)
                    sync.change(to: backend, onlyReads: true)
                case .local: try sync.signIn(to: backend, asRestored: remote)
                case .remote: try sync.signIn(to: backend, as: remote, bringingValues: false)
                }
            }
            if next.movingTo == nil, file.movingTo != nil { try AccountKeyFile.removeNext(in: directory) }
            move.watch()
        }
    }

    /// The side that is right, by its name on the bus.
    enum Side: String, Sendable { case local, remote }

    /// Pauses or resumes sync, and remembers it.
    func setPaused(_ isPaused: Bool) async throws {
        try await saved.change { file in
            if (file.isPaused ?? false) != isPaused { file.isPaused = isPaused }
        } then: {
            self.sync.setPaused(isPaused)
        }
    }

    /// Why values don't go along into an account.
    static let inUse = "The account already has data. Values can be brought only into a new account."

    static let notSignedIn = BusError.store(.notSignedIn, "No account is signed in.")

    /// Throws if the user has signed out since then.
    private func checkIsSignedIn(since signOuts: Int) throws(BusError) {
        guard signOuts == attempts.signOuts else {
            throw .store(.notSignedIn, "The account was signed out meanwhile.")
        }
    }

    /// Makes a backend, runs `body` with it and switches to it, unless the user has signed out meanwhile. A backend
    /// that the account doesn't switch to is closed.
    func reach(
        _ url: String, _ credentials: BackendCredentials, _ protection: Protection,
        _ body: @escaping @Sendable (any RemoteBackend) async throws -> RemoteAccount,
        then adoptKey: (any RemoteBackend, RemoteAccount, HeldKey?) throws -> Void
    ) async throws {
        try daemon.configuration.check(scheme: url)
        let backend = try remotes.makeBackend(url, credentials, protection)
        do {
            let signOuts = attempts.signOuts
            let (remote, held) = try await attempts.make {
                try await backend.untilCancelled { (try await body(backend), await backend.heldKey) }
            }
            try checkIsSignedIn(since: signOuts)
            try attempts.change { try adoptKey(backend, remote, held) }
        } catch {
            Self.close(backend)
            throw error
        }
    }

    /// Switches to the key that the account has moved to, and uploads all of this device's data under it.
    /// - Parameters:
    ///   - file: the account's file so far, with whether sync is paused from now on.
    ///   - former: the forms that the account had before.
    func adoptKey(
        _ file: AccountFile, to remote: RemoteAccount, _ backend: any RemoteBackend, _ held: HeldKey?,
        _ former: FormerForms
    ) throws {
        try keys.keep(held, wasShown: true, former: former)
        let names = remote.aliases.union(former.plain.map(\.description)).union([file.account])
        try saved.commit(file.gone(over: remote.identifier)) {
            try sync.signIn(
                to: backend, asRestored: RemoteAccount(identifier: remote.identifier, aliases: names),
                isPaused: file.isPaused == true)
        }
    }

    /// Updates the file after the account's identifier has changed.
    func renewFile() {
        do {
            try saved.changeAtOnce {
                $0.account = database.account.identifier
                takeName(into: &$0)
            }
        } catch {
            logUnwritten(error)
        }
    }

    /// Updates the file after this device's name, or whether that is uploaded, has changed.
    func renewName() async {
        do { try await saved.change { self.takeName(into: &$0) } } catch {
            if saved.exists { logUnwritten(error) }
        }
    }

    private func takeName(into file: inout AccountFile) {
        file.deviceName = sync.devices.own.name
        file.announcesName = sync.devices.announcesName
    }

    private func logUnwritten(_ error: any Error) {
        daemon.logger.error("The account of \(userName) can't be written: \(BusError(mapping: error).message)")
    }

    /// Refuses to sign out if no account is signed in, or if its key could be lost.
    /// - Parameter keepsLastKey: whether to look beyond a move to another key.
    func checkMaySignOut(keepingLastKey keepsLastKey: Bool) throws {
        guard sync.isSignedIn || saved.exists else { throw Self.notSignedIn }
        // Nobody is told the phrase while the account moves.
        try move.checkIsOver()
        if keepsLastKey { try keys.checkMayLeave(isReachable: sync.lastError == nil) }
    }

    /// Signs out, whatever is under way.
    func signOut(keepingValues: Bool) throws {
        // Values are removed before the file: after a crash in between, the user can sign out again.
        if !keepingValues { try sync.signOut(keepingValues: false) }
        let leaving = try saved.leave()
        attempts.noteSignOut()
        listener?.cancel()
        url = ""
        if keepingValues { try sync.signOut(keepingValues: true) }
        log(act: "\(userName) signed out.")
        daemon.armIdleTimer()
        try leaving.get()
    }

    /// Tests a remote step by step.
    /// - Parameters:
    ///   - isRenewal: whether missing credentials are taken from the account that is signed in.
    ///   - phrase: the recovery phrase to test on the encrypted account; if `nil`, the key of the account that is
    ///     signed in is tested, if this is its remote.
    ///   - createsUnencrypted: whether the user wants an unencrypted account if there is none.
    ///   - trial: the sign-in to try; `nil` to try none.
    func check(
        _ url: String, _ credentials: BackendCredentials, isRenewal: Bool = false, phrase: RecoveryPhrase? = nil,
        creatingUnencrypted createsUnencrypted: Bool = false, trying trial: SignInTrial? = nil
    ) async throws -> [BackendCheck] {
        try credentials.check()
        try daemon.configuration.check(scheme: url)
        let file = try saved.read()
        var tried = isRenewal ? try renewed(credentials, at: url) : credentials
        let areTheAccounts = file.map { $0.isPlace(url) && $0.credentials == tried } ?? false
        // The authority of a server's certificate is no secret, and is the same for the whole server.
        if tried.certificateAuthority == nil, let file, file.isServer(of: url) {
            tried.certificateAuthority = file.credentials.certificateAuthority
        }
        let protection = phrase.map(Protection.phrase) ?? file.flatMap { knownProtection(of: $0, at: url) } ?? .none
        let check = remotes.check(url, tried, protection, creatingUnencrypted: createsUnencrypted)
        var steps: [BackendCheck]
        do { steps = try await attempts.make { try await check() } } catch let error as RemoteError
            where error.code == .unavailable
        {
            steps = [BackendCheck(step: "time", failed: error)]
        }
        if let trial, steps.allSatisfy(\.isPassed) { steps.append(try await trial.step(url, tried, for: self)) }
        if areTheAccounts, steps.allSatisfy(\.isPassed) {
            steps.append(
                BackendCheck(
                    step: "credentials", isPassed: true, detail: "they are those of the account that is signed in"))
        }
        return steps
    }

    /// Returns this device's key of the account with a URL; `nil` if there is none.
    private func knownProtection(of file: AccountFile, at url: String) -> Protection? {
        guard file.isPlace(url), case (.key(let held), nil) = keys.protection(of: file) else { return nil }
        return .key(held)
    }

    /// Fills in missing credentials from the account that is signed in.
    private func renewed(_ credentials: BackendCredentials, at url: String) throws -> BackendCredentials {
        let file = try saved.signedIn()
        // Secrets are sent only to the address that they were given for.
        guard file.isPlace(url) else {
            throw BusError.invalidArguments("\"renew\" is for the address of the account that is signed in.")
        }
        return credentials.completed(by: file.credentials)
    }
}
