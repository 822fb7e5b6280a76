// SPDX-License-Identifier: Apache-2.0

// Moves an account to a key, from its unencrypted form or from a former key. The key and the intent are on the disk
// before anything is in the remote, and each step follows from what is on the disk, so any process can continue
// (MoveProgress).

internal import Replication
internal import SDBus
internal import Sealing
internal import StoreBus
internal import StoreEngine
internal import SyncEngine

/// The kind of a move, by its name in ListDevices().
enum KeyChange: String {
    /// From the unencrypted form.
    case encryption = "encrypt"
    /// From the account's present key.
    case replacement = "replace-key"
}

/// The move of a user's account to a key.
@BusActor
final class MoveToKey {
    private unowned let account: UserAccount
    private let service: ServiceContext
    /// Whether a step of a move may be due after a cycle.
    private var isWatched = false
    /// How many cycles may still follow at once, to find what was uploaded under the key.
    private var confirmations = 0

    private var sync: AccountSync { account.sync }
    private var keys: AccountKeys { account.keys }

    init(of account: UserAccount, in service: ServiceContext) {
        self.account = account
        self.service = service
    }

    /// Moves the account to a new key, or continues an interrupted move. Returns when all of this device's data is in
    /// the remote under the key.
    /// - Parameter passesOver: whether to move without what can't be read.
    func make(_ change: KeyChange, passingOverUnread passesOver: Bool) async throws {
        let file = try account.saved.signedIn()
        let isUnderWay = keys.isMoving(file)
        if !isUnderWay, change == .encryption, file.isEncrypted == true { return }
        // Sync says so itself, but not of an account that isn't used because encryption is required.
        if !isUnderWay, file.isPaused == true, !sync.hasBackend { throw BusError(remote: .paused) }
        if !isUnderWay, change == .replacement, file.isEncrypted != true {
            throw BusError.store(
                .conflict, "The account is not encrypted, so it has no key to replace; encrypt it instead.")
        }
        if !isUnderWay, change == .replacement { try await leaveOtherKeys(in: file) }
        try await alone {
            if !isUnderWay { try await begin(passesOver) }
            if try account.saved.read()?.movingTo != nil {
                try await read()
                try await adoptKey(passesOver)
            }
            for _ in 0..<3 where !sync.isPublished { try await sync.syncNow(for: .program) }
            try confirm()
        }
        account.notices.log(act: "\(account.userName) moved the account to a new key.")
    }

    /// If another key has stopped this device's sync, rejects it and continues under this device's key. Somebody with a
    /// stolen key may have moved the account away from it, and a new key is the way back.
    private func leaveOtherKeys(in file: AccountFile) async throws {
        if sync.identifiers.isEmpty, !sync.needsKey, sync.hasBackend {
            // No cycle has run since the service was started.
            do { try await sync.syncNow(for: .program) } catch { guard sync.needsKey else { throw error } }
        }
        if sync.needsKey { try await OtherKeys(account: account).reject(in: file, andSuccessors: true) }
    }

    private func begin(_ passesOver: Bool) async throws {
        let refusal = try readRefused()
        do { try await prepare(passesOver) } catch {
            watch()
            if let refusal {
                sync.close()
                sync.fail(refusal)
            }
            throw error
        }
    }

    /// Begins to read an unencrypted account that is not used, because the administrator requires encryption.
    /// - Returns: why it is not used; `nil` if it is.
    private func readRefused() throws -> RemoteError? {
        guard service.configuration.requiresEncryption, !sync.hasBackend, let file = try account.saved.read(),
            file.isEncrypted != true
        else { return nil }
        try service.configuration.check(scheme: file.url)
        sync.resume(with: try account.remotes.makeBackend(file.url, file.credentials, .none), onlyReads: true)
        return EncryptedOnlyBackend.notEncrypted
    }

    /// Reads the whole account, makes a key, and begins the move to it.
    /// - Parameter isRead: whether a cycle has just read the account.
    private func prepare(_ passesOver: Bool, isRead: Bool = false) async throws {
        // The former form goes, and with it what was removed from this device alone.
        try account.database.rememberAll()
        if !isRead { try await read() }
        let file = try account.saved.signedIn()
        try checkRead(passesOver)
        guard try account.database.forgottenStores().isEmpty else {
            throw BusError.store(
                .conflict,
                "A store was removed from this device while it read the account. Move the account once more.")
        }
        let (former, problem) = keys.protection(of: file)
        if let problem { throw problem }
        var (_, forms) = keys.former(of: file)
        if file.isEncrypted != true { forms.plain.formUnion(sync.identifiers.compactMap { KeyIdentifier($0) }) }
        let next = HeldKey(
            replacing: former.held, time: service.environment.time(), random: service.environment.random)
        let key = AccountKeyFile(
            key: next.key, marker: next.marker, left: forms.keys, rejected: next.rejected, stage: .moving,
            wasPlain: forms.plain)
        let move = Protection.moving(KeyMove(from: former.held, to: key.held))
        let backend = try account.remotes.makeBackend(file.url, file.credentials, move)
        try keys.begin(key, of: file)
        watch()
        change(to: backend, onlyReads: true)
    }

    /// Reads what can be read of the account.
    private func read() async throws {
        do { try await sync.syncNow(for: .program) } catch {
            // Otherwise no cycle was run.
            guard error == sync.lastError, sync.hasJoinedReadable else { throw error }
        }
    }

    /// Refuses to continue without values that other devices may have written.
    private func checkRead(_ passesOver: Bool) throws {
        guard sync.hasJoinedReadable else {
            throw BusError.store(
                .conflict, "The account is not completely downloaded yet, so it can't be moved. \(problem)")
        }
        guard passesOver || sync.hasReadAll || sync.lastError != nil || sync.hasUnread else {
            throw BusError.store(
                .conflict,
                "Some parts of the account were only on a device that has been removed, and have not arrived. To move "
                    + "the account without them, use --pass-over-unread.")
        }
        guard passesOver || sync.hasReadAll && !sync.hasUnread else {
            throw BusError.store(
                .conflict,
                "Something in the account can't be read, and may still be arriving. \(problem) To move the "
                    + "account without it, use --pass-over-unread; the device that wrote it uploads it again.")
        }
    }

    private var problem: String { sync.lastError?.advised ?? "" }

    private func change(to backend: LoggingBackend, onlyReads: Bool) {
        sync.change(to: backend, onlyReads: onlyReads)
        account.cycles.listen()
    }

    // MARK: Continuing

    /// Finds out whether a step may be due after a cycle.
    func watch() { (isWatched, confirmations) = (keys.areWatched, 3) }

    /// Does the next step after a cycle. What fails is tried again after the next cycle.
    func continueMove() async {
        guard isWatched, !account.attempts.isBusy, let file = try? account.saved.read() else { return }
        if keys.hasLostNext(of: file), sync.hasReadAll, !sync.needsKey { return giveUpLostKey() }
        let begun = file.movingTo == nil ? nil : keys.next(of: file)?.held.marker.time ?? 0
        let key = begun == nil ? keys.current(of: file) : nil
        let next = MoveProgress.next(movingSince: begun, key: key?.standing, facts)
        do {
            if let key, key.isToBeReplaced, !sync.needsKey {
                return try await alone(asStep: true) { try await prepare(false, isRead: true) }
            }
            switch next {
            case .wait: findPublication(under: key)
            case .giveWay: try withdraw()
            case .adoptKey: try await alone(asStep: true) { try await adoptKey(false) }
            case .confirm: try confirm()
            case .removeFormerForms: try await alone(asStep: true) { try await removeFormerForms() }
            }
        } catch {
            account.notices.log(problem: "Moving the account of \(account.userName) to its new key failed: \(error)")
        }
    }

    /// Gives up the move to a key that is gone before anything was in the remote under it.
    private func giveUpLostKey() {
        do { try withdraw() } catch {
            account.notices.log(
                problem: "The move of \(account.userName)'s account to a lost key can't be given up: \(error)")
        }
    }

    /// Begins the next cycle at once, because until one has found what was uploaded under the key, the recovery phrase
    /// is withheld. The limit prevents polling without a pause if the remote never shows the upload.
    private func findPublication(under key: AccountKeyFile?) {
        guard let key, key.stage == .moving, confirmations > 0, sync.lastError == nil else { return }
        confirmations -= 1
        sync.noteHint()
    }

    /// Runs a piece of work while nothing else is done with the account.
    private func alone(asStep isStep: Bool = false, _ body: () async throws -> Void) async throws {
        do { try await account.attempts.alone(asStep: isStep, body) } catch {
            try giveWayIfDue()
            throw error
        }
    }

    /// Gives up the move if a cycle has found that another key has become the account's.
    func giveWayIfDue() throws {
        guard !account.attempts.isBusy, sync.needsKey, try account.saved.read()?.movingTo != nil else { return }
        try withdraw()
    }

    private var facts: MoveProgress.Facts {
        MoveProgress.Facts(
            time: service.environment.time(), needsKey: sync.needsKey, hasReadAll: sync.hasReadAll,
            hasUnread: sync.hasUnread, isPublished: sync.isPublished)
    }

    /// Switches to the key, after the former form was read completely.
    private func adoptKey(_ passesOver: Bool) async throws {
        guard let file = try account.saved.read(), var key = keys.next(of: file) else {
            throw BusError.store(.keyNeeded, "The key that the account is moving to is not on this device.")
        }
        // Those that were found during the move.
        if file.isEncrypted != true { key.wasPlain.formUnion(sync.identifiers.compactMap { KeyIdentifier($0) }) }
        if !facts.areAllRead(since: key.held.marker.time) { try checkRead(passesOver) }
        let backend = try account.remotes.makeBackend(file.url, file.credentials, .key(key.held))
        do {
            let signOuts = account.attempts.signOuts
            let remote = try await Attempts.limited { try await backend.open(creatingAccount: false) }
            // A cycle under way may be about to give up the move for another key.
            let isRead = sync.hasReadAll || passesOver && sync.hasJoinedReadable
            guard signOuts == account.attempts.signOuts, isRead, !sync.isInCycle, !sync.isPaused else {
                throw BusError.store(
                    .backendUnavailable,
                    "The account could not be moved now. The service tries again after the next sync cycle.")
            }
            try account.adoptKey(file, to: remote, backend, key.held, key.former)
        } catch {
            UserAccount.close(backend)
            throw error
        }
        keys.settle(account.accountIdentifier)
        account.cycles.listen()
    }

    /// Gives up the move, because another key has become the account's. This device's marker is already gone.
    private func withdraw() throws {
        guard let file = try account.saved.read().map(keys.withdraw) else { return }
        watch()
        let (protection, problem) = keys.protection(of: file)
        change(to: try account.remotes.makeBackend(file.url, file.credentials, protection), onlyReads: false)
        if let problem { sync.postpone(problem) }
    }

    /// Notes that all of this device's data is in the remote under the key, so the recovery phrase may be shown.
    private func confirm() throws {
        let file = try account.saved.read()
        // On a full disk, the key may not have got into its place when the account switched to it.
        if let file { try AccountKeyFile.settle(file.account, in: account.directory) }
        guard sync.isPublished, var key = file.flatMap(keys.current) else {
            throw BusError.store(
                .backendUnavailable,
                "Not everything on this device has been uploaded yet. The move continues by itself.")
        }
        if key.stage == .using, key.published != nil { return }
        (key.stage, key.published) = (.using, service.environment.time())
        try key.write(in: account.directory)
    }

    private func removeFormerForms() async throws {
        guard let file = try account.saved.read(), let holding = (sync.backend as? LoggingBackend)?.keyHolding else {
            return
        }
        try await Attempts.limited { try await holding.removeFormerForms() }
        guard try account.saved.read()?.account == file.account, var key = keys.current(of: file) else { return }
        key.tidied = service.environment.time()
        try key.write(in: account.directory)
    }

    /// The kind of move that is under way or is to begin; `nil` if there is none.
    var present: KeyChange? { (try? account.saved.read()).flatMap(keys.move) }

    // MARK: What a move prevents

    /// Refuses to leave the account while possibly only this device has its key.
    func checkIsOver() throws {
        guard keys.isAccountMoving else { return }
        throw BusError.store(
            .conflict,
            "The account is moving to a new key that only this device has. Wait until the move is complete.")
    }

    /// Refuses to remove values that other devices don't read in the remote, because they have left this device's key.
    func checkUploadsAreRead() throws {
        guard let file = try account.saved.read(), keys.isToBeReplaced(in: file) else { return }
        throw BusError.store(
            .conflict,
            """
            This device has rejected the account's key on the other devices, and has to replace its own. Until then, no \
            other device reads what this one uploads. "ubiquitousctl account replace-key" says what prevents it.
            """)
    }

    /// Takes new credentials for an account that is moving, and continues with them.
    /// - Returns: whether nothing else is to be done for signing in.
    func goesOn(at url: String, _ credentials: BackendCredentials) throws -> Bool {
        guard var file = try? account.saved.read(), keys.isMoving(file) else { return false }
        guard file.isAt(url) else {
            try checkIsOver()
            return false
        }
        guard file.movingTo != nil else { return false }
        file.credentials = credentials
        let backend = try account.remotes.makeBackend(file.url, credentials, keys.protection(of: file).0)
        try file.write(in: account.directory)
        account.cycles.forgetRefusal()
        change(to: backend, onlyReads: true)
        return true
    }
}
