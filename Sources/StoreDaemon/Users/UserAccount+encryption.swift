// SPDX-License-Identifier: Apache-2.0

// The key of an encrypted account on this device. It is on the disk before anything is written under it; where it can't
// be used, sync rests and nothing leaves.

internal import Logging
internal import Replication
internal import SDBus
internal import Sealing
internal import StoreBus
internal import SyncEngine

extension UserAccount {
    /// Goes on with an account whose key is not here, by its recovery phrase. The account may have moved to the key
    /// since this device saw it last: all that the device has goes up then.
    func unlock(_ text: String) async throws {
        let phrase = try EncryptionWish.read(text)
        // Whoever has heard that the key is needed may be faster than what follows the cycle that found it.
        try move.giveWayIfDue()
        guard let file = try savedFile() else { throw Self.notSignedIn }
        // Before the first look nobody knows whether it waits.
        let mayWait = sync.needsKey || sync.identifiers.isEmpty || (file.isEncrypted == true && sync.isPaused)
        guard mayWait, file.movingTo == nil else {
            throw BusError.store(.conflict, "The account does not wait for a recovery phrase.")
        }
        let (former, forms) = keys.former(of: file)
        try await reach(file.url, file.credentials, .phrase(phrase)) {
            try await Self.open($0, joiningFrom: (former, forms))
        } then: { backend, remote, held in
            guard remote.isNamed(file.account) else { return try goOver(file, to: remote, backend, held, forms) }
            try keys.keep(held, wasShown: true)
            var next = file
            next.isPaused = nil
            try commit(next) { try sync.signIn(to: backend, as: remote, bringingValues: false) }
        }
        keys.settle(accountIdentifier)
        listen()
        move.watch()
        daemon.logger.notice("\(userName) unlocked the account.")
    }

    /// Goes on under the key that is here: whoever can write to the remote can put another key's marker there, and this
    /// device has stopped for it.
    /// - Parameter successors: also where somebody who has the key has put the other one in its place. The account is
    ///   put back under this one then, to be given a new key.
    func rejectOtherKeys(in file: AccountFile, andSuccessors successors: Bool = false) async throws {
        keys.settle(accountIdentifier)
        let (protection, problem) = keys.protection(of: file)
        if let problem { throw problem }
        let restores = successors || protection.held?.awaited != nil
        try await reach(file.url, file.credentials, protection) { backend in
            try await (backend as? ToldBackend)?.keyHolding?.rejectOtherKeys(andSuccessors: successors)
            return restores
                ? try await backend.restore(file.account) : try await backend.open(creatingAccount: false)
        } then: { backend, remote, held in
            try keep(held) { ($0.rejected, $0.awaited) = ($1.rejected, nil) }
            var next = file
            next.isPaused = nil
            try commit(next) {
                if restores { return try sync.signIn(to: backend, asRestored: remote) }
                try sync.signIn(to: backend, as: remote, bringingValues: false)
            }
        }
        listen()
        daemon.logger.notice("\(userName) rejected other keys than the one of this device.")
    }

    /// Waits for the words of another key: the account of this device's is gone, and the user has taken the one that is
    /// there for right.
    /// - Parameter error: asks for the words.
    func awaitOtherKey(in file: AccountFile, _ error: RemoteError) async throws {
        keys.settle(accountIdentifier)
        guard case (.key(let known), nil) = keys.protection(of: file) else { return sync.postpone(error) }
        try await reach(file.url, file.credentials, .key(known)) { backend in
            try await (backend as? ToldBackend)?.keyHolding?.awaitOtherKey()
            return RemoteAccount(identifier: file.account)
        } then: { backend, _, held in
            try keep(held) { $0.awaited = $1.awaited }
            sync.change(to: backend, onlyReads: false)
            listen()
            sync.postpone(error)
        }
    }

    /// Keeps what a backend has come to know of the account's key.
    private func keep(_ held: HeldKey?, _ take: (inout AccountKeyFile, HeldKey) -> Void) throws {
        guard let held, var key = try AccountKeyFile.read(in: directory), key.key == held.key else {
            throw RemoteError.keyGone
        }
        take(&key, held)
        try key.write(in: directory)
    }

    /// Opens an account, and tells those who have the key that this device had, if it is another, where it went.
    /// - Parameter rejectsOthers: markers of other keys than the one that a phrase opens don't count.
    nonisolated static func open(
        _ backend: any RemoteBackend, creatingAccount: Bool = false, joiningFrom former: (AccountKey?, FormerForms),
        rejectingOthers rejectsOthers: Bool = false
    ) async throws -> RemoteAccount {
        let holding = (backend as? ToldBackend)?.keyHolding
        let remote: RemoteAccount
        do { remote = try await backend.open(creatingAccount: creatingAccount) } catch {
            guard error.code == .otherKeys, rejectsOthers else { throw error }
            try await holding?.rejectOtherKeys(andSuccessors: false)
            remote = try await backend.open(creatingAccount: false)
        }
        try await holding?.noteJoining(from: former.0, former.1)
        return remote
    }
}
