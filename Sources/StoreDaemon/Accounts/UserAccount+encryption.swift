// SPDX-License-Identifier: Apache-2.0

// The key of an encrypted account on this device. It is on the disk before anything is written under it. If it can't be
// used, sync stops and nothing is uploaded.

internal import Logging
internal import Replication
internal import SDBus
internal import Sealing
internal import StoreBus
internal import SyncEngine

extension UserAccount {
    /// Unlocks an account whose key is not on this device, with its recovery phrase. If the account has moved to the
    /// key since this device last saw it, all of this device's data is uploaded.
    func unlock(_ text: String) async throws {
        let phrase = try EncryptionOptions.read(text)
        // A caller that learns of the missing key may call before the cycle that found it has been followed up.
        try move.giveWayIfDue()
        var file = try saved.signedIn()
        let isKeyUnusable = file.isEncrypted == true && keys.current(of: file) == nil
        if sync.identifiers.isEmpty, !sync.needsKey, !sync.isPaused, sync.hasBackend {
            // Before the first pull, it isn't known whether the account needs the phrase.
            do { try await sync.syncNow(for: .program) } catch {
                guard sync.needsKey || isKeyUnusable else { throw error }
            }
        }
        if sync.isReset, let error = sync.lastError { throw error }
        let mayWait = sync.needsKey || isKeyUnusable || (file.isEncrypted == true && sync.isPaused)
        guard mayWait, file.movingTo == nil else {
            throw BusError.store(.conflict, "The account does not wait for a recovery phrase.")
        }
        // Sync goes on once the account is unlocked.
        file.isPaused = nil
        let (former, forms) = keys.former(of: file)
        try await reach(file.url, file.credentials, .phrase(phrase)) {
            try await Self.open($0, joiningFrom: (former, forms))
        } then: { backend, remote, held in
            guard remote.isNamed(file.account) else { return try adoptKey(file, to: remote, backend, held, forms) }
            try keys.keep(held, wasShown: true)
            try saved.commit(file) { try sync.signIn(to: backend, as: remote, bringingValues: false) }
        }
        keys.settle(accountIdentifier)
        listen()
        move.watch()
        log(act: "\(userName) unlocked the account.")
    }

    /// Rejects the markers of other keys and continues under this device's key. Anyone who can write to the remote can
    /// put another key's marker there, which stops this device's sync.
    /// - Parameter successors: whether to reject also a key that somebody who has this device's key has put in its
    ///   place. The account is then restored under this device's key, to get a new one.
    func rejectOtherKeys(in file: AccountFile, andSuccessors successors: Bool = false) async throws {
        keys.settle(accountIdentifier)
        let (protection, problem) = keys.protection(of: file)
        if let problem { throw problem }
        guard protection.isWanted else { throw RemoteError.keyGone }
        let restores = successors || protection.held?.awaited != nil
        try await reach(file.url, file.credentials, protection) { backend in
            try await LoggingBackend.keyHolding(backend).rejectOtherKeys(andSuccessors: successors)
            return restores
                ? try await backend.restore(file.account) : try await backend.open(creatingAccount: false)
        } then: { backend, remote, held in
            try keep(held) { ($0.rejected, $0.awaited) = ($1.rejected, nil) }
            var next = file
            next.isPaused = nil
            try saved.commit(next) {
                if restores { return try sync.signIn(to: backend, asRestored: remote) }
                try sync.signIn(to: backend, as: remote, bringingValues: false)
            }
        }
        listen()
        daemon.logger.notice("\(userName) rejected other keys than the one of this device.")
    }

    /// Makes the device wait for the recovery phrase of another key, because the account under its own key is gone and
    /// the user has accepted the one in the remote.
    /// - Parameter error: asks for the phrase.
    func awaitOtherKey(in file: AccountFile, _ error: RemoteError) async throws {
        keys.settle(accountIdentifier)
        guard case (.key(let known), nil) = keys.protection(of: file) else { return sync.postpone(error) }
        try await reach(file.url, file.credentials, .key(known)) { backend in
            try await LoggingBackend.keyHolding(backend).awaitOtherKey()
            return RemoteAccount(identifier: file.account)
        } then: { backend, _, held in
            try keep(held) { $0.awaited = $1.awaited }
            sync.change(to: backend, onlyReads: false)
            listen()
            sync.postpone(error)
        }
    }

    /// Stores what a backend has learned about the account's key.
    private func keep(_ held: HeldKey?, _ take: (inout AccountKeyFile, HeldKey) -> Void) throws {
        guard let held, var key = try AccountKeyFile.read(in: directory), key.key == held.key else {
            throw RemoteError.keyGone
        }
        take(&key, held)
        try key.write(in: directory)
    }

    /// Opens an account. If this device had another key, tells the devices that have it where the account went.
    /// - Parameter rejectsOthers: whether to ignore the markers of other keys than the recovery phrase's.
    nonisolated static func open(
        _ backend: any RemoteBackend, creatingAccount: Bool = false, joiningFrom former: (AccountKey?, FormerForms),
        rejectingOthers rejectsOthers: Bool = false
    ) async throws -> RemoteAccount {
        let holding = (backend as? LoggingBackend)?.keyHolding
        let remote: RemoteAccount
        do { remote = try await backend.open(creatingAccount: creatingAccount) } catch {
            guard error.code == .otherKeys, rejectsOthers else { throw error }
            try await LoggingBackend.keyHolding(backend).rejectOtherKeys(andSuccessors: false)
            remote = try await backend.open(creatingAccount: false)
        }
        try await holding?.noteJoining(from: former.0, former.1)
        return remote
    }
}
