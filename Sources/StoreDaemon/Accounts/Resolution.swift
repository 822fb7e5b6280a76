// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import SDBus
internal import Sealing
internal import StoreBus
internal import SyncEngine

/// Settles which side is right, after the remote was emptied, was damaged or became another account's.
///
/// If the device is, its account is restored beside the one in the remote, and both are one account from then on.
/// Devices that have paused for the same reason find it again. If the remote is, this device switches to the remote's
/// account, as by signing in. If the account has come back by itself, either choice continues with it.
///
/// If the first download waits for parts of the account that will never arrive, `local` continues without them. If
/// nothing seems to be wrong, it reads back what this device has uploaded, and uploads again what is damaged: a device
/// that signs in may wait for that.
@BusActor
struct Resolution {
    let account: UserAccount
    let side: Side

    /// The side that is right, by its name on the bus.
    enum Side: String, Sendable { case local, remote }

    private var sync: AccountSync { account.sync }
    private var otherKeys: OtherKeys { OtherKeys(account: account) }

    func run() async throws {
        let file = try account.saved.signedIn()
        if sync.needsKey, side == .local { return try await otherKeys.reject(in: file) }
        if sync.lacksParts, side == .local {
            try await sync.acceptGaps()
            return account.notices.log(
                act: "\(account.userName) continued without parts of the account that have not arrived.")
        }
        // Publishing everything again repairs what is damaged in the remote.
        let isDamaged = side == .local && !sync.isReset ? try await isDamaged(in: file) : false
        guard sync.isReset || isDamaged else {
            if side == .local, try await !sync.syncAndVerify(for: .program) {
                return account.notices.log(act: "\(account.userName) uploaded again what was damaged in the account.")
            }
            throw BusError.store(.conflict, "There is nothing to resolve: the remote has not been emptied or replaced.")
        }
        do {
            try await continueSync(with: file)
        } catch let error as RemoteError where error.code == .keyNeeded {
            // The remote now holds an account under another key. The device waits for its recovery phrase.
            if side == .remote { try await otherKeys.awaitPhrase(in: file, error) } else { sync.postpone(error) }
            throw error
        } catch let error as RemoteError where error.code == .unencrypted {
            guard side == .remote, file.isEncrypted == true else { throw error }
            throw RemoteError(.unencrypted, RemoteError.plainInPlace.message)
        }
        account.cycles.listen()
        account.notices.log(act: "\(account.userName) resolved the account in favour of the \(side.rawValue) side.")
    }

    /// Whether the remote is damaged. Checks it now, because sync rarely reads again what it has verified, and a device
    /// that signs in may have found damage that this one has not.
    private func isDamaged(in file: AccountFile) async throws -> Bool {
        if sync.lastError?.code == .damaged { return true }
        do {
            // With the account's key, reading repairs its marker, and this would not be noticed.
            try await account.reach(file.url, file.credentials, file.isEncrypted == true ? .locked : .none) {
                try await $0.open(creatingAccount: false)
            } then: { backend, _, _ in
                UserAccount.close(backend)
            }
            return false
        } catch let error as RemoteError where error.code != .unavailable {
            // A folder that is only away, as without its drive, is not made again.
            return error.code == .damaged || error.isFolderMissing
        }
    }

    private func continueSync(with file: AccountFile) async throws {
        var next = file
        // A move that has not switched to its key yet ends with the former account.
        if side == .remote { (next.movingTo, next.bringsValues) = (nil, nil) }
        try await account.reach(file.url, file.credentials, account.keys.protection(of: next).0) { backend in
            switch side {
            case .local: try await backend.restore(file.account)
            case .remote: try await backend.open(creatingAccount: true)
            }
        } then: { backend, remote, _ in
            (next.account, next.isPaused, next.deviceName) = (remote.identifier, nil, sync.devices.own.name)
            try account.saved.commit(next) {
                switch side {
                case .local where next.movingTo != nil:
                    sync.setPaused(false)
                    sync.change(to: backend, onlyReads: true)
                case .local: try sync.signIn(to: backend, asRestored: remote)
                case .remote: try sync.signIn(to: backend, as: remote, bringingValues: false)
                }
            }
            if next.movingTo == nil, file.movingTo != nil { try AccountKeyFile.removeNext(in: account.directory) }
            account.move.watch()
        }
    }
}
