// SPDX-License-Identifier: Apache-2.0

// Moving the account to a key: from plain, or from a former key. The key and the intent are on the disk before anything
// is in the remote, and each step leads on from what is on the disk, in this process or the next (MoveProgress).

internal import Logging
internal import Replication
internal import SDBus
internal import Sealing
internal import StoreBus
internal import SyncEngine

/// Which move a person asks for.
enum KeyChange {
    /// From plain.
    case encryption
    /// From the key that the account has.
    case replacement
}

extension UserAccount {
    /// Moves the account to a new key, and returns when what this device has is in the remote under it. A move that
    /// was interrupted goes on.
    func move(_ change: KeyChange) async throws {
        guard let file = try AccountFile.read(in: directory) else { throw Self.notSignedIn }
        let isUnderWay = try isMoving(file)
        if !isUnderWay, change == .encryption, file.isEncrypted == true { return }
        if !isUnderWay, change == .replacement, file.isEncrypted != true {
            throw BusError.store(.conflict, "The account is not encrypted, so it has no key; use Encrypt.")
        }
        try await attempts.alone {
            if !isUnderWay { try await beginMove() }
            if try AccountFile.read(in: directory)?.movingTo != nil {
                do { try await sync.syncNow() } catch {
                    if sync.needsKey { try withdraw() }
                    throw error
                }
                try await goOver()
            }
            for _ in 0..<3 where !sync.isPublished { try await sync.syncNow() }
            try confirm()
        }
        daemon.logger.notice("\(userName) moved the account to a new key.")
    }

    /// Reads the account completely, draws a key, and has the account move to it.
    private func beginMove() async throws {
        try await sync.syncNow()
        guard sync.hasReadAll, var file = try AccountFile.read(in: directory) else {
            throw BusError.store(
                .conflict, "The account has problems, or has not arrived whole; nothing is moved before it has.")
        }
        let (former, problem) = protection(of: file)
        if let problem { throw problem }
        var (_, forms) = formerKey(of: file)
        if file.isEncrypted != true { forms.plain.formUnion(sync.identifiers.compactMap { KeyIdentifier($0) }) }
        let next = HeldKey(
            replacing: former.held, time: daemon.environment.time(), random: daemon.environment.random)
        let key = AccountKeyFile(
            key: next.key, marker: next.marker, left: forms.keys, rejected: next.rejected, stage: .moving,
            wasPlain: forms.plain)
        let move = Protection.moving(KeyMove(from: former.held, to: key.held))
        let backend = try makeBackend(file.url, file.credentials, move)
        try key.write(.next, in: directory)
        file.movingTo = "\(next.key.identifier)"
        try file.write(in: directory)
        watchMove()
        sync.change(to: backend, onlyReads: true)
        listen()
    }

    /// The key that the account has before it goes over to another one, and the forms that it has had.
    func formerKey(of file: AccountFile) -> (AccountKey?, FormerForms) {
        let name = KeyIdentifier(file.account).map { Set([$0]) } ?? []
        guard file.isEncrypted == true else { return (nil, FormerForms(plain: name)) }
        let key = try? AccountKeyFile.key(of: file.account, in: directory)
        return (key?.key, FormerForms(plain: key?.wasPlain ?? [], keys: name.union(key?.left ?? [])))
    }

    /// The key that an account is moving to.
    func nextKey(of file: AccountFile) -> AccountKeyFile? {
        guard let identifier = file.movingTo else { return nil }
        do {
            if let next = try AccountKeyFile.read(.next, in: directory), "\(next.key.identifier)" == identifier {
                return next
            }
            daemon.logger.error("The key that the account of \(userName) is moving to is not there.")
        } catch {
            daemon.logger.error("\(error)")
        }
        return nil
    }

    // MARK: Going on

    /// Whether something may be to be done after a cycle.
    func watchMove() {
        let file = try? AccountFile.read(in: directory)
        watchesMove = file?.movingTo != nil || file.flatMap(key)?.former.areNone == false
    }

    private func key(of file: AccountFile) -> AccountKeyFile? {
        file.isEncrypted == true ? try? AccountKeyFile.key(of: file.account, in: directory) : nil
    }

    private func isMoving(_ file: AccountFile) throws -> Bool {
        file.movingTo != nil || key(of: file).map { $0.stage == .moving && !$0.former.areNone } == true
    }

    /// Does what is to be done after a cycle. What fails is tried after the next one.
    func goOnMoving() async {
        guard watchesMove, !attempts.isBusy, let file = try? AccountFile.read(in: directory) else { return }
        let facts = MoveProgress.Facts(
            time: daemon.environment.time(), needsKey: sync.needsKey, hasReadAll: sync.hasReadAll,
            isPublished: sync.isPublished)
        let next = MoveProgress.next(
            isMoving: file.movingTo != nil, key: file.movingTo == nil ? key(of: file) : nil, facts)
        do {
            switch next {
            case .wait: break
            case .giveWay: try withdraw()
            case .goOver: try await attempts.alone { try await goOver() }
            case .confirm: try confirm()
            case .removeFormerForms: try await attempts.alone { try await removeFormerForms() }
            }
        } catch {
            daemon.logger.warning("The account of \(userName) can't go on with its move: \(error)")
        }
    }

    /// Goes over to the key, after the former form was read to its end.
    private func goOver() async throws {
        guard let file = try AccountFile.read(in: directory), let key = nextKey(of: file) else {
            throw BusError.store(.keyNeeded, "The key that the account is moving to is not on this device.")
        }
        let backend = try makeBackend(file.url, file.credentials, .key(key.held))
        do {
            let signOuts = attempts.signOuts
            let remote = try await Attempts.limited { try await backend.open(creatingAccount: false) }
            guard signOuts == attempts.signOuts, sync.hasReadAll, !sync.isPaused else {
                throw BusError.store(
                    .backendUnavailable, "The account is not read to its end any more; it is tried again.")
            }
            try goOver(file, to: remote, backend, key.held, key.former)
        } catch {
            Self.close(backend)
            throw error
        }
        settleKey()
        listen()
    }

    /// Gives way to another key that has become the account's. The marker of this device's is gone already.
    private func withdraw() throws {
        guard var file = try AccountFile.read(in: directory) else { return }
        file.movingTo = nil
        try file.write(in: directory)
        try AccountKeyFile.removeNext(in: directory)
        watchMove()
        let (protection, problem) = protection(of: file)
        sync.change(to: try makeBackend(file.url, file.credentials, protection), onlyReads: false)
        listen()
        if let problem { sync.postpone(problem) }
    }

    /// Remembers that what this device has is in the remote under the key: the phrase may be told.
    private func confirm() throws {
        guard sync.isPublished, let file = try AccountFile.read(in: directory), var key = key(of: file) else {
            throw BusError.store(
                .backendUnavailable,
                "What this device has is not all in the remote yet; the account goes on moving by itself.")
        }
        if key.stage == .using, key.published != nil { return }
        (key.stage, key.published) = (.using, daemon.environment.time())
        try key.write(in: directory)
    }

    private func removeFormerForms() async throws {
        guard let file = try AccountFile.read(in: directory), let holding = (sync.current as? ToldBackend)?.keyHolding
        else { return }
        try await Attempts.limited { try await holding.removeFormerForms() }
        guard try AccountFile.read(in: directory)?.account == file.account, var key = key(of: file) else { return }
        key.tidied = daemon.environment.time()
        try key.write(in: directory)
    }

    // MARK: What a move is in the way of

    /// Refuses to leave an account of which nobody else may have the key yet.
    func checkNotMoving() throws {
        guard let file = try? AccountFile.read(in: directory), try isMoving(file) else { return }
        throw BusError.store(
            .conflict,
            "The account is moving to a new key, and only this device has it; wait until that is done.")
    }

    /// Takes new credentials for an account that is moving; it goes on with them.
    /// - Returns: whether that is all there is to do.
    func movesElsewhere(than url: String, _ credentials: BackendCredentials) throws -> Bool {
        guard var file = try? AccountFile.read(in: directory), try isMoving(file) else { return false }
        guard file.isPlace(url) else {
            try checkNotMoving()
            return false
        }
        guard file.movingTo != nil else { return false }
        file.credentials = credentials
        let backend = try makeBackend(file.url, credentials, protection(of: file).0)
        try file.write(in: directory)
        sync.change(to: backend, onlyReads: true)
        listen()
        return true
    }

    /// Opens an account, and tells those who have the key that this device had, if it is another, where it went.
    nonisolated static func open(
        _ backend: any RemoteBackend, creatingAccount: Bool = false, joiningFrom former: AccountKey?
    ) async throws -> RemoteAccount {
        let remote = try await backend.open(creatingAccount: creatingAccount)
        if let former, let holding = (backend as? ToldBackend)?.keyHolding {
            try await holding.noteJoining(from: former)
        }
        return remote
    }
}
