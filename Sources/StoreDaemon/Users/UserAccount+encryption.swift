// SPDX-License-Identifier: Apache-2.0

// The key of an encrypted account on this device. It is on the disk before anything is written under it; where it can't
// be used, sync rests and nothing leaves.

internal import Logging
internal import Replication
internal import SDBus
internal import Sealing
internal import StoreBus
internal import SyncEngine

/// What the user says about encryption when signing in.
struct EncryptionWish {
    /// A new account is to be encrypted.
    var encrypts = false
    /// What opens an account that is.
    var phrase: RecoveryPhrase?

    init(encrypts: Bool, phrase: String?) throws(BusError) {
        self.encrypts = encrypts
        self.phrase = try phrase.map { text throws(BusError) in try Self.read(text) }
    }

    static func read(_ phrase: String) throws(BusError) -> RecoveryPhrase {
        do throws(RecoveryPhraseError) { return try RecoveryPhrase(reading: phrase) } catch {
            throw .invalidArguments("\(error)")
        }
    }
}

extension UserAccount {
    /// What is known of the encryption of the account that is signed in, and why its key can't be used if it can't.
    func protection(of file: AccountFile) -> (Protection, RemoteError?) {
        let (former, problem) = formerProtection(of: file)
        guard problem == nil, let next = nextKey(of: file) else { return (former, problem) }
        return (.moving(KeyMove(from: former.held, to: next.held)), nil)
    }

    private func formerProtection(of file: AccountFile) -> (Protection, RemoteError?) {
        guard file.isEncrypted == true else { return (.none, nil) }
        do throws(AccountKeyFileError) {
            if let key = try AccountKeyFile.key(of: file.account, in: directory) { return (.key(key.held), nil) }
        } catch {
            daemon.logger.error("\(error)")
            return (.locked, RemoteError(.keyNeeded, "\(error)"))
        }
        return (.locked, .keyGone)
    }

    /// What is known of the encryption of an account that is to be signed in to.
    func protection(at url: String, _ wish: EncryptionWish) throws -> Protection {
        if let phrase = wish.phrase { return .phrase(phrase) }
        // Signing in anew is what mends a file that can't be read.
        if let file = try? AccountFile.read(in: directory), file.isPlace(url),
            file.isEncrypted == true || file.movingTo != nil
        {
            return protection(of: file).0
        }
        return wish.encrypts ? .key(try nextKey()) : .none
    }

    /// The key of a new account, which is on the disk before the account is anywhere. One that an attempt before has
    /// left is taken again: that may have made the account.
    private func nextKey() throws -> HeldKey {
        if let left = try? AccountKeyFile.read(.next, in: directory), left.stage == .moving, left.former.areNone {
            return left.held
        }
        let held = HeldKey(time: daemon.environment.time(), random: daemon.environment.random)
        try AccountKeyFile(key: held.key, marker: held.marker, stage: .moving).write(.next, in: directory)
        return held
    }

    /// Keeps the key of an account that is about to be signed in to.
    /// - Parameters:
    ///   - wasShown: the user has the phrase.
    ///   - former: what the account was before.
    func keep(_ held: HeldKey?, wasShown: Bool, former: FormerForms = FormerForms()) throws {
        guard let held else { return }
        do throws(AccountKeyFileError) {
            if try AccountKeyFile.key(of: "\(held.key.identifier)", in: directory)?.key == held.key { return }
        } catch {
            if case .tooNew = error { throw BusError.store(.keyNeeded, "\(error)") }
        }
        try AccountKeyFile(
            key: held.key, marker: held.marker, left: former.keys, stage: .using, wasShown: wasShown,
            wasPlain: former.plain
        ).write(.next, in: directory)
    }

    /// Gives the key of the account that was signed in to its place. What fails here is made up for at the next start.
    func settleKey() {
        do { try AccountKeyFile.settle(accountIdentifier, in: directory) } catch {
            daemon.logger.error("The key of the account of \(userName) can't be put in place: \(error)")
        }
    }

    /// Goes on with an account whose key is not here, by its recovery phrase. The account may have moved to the key
    /// since this device saw it last: all that the device has goes up then.
    func unlock(_ text: String) async throws {
        let phrase = try EncryptionWish.read(text)
        guard let file = try AccountFile.read(in: directory) else { throw Self.notSignedIn }
        // Before the first look nobody knows whether it waits.
        let mayWait = sync.needsKey || sync.identifiers.isEmpty || (file.isEncrypted == true && sync.isPaused)
        guard mayWait, file.movingTo == nil else {
            throw BusError.store(.conflict, "The account does not wait for a recovery phrase.")
        }
        let (former, forms) = formerKey(of: file)
        try await reach(file.url, file.credentials, .phrase(phrase)) {
            try await Self.open($0, joiningFrom: former)
        } then: { backend, remote, held in
            guard remote.isNamed(file.account) else { return try goOver(file, to: remote, backend, held, forms) }
            try keep(held, wasShown: true)
            var next = file
            next.isPaused = nil
            try commit(next) { try sync.signIn(to: backend, as: remote, bringingValues: false) }
        }
        settleKey()
        listen()
        watchMove()
        daemon.logger.notice("\(userName) unlocked the account.")
    }

    /// Goes on under the key that is here: whoever can write to the remote can put another key's marker there, and this
    /// device has stopped for it.
    func rejectOtherKeys(in file: AccountFile) async throws {
        settleKey()
        let (protection, problem) = protection(of: file)
        if let problem { throw problem }
        try await reach(file.url, file.credentials, protection) { backend in
            try await (backend as? ToldBackend)?.keyHolding?.rejectOtherKeys()
            return try await backend.open(creatingAccount: false)
        } then: { backend, remote, held in
            guard let held, var key = try AccountKeyFile.read(in: directory), key.key == held.key else {
                throw RemoteError.keyGone
            }
            key.rejected = held.rejected
            try key.write(in: directory)
            var next = file
            next.isPaused = nil
            try commit(next) { try sync.signIn(to: backend, as: remote, bringingValues: false) }
        }
        listen()
        daemon.logger.notice("\(userName) rejected other keys than the one of this device.")
    }

    /// The words that let another device in.
    /// - Parameter marksShown: the user has seen them.
    func recoveryPhrase(marksShown: Bool) throws -> String {
        guard let file = try AccountFile.read(in: directory) else { throw Self.notSignedIn }
        guard file.isEncrypted == true else {
            throw BusError.store(.conflict, "The account is not encrypted, so it has no recovery phrase.")
        }
        let key: AccountKeyFile?
        do throws(AccountKeyFileError) { key = try AccountKeyFile.key(of: file.account, in: directory) } catch {
            throw BusError.store(.keyNeeded, "\(error)")
        }
        guard var key else { throw BusError.store(.keyNeeded, "The account's key is not on this device.") }
        if file.movingTo != nil || key.stage == .moving {
            throw BusError.store(
                .conflict, "The account is still moving to its new key; its recovery phrase is told once that is done.")
        }
        if marksShown, !key.wasShown {
            key.wasShown = true
            try key.write(in: directory)
        }
        return RecoveryPhrase(of: key.key).words.joined(separator: " ")
    }
}

extension RemoteError {
    fileprivate static let keyGone = RemoteError(
        .keyNeeded, "The account is encrypted, and its key is not on this device. Enter its recovery phrase.")
}
