// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import RemoteAddress
internal import Replication
internal import SDBus
internal import Sealing
internal import StoreBus
internal import SyncEngine

/// Signs in, or takes new credentials for the account that is signed in.
@BusActor
struct SignIn {
    let account: UserAccount
    private(set) var request: SignInRequest
    /// Whether sync stays paused, as a renewal leaves it.
    private var staysPaused = false
    private var present = PresentAccount.elsewhere
    /// The key and forms of the account that is signed in at the address, if the request has a recovery phrase: the
    /// account may have moved to that phrase's key.
    private var formerForms: (AccountKey?, FormerForms) = (nil, FormerForms())
    /// How often the account had been signed out when this began.
    private let signOuts: Int

    private var keys: AccountKeys { account.keys }

    private static let notEncrypted = RemoteError(.unencrypted, "The account that is here is not encrypted.")

    /// Why values don't go along into an account.
    static let inUse = "The account already has data. Values can be brought only into a new account."

    init(_ account: UserAccount, _ request: SignInRequest) {
        (self.account, self.request) = (account, request)
        signOuts = account.attempts.signOuts
    }

    /// Signs in.
    /// - Returns: the account's identifier.
    mutating func run() async throws -> String {
        try request.check()
        try AccountFile.removeLeft(in: account.directory)
        try request.complete(from: account.saved)
        await account.attempts.turn()
        try account.checkIsSignedIn(since: signOuts)
        let goesOn = try account.attempts.change {
            try account.move.goesOn(at: request.url, request.credentials)
        }
        if goesOn { return account.accountIdentifier }
        // To sign in again is the way to repair a file that can't be read, so it is read only where it is needed.
        if request.isRenewal { staysPaused = try account.saved.read()?.isPaused ?? false }
        present = PresentAccount(account, at: request.url)
        if request.hasPhrase, let file = present.file { formerForms = keys.former(of: file) }
        try finish(try await enterWithAnyKey())
        return account.accountIdentifier
    }

    /// Enters the remote's account with the request's phrase, or with this device's keys.
    private func enterWithAnyKey() async throws -> RemoteAccount {
        let creates = request.createsAccount && present.mayCreate(hasPhrase: request.hasPhrase)
        do {
            return try await keys.withKeys(at: request.url, request.encryption, creatingAccount: creates) {
                try await enter($0, creatingAccount: creates && !$1)
            }
        } catch let error as RemoteError {
            let error = present.failure(error, hasPhrase: request.hasPhrase)
            let areAccepted = error.code == .keyNeeded || error.code == .reset || error.isFolderMissing
            if request.isRenewal, !request.hasPhrase, areAccepted {
                try account.attempts.change { try takeCredentials(before: error) }
            }
            throw error
        }
    }

    private func enter(_ protection: Protection, creatingAccount: Bool) async throws -> RemoteAccount {
        try await account.reach(request.url, request.credentials, protection) {
            [former = formerForms, rejectsOthers = request.encryption.rejectsOthers] in
            try await $0.open(creatingAccount: creatingAccount, joiningFrom: former, rejectingOthers: rejectsOthers)
        } then: { backend, remote, held in
            try account.checkIsSignedIn(since: signOuts)
            try present.check(remote, held, hasPhrase: request.hasPhrase, account)
            guard remote.isNew || !request.bringsValues else { throw BusError.store(.conflict, Self.inUse) }
            guard held != nil || !request.encryption.encrypts else { throw Self.notEncrypted }
            if let former = present.former(of: remote) {
                var file = present.file ?? file(of: remote, isEncrypted: true)
                (file.account, file.credentials) = (former, request.credentials)
                file.isPaused = staysPaused ? true : nil
                return try account.adoptKey(file, to: remote, backend, held, formerForms.1)
            }
            try keys.keep(held, wasShown: request.hasPhrase)
            try account.saved.commit(file(of: remote, isEncrypted: held != nil)) {
                try account.sync.signIn(
                    to: backend, as: remote, bringingValues: request.bringsValues, deviceName: request.deviceName,
                    isPaused: staysPaused)
            }
        }
    }

    private func file(of remote: RemoteAccount, isEncrypted: Bool) -> AccountFile {
        let devices = account.sync.devices
        let present = try? account.saved.read()
        // A renewal must not forget that values are still to be uploaded.
        let stillBrings = present?.account == remote.identifier && present?.bringsValues == true
        return AccountFile(
            url: request.url, account: remote.identifier, credentials: request.credentials,
            deviceName: request.deviceName ?? devices.own.name,
            announcesName: request.deviceName != nil || devices.announcesName,
            isEncrypted: isEncrypted ? true : nil, isPaused: staysPaused ? true : nil,
            bringsValues: stillBrings || request.bringsValues && remote.isNew ? true : nil)
    }

    private func finish(_ remote: RemoteAccount) throws {
        let (url, sync) = (request.url, account.sync)
        account.url = url
        account.cycles.forgetRefusal()
        // Another name for a device that is listed already is a change, which is uploaded.
        if let name = request.deviceName { _ = try sync.rename(device: sync.devices.own.identifier, to: name) }
        account.attempts.change { keys.settle(account.accountIdentifier) }
        account.cycles.listen()
        account.move.watch()
        account.notices.log(
            act: "\(account.userName) signed in to \(url)\(remote.wasMade ? ", where an account was made" : "").",
            warning: RemoteAddress.warning(of: url).map { "\(url): \($0)" })
    }

    /// Takes credentials that the remote accepts, although the account there can't be read without its new key, is
    /// another one, or is gone with its folder. Otherwise the user could not settle that once the credentials have
    /// changed.
    /// - Parameter error: says what is to be settled.
    private func takeCredentials(before error: RemoteError) throws {
        let (url, credentials) = (request.url, request.credentials)
        guard var file = try account.saved.read(), file.isAt(url), file.credentials != credentials else { return }
        file.credentials = credentials
        let backend = try account.remotes.makeBackend(file.url, credentials, keys.protection(of: file).0)
        try account.saved.commit(file) { account.sync.change(to: backend, onlyReads: false) }
        account.cycles.forgetRefusal()
        account.sync.postpone(error)
        account.cycles.listen()
        account.notices.log(act: "\(account.userName) renewed the credentials for \(url).")
    }
}
