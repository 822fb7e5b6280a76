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
        try await reach(file.url, file.credentials, protection) { backend in
            try await (backend as? ToldBackend)?.keyHolding?.rejectOtherKeys(andSuccessors: successors)
            return successors
                ? try await backend.restore(file.account) : try await backend.open(creatingAccount: false)
        } then: { backend, remote, held in
            guard let held, var key = try AccountKeyFile.read(in: directory), key.key == held.key else {
                throw RemoteError.keyGone
            }
            key.rejected = held.rejected
            try key.write(in: directory)
            var next = file
            next.isPaused = nil
            try commit(next) {
                if successors { return try sync.signIn(to: backend, asRestored: remote) }
                try sync.signIn(to: backend, as: remote, bringingValues: false)
            }
        }
        listen()
        daemon.logger.notice("\(userName) rejected other keys than the one of this device.")
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
