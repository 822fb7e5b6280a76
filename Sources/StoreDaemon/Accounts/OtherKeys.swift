// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import Replication
internal import SDBus
internal import Sealing
internal import StoreBus
internal import SyncEngine

/// What a user does about keys that are not on this device: unlocks the account with its recovery phrase, or rejects
/// them.
@BusActor
struct OtherKeys {
    let account: UserAccount

    private var sync: AccountSync { account.sync }
    private var keys: AccountKeys { account.keys }

    /// Unlocks an account whose key is not on this device, with its recovery phrase. If the account has moved to the
    /// key since this device last saw it, all of this device's data is uploaded.
    func unlock(with text: String) async throws {
        let phrase = try EncryptionOptions.read(text)
        // A caller that learns of the missing key may call before the cycle that found it has been followed up.
        try account.move.giveWayIfDue()
        var file = try account.saved.signedIn()
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
        try await account.reach(file.url, file.credentials, .phrase(phrase)) {
            try await $0.open(joiningFrom: (former, forms))
        } then: { backend, remote, held in
            if let held { try account.checkIsNotFormer(held) }
            guard remote.isNamed(file.account) else {
                return try account.adoptKey(file, to: remote, backend, held, forms)
            }
            try keys.keep(held, wasShown: true)
            try account.saved.commit(file) { try sync.signIn(to: backend, as: remote, bringingValues: false) }
        }
        keys.settle(account.accountIdentifier)
        account.cycles.listen()
        account.move.watch()
        account.notices.log(act: "\(account.userName) unlocked the account.")
    }

    /// Rejects the markers of other keys and continues under this device's key. Anyone who can write to the remote can
    /// put another key's marker there, which stops this device's sync.
    /// - Parameter successors: whether to reject also a key that somebody who has this device's key has put in its
    ///   place. The account is then restored under this device's key, to get a new one, which the service also begins by
    ///   itself: under the former key, this device would be alone.
    func reject(in file: AccountFile, andSuccessors successors: Bool = false) async throws {
        keys.settle(account.accountIdentifier)
        let (protection, problem) = keys.protection(of: file)
        if let problem { throw problem }
        guard protection.isWanted else { throw RemoteError.keyGone }
        let restores = successors || protection.held?.awaited != nil
        try await account.reach(file.url, file.credentials, protection) { backend in
            try await LoggingBackend.keyHolding(backend).rejectOtherKeys(andSuccessors: successors)
            return restores
                ? try await backend.restore(file.account) : try await backend.open(creatingAccount: false)
        } then: { backend, remote, held in
            try keep(held) { ($0.rejected, $0.awaited, $0.isToBeReplaced) = ($1.rejected, nil, successors) }
            var next = file
            next.isPaused = nil
            try account.saved.commit(next) {
                if restores { return try sync.signIn(to: backend, asRestored: remote) }
                try sync.signIn(to: backend, as: remote, bringingValues: false)
            }
        }
        account.cycles.listen()
        account.notices.log(act: "\(account.userName) rejected other keys than the one of this device.")
    }

    /// Makes the device wait for the recovery phrase of another key, because the account under its own key is gone and
    /// the user has accepted the one in the remote.
    /// - Parameter error: asks for the phrase.
    func awaitPhrase(in file: AccountFile, _ error: RemoteError) async throws {
        keys.settle(account.accountIdentifier)
        guard case (.key(let known), nil) = keys.protection(of: file) else { return sync.postpone(error) }
        let formerNames = try sync.formerNames
        try await account.reach(file.url, file.credentials, .key(known)) { backend in
            try await LoggingBackend.keyHolding(backend).awaitOtherKey(besides: formerNames)
            return RemoteAccount(encrypted: file.account, aliases: [])
        } then: { backend, _, held in
            try keep(held) { $0.awaited = $1.awaited }
            sync.change(to: backend, onlyReads: false)
            account.cycles.listen()
            sync.postpone(error)
        }
    }

    /// Stores what a backend has learned about the account's key.
    private func keep(_ held: HeldKey?, _ take: (inout AccountKeyFile, HeldKey) -> Void) throws {
        guard let held, var key = try AccountKeyFile.read(in: account.directory), key.key == held.key else {
            throw RemoteError.keyGone
        }
        take(&key, held)
        try key.write(in: account.directory)
    }
}

extension RemoteBackend {
    /// Opens an account. If this device had another key, tells the devices that have it where the account went.
    /// - Parameter rejectsOthers: whether to ignore the markers of other keys than the recovery phrase's.
    func open(
        creatingAccount: Bool = false, joiningFrom former: (AccountKey?, FormerForms),
        rejectingOthers rejectsOthers: Bool = false
    ) async throws -> RemoteAccount {
        let holding = (self as? LoggingBackend)?.keyHolding
        let remote: RemoteAccount
        do { remote = try await open(creatingAccount: creatingAccount) } catch {
            guard error.code == .otherKeys, rejectsOthers else { throw error }
            try await LoggingBackend.keyHolding(self).rejectOtherKeys(andSuccessors: false)
            remote = try await open(creatingAccount: false)
        }
        try await holding?.noteJoining(from: former.0, former.1)
        return remote
    }
}
