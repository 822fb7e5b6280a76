// SPDX-License-Identifier: Apache-2.0

// Moving the account to a key: from plain, or from a former key. The key and the intent are on the disk before anything
// is in the remote, and each step leads on from what is on the disk, in this process or the next (MoveProgress).

internal import Logging
internal import Replication
internal import SDBus
internal import Sealing
internal import StoreBus
internal import SyncEngine

/// Which move a person asks for, as ListDevices() calls it.
enum KeyChange: String {
    /// From plain.
    case encryption = "encrypt"
    /// From the key that the account has.
    case replacement = "replace-key"
}

/// The move of one user's account to a key.
@BusActor
final class MoveToKey {
    private unowned let account: UserAccount
    /// The account has moved to its key, or is moving: after each cycle something may be to be done for that.
    private var isWatched = false

    private var daemon: Daemon { account.daemon }
    private var sync: AccountSync { account.sync }
    private var keys: AccountKeys { account.keys }

    init(of account: UserAccount) { self.account = account }

    /// Moves the account to a new key, and returns when what this device has is in the remote under it. A move that
    /// was interrupted goes on.
    /// - Parameter passesOver: what can't be read is not waited for.
    func make(_ change: KeyChange, passingOverUnread passesOver: Bool) async throws {
        guard let file = try account.savedFile() else { throw UserAccount.notSignedIn }
        let isUnderWay = keys.isMoving(file)
        if !isUnderWay, change == .encryption, file.isEncrypted == true { return }
        if !isUnderWay, change == .replacement, file.isEncrypted != true {
            throw BusError.store(
                .conflict, "The account is not encrypted, so it has no key to replace; encrypt it instead.")
        }
        if !isUnderWay, change == .replacement { try await leaveOtherKeys(in: file) }
        try await alone {
            if !isUnderWay { try await begin(passesOver) }
            if try account.savedFile()?.movingTo != nil {
                try await sync.syncNow()
                try await goOver(passesOver)
            }
            for _ in 0..<3 where !sync.isPublished { try await sync.syncNow() }
            try confirm()
        }
        daemon.logger.notice("\(account.userName) moved the account to a new key.")
    }

    /// Goes on under the key that is here where another one has stopped this device: somebody who has stolen the key
    /// may have led the account away from it, and a new key is the way back.
    private func leaveOtherKeys(in file: AccountFile) async throws {
        if sync.identifiers.isEmpty, !sync.needsKey, sync.hasBackend {
            // Nobody has looked since the service was started.
            do { try await sync.syncNow() } catch { guard sync.needsKey else { throw error } }
        }
        if sync.needsKey { try await account.rejectOtherKeys(in: file, andSuccessors: true) }
    }

    private func begin(_ passesOver: Bool) async throws {
        let refusal = try readRefused()
        do { try await prepare(passesOver) } catch {
            if let refusal {
                sync.close()
                sync.fail(refusal)
            }
            throw error
        }
    }

    /// Begins to read an account in plain that is not used, because this machine's administrator requires encryption.
    /// - Returns: why it is not used; `nil` if it is.
    private func readRefused() throws -> RemoteError? {
        guard !sync.hasBackend, let file = try account.savedFile(), file.isEncrypted != true else { return nil }
        try daemon.configuration.check(scheme: file.url)
        sync.resume(with: try account.makeBackend(file.url, file.credentials, .none), onlyReads: true)
        return EncryptedOnlyBackend.notEncrypted
    }

    /// Reads the account completely, draws a key, and has the account move to it.
    private func prepare(_ passesOver: Bool) async throws {
        try await sync.syncNow()
        guard let file = try account.savedFile() else { throw UserAccount.notSignedIn }
        try checkRead(passesOver)
        let (former, problem) = keys.protection(of: file)
        if let problem { throw problem }
        var (_, forms) = keys.former(of: file)
        if file.isEncrypted != true { forms.plain.formUnion(sync.identifiers.compactMap { KeyIdentifier($0) }) }
        let next = HeldKey(
            replacing: former.held, time: daemon.environment.time(), random: daemon.environment.random)
        let key = AccountKeyFile(
            key: next.key, marker: next.marker, left: forms.keys, rejected: next.rejected, stage: .moving,
            wasPlain: forms.plain)
        let move = Protection.moving(KeyMove(from: former.held, to: key.held))
        let backend = try account.makeBackend(file.url, file.credentials, move)
        try keys.begin(key, of: file)
        watch()
        change(to: backend, onlyReads: true)
    }

    /// Refuses to go on without what others may have there.
    private func checkRead(_ passesOver: Bool) throws {
        guard sync.hasReadAll else {
            throw BusError.store(
                .conflict, "The account has not arrived whole; nothing is moved before it has. \(problem)")
        }
        guard !sync.hasUnread || passesOver else {
            throw BusError.store(
                .conflict,
                "Something in the account can't be read, and may still be arriving. \(problem) The account is moved "
                    + "without it with \"--pass-over-unread\"; a device that wrote it writes it again.")
        }
    }

    private var problem: String { sync.lastError?.message ?? "" }

    private func change(to backend: ToldBackend, onlyReads: Bool) {
        sync.change(to: backend, onlyReads: onlyReads)
        account.listen()
    }

    // MARK: Going on

    /// Sees whether something may be to be done after a cycle.
    func watch() { isWatched = keys.areWatched }

    /// Does what is to be done after a cycle. What fails is tried after the next one.
    func goOn() async {
        guard isWatched, !account.attempts.isBusy, let file = try? account.savedFile() else { return }
        let begun = file.movingTo == nil ? nil : keys.next(of: file)?.held.marker.time ?? 0
        let next = MoveProgress.next(
            movingSince: begun, key: begun == nil ? keys.current(of: file)?.standing : nil, facts)
        do {
            switch next {
            case .wait: break
            case .giveWay: try withdraw()
            case .goOver: try await alone { try await goOver(false) }
            case .confirm: try confirm()
            case .removeFormerForms: try await account.attempts.alone { try await removeFormerForms() }
            }
        } catch {
            daemon.logger.warning("The account of \(account.userName) can't go on with its move: \(error)")
        }
    }

    /// Does something while nothing else is done with the account.
    private func alone(_ body: () async throws -> Void) async throws {
        do { try await account.attempts.alone(body) } catch {
            try giveWayIfDue()
            throw error
        }
    }

    /// Gives way if a cycle has found that another key has become the account's, and nobody has acted on it yet.
    func giveWayIfDue() throws {
        guard !account.attempts.isBusy, sync.needsKey, try account.savedFile()?.movingTo != nil else { return }
        try withdraw()
    }

    private var facts: MoveProgress.Facts {
        MoveProgress.Facts(
            time: daemon.environment.time(), needsKey: sync.needsKey, hasReadAll: sync.hasReadAll,
            hasUnread: sync.hasUnread, isPublished: sync.isPublished)
    }

    /// Goes over to the key, after the former form was read to its end.
    private func goOver(_ passesOver: Bool) async throws {
        guard let file = try account.savedFile(), let key = keys.next(of: file) else {
            throw BusError.store(.keyNeeded, "The key that the account is moving to is not on this device.")
        }
        if !facts.areAllRead(since: key.held.marker.time) { try checkRead(passesOver) }
        let backend = try account.makeBackend(file.url, file.credentials, .key(key.held))
        do {
            let signOuts = account.attempts.signOuts
            let remote = try await Attempts.limited { try await backend.open(creatingAccount: false) }
            // A cycle that is under way may be giving way to another key.
            guard signOuts == account.attempts.signOuts, sync.hasReadAll, !sync.isInCycle, !sync.isPaused else {
                throw BusError.store(
                    .backendUnavailable, "The account is not read to its end any more; it is tried again.")
            }
            try account.goOver(file, to: remote, backend, key.held, key.former)
        } catch {
            UserAccount.close(backend)
            throw error
        }
        keys.settle(account.accountIdentifier)
        account.listen()
    }

    /// Gives way to another key that has become the account's. The marker of this device's is gone already.
    private func withdraw() throws {
        guard let file = try account.savedFile().map(keys.withdraw) else { return }
        watch()
        let (protection, problem) = keys.protection(of: file)
        change(to: try account.makeBackend(file.url, file.credentials, protection), onlyReads: false)
        if let problem { sync.postpone(problem) }
    }

    /// Remembers that what this device has is in the remote under the key: the phrase may be told.
    private func confirm() throws {
        guard sync.isPublished, var key = try account.savedFile().flatMap(keys.current) else {
            throw BusError.store(
                .backendUnavailable,
                "What this device has is not all in the remote yet; the account goes on moving by itself.")
        }
        if key.stage == .using, key.published != nil { return }
        (key.stage, key.published) = (.using, daemon.environment.time())
        try key.write(in: account.directory)
    }

    private func removeFormerForms() async throws {
        guard let file = try account.savedFile(), let holding = (sync.backend as? ToldBackend)?.keyHolding else {
            return
        }
        try await Attempts.limited { try await holding.removeFormerForms() }
        guard try account.savedFile()?.account == file.account, var key = keys.current(of: file) else { return }
        key.tidied = daemon.environment.time()
        try key.write(in: account.directory)
    }

    /// Which move is under way; `nil`: none.
    var present: KeyChange? { (try? account.savedFile()).flatMap(keys.move) }

    // MARK: What a move is in the way of

    /// Refuses to leave an account of which nobody else may have the key yet.
    func checkIsOver() throws {
        guard let file = try? account.savedFile(), keys.isMoving(file) else { return }
        throw BusError.store(
            .conflict,
            "The account is moving to a new key, and only this device has it; wait until that is done.")
    }

    /// Takes new credentials for an account that is moving; it goes on with them.
    /// - Returns: whether that is all there is to do.
    func goesOn(at url: String, _ credentials: BackendCredentials) throws -> Bool {
        guard var file = try? account.savedFile(), keys.isMoving(file) else { return false }
        guard file.isPlace(url) else {
            try checkIsOver()
            return false
        }
        guard file.movingTo != nil else { return false }
        file.credentials = credentials
        let backend = try account.makeBackend(file.url, credentials, keys.protection(of: file).0)
        try file.write(in: account.directory)
        change(to: backend, onlyReads: true)
        return true
    }
}
