// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import SDBus
internal import Sealing
internal import StoreBus

/// The keys of a user's account on this device, and the protection that follows from them.
///
/// A key is on the disk before anything is written under it. If it can't be used, sync stops and nothing is uploaded.
struct AccountKeys {
    /// The user's directory, with the files of the account and its keys.
    let directory: String
    /// The account's identifier in the database, by which its key is found if the account's file can't be read.
    let account: String
    let environment: Environment
    let logProblem: @Sendable (String) -> Void

    // MARK: Protection

    /// Returns what is known of an account's encryption, and the reason if its key can't be used.
    func protection(of file: AccountFile) -> (Protection, RemoteError?) {
        let (former, problem) = formerProtection(of: file)
        guard problem == nil, let next = next(of: file) else { return (former, problem) }
        return (.moving(KeyMove(from: former.held, to: next.held)), nil)
    }

    private func formerProtection(of file: AccountFile) -> (Protection, RemoteError?) {
        guard file.isEncrypted == true else { return (.none, nil) }
        do throws(AccountKeyFileError) {
            if let key = try AccountKeyFile.key(of: file.account, in: directory) { return (.key(key.held), nil) }
        } catch {
            logProblem("\(error)")
            return (.locked, RemoteError(.keyNeeded, "\(error)"))
        }
        return (.locked, .keyGone)
    }

    /// Returns what is known of the encryption of an account that the user signs in to.
    ///
    /// The key of a new account is written to the disk before the account is created.
    /// - Parameter createsAccount: false if no account is created, so that such a key is forgotten.
    func protection(
        at url: String, _ options: EncryptionOptions, creatingAccount createsAccount: Bool = true
    ) throws -> Protection {
        if let phrase = options.phrase { return .phrase(phrase) }
        // To sign in again is the way to repair a file that can't be read. The keys that are there are candidates then.
        if isUnreadable { return .none }
        if let file = try AccountFile.read(in: directory), file.isAt(url),
            file.isEncrypted == true || file.movingTo != nil
        {
            return protection(of: file).0
        }
        if !options.encrypts { return .none }
        if let attempted = attempted.key(at: url) { return .key(attempted) }
        let held = HeldKey(time: environment.time(), random: environment.random)
        if createsAccount { try attempted.keep(held, at: url) }
        return .key(held)
    }

    /// The keys of accounts that earlier attempts may have created.
    private var attempted: AttemptedKeys { AttemptedKeys(directory: directory) }

    /// Returns the keys that may open an encrypted account at a URL without its phrase: that of an attempt to create it,
    /// and that of the account that is signed in, because the server may have another name now.
    func candidates(at url: String) -> [HeldKey] {
        let own = isUnreadable ? stored.map(\.held) : [present(elsewhereThan: url)].compactMap(\.self)
        return [attempted.key(at: url)].compactMap(\.self) + own
    }

    /// Runs `body` with what is known of the encryption of an account that the user signs in to and, without a phrase,
    /// with this device's other keys that may open it, until one does.
    /// - Parameters:
    ///   - createsAccount: whether an account may be created.
    ///   - body: opens the account; `isCandidate` says whether the key is one of the others, which create no account.
    @BusActor
    func withKeys<Result>(
        at url: String, _ options: EncryptionOptions, creatingAccount createsAccount: Bool,
        _ body: (Protection, _ isCandidate: Bool) async throws -> Result
    ) async throws -> Result {
        let tried = try protection(at: url, options, creatingAccount: createsAccount)
        do { return try await body(tried, false) } catch let error as RemoteError
            where error.code == .keyNeeded && options.phrase == nil
        {
            for key in candidates(at: url) where tried.held != key {
                do { return try await body(.key(key), true) } catch let error as RemoteError
                    where error.code == .keyNeeded
                {}
            }
            throw error
        }
    }

    // MARK: The keys

    /// Whether the account's file can't be read.
    private var isUnreadable: Bool {
        do { _ = try AccountFile.read(in: directory) } catch { return true }
        return false
    }

    /// The account's key, if the account's file can't be read; `nil` if there is none. A new database doesn't know the
    /// account; then it is the key that is in use.
    private var keyOfUnreadable: AccountKeyFile? {
        account.isEmpty ? try? AccountKeyFile.read(in: directory) : try? AccountKeyFile.key(of: account, in: directory)
    }

    /// Whether the account's file can't be read, and the account is encrypted.
    var isUnreadableEncrypted: Bool { isUnreadable && keyOfUnreadable != nil }

    /// Whether a key is in one of the files.
    func isStored(_ held: HeldKey) -> Bool { stored.contains { $0.key == held.key } }

    /// Refuses to replace the stored keys by another one, if possibly nobody could open their accounts afterwards.
    func checkMayReplace(with held: HeldKey?) throws {
        guard let held, !isStored(held) else { return }
        try checkPhraseIsKnown()
    }

    /// Returns the key that the account uses; `nil` if it has none or the key can't be used.
    func current(of file: AccountFile) -> AccountKeyFile? {
        file.isEncrypted == true ? try? AccountKeyFile.key(of: file.account, in: directory) : nil
    }

    /// Returns the key of the account that is signed in at another URL than this one; `nil` if there is none.
    private func present(elsewhereThan url: String) -> HeldKey? {
        guard let file = try? AccountFile.read(in: directory), !file.isAt(url), !isMoving(file) else { return nil }
        return current(of: file)?.held
    }

    /// Returns the key that an account has before it switches to another one, and the forms that it has had.
    func former(of file: AccountFile) -> (AccountKey?, FormerForms) {
        let name = KeyIdentifier(file.account).map { Set([$0]) } ?? []
        guard file.isEncrypted == true else { return (nil, FormerForms(plain: name)) }
        let key = current(of: file)
        return (key?.key, FormerForms(plain: key?.wasPlain ?? [], keys: name.union(key?.left ?? [])))
    }

    /// Returns the key that an account is moving to; `nil` if it isn't moving or the key is missing.
    func next(of file: AccountFile) -> AccountKeyFile? {
        guard let identifier = file.movingTo else { return nil }
        do {
            if var next = try AccountKeyFile.read(.next, in: directory), "\(next.key.identifier)" == identifier {
                // The account may have got another name since the move began: a marker of another device has arrived.
                if file.isEncrypted != true, let name = KeyIdentifier(file.account) { next.wasPlain.insert(name) }
                return next
            }
            logProblem("The key that the account in \(directory) is moving to is missing.")
        } catch {
            logProblem("\(error)")
        }
        return nil
    }

    /// Whether the key that an account is moving to is missing or damaged.
    func hasLostNext(of file: AccountFile) -> Bool {
        guard let identifier = file.movingTo else { return false }
        do throws(AccountKeyFileError) {
            return try AccountKeyFile.read(.next, in: directory).map { "\($0.key.identifier)" != identifier } ?? true
        } catch {
            if case .damaged = error { return true }
            return false
        }
    }

    /// Stores the key of an account before the user is signed in to it.
    /// - Parameters:
    ///   - wasShown: whether the user has the recovery phrase.
    ///   - former: the forms that the account had before.
    func keep(_ held: HeldKey?, wasShown: Bool, former: FormerForms = FormerForms()) throws {
        guard let held else { return }
        var kept: AccountKeyFile?
        do throws(AccountKeyFileError) {
            kept = try AccountKeyFile.key(of: "\(held.key.identifier)", in: directory)
        } catch {
            if case .tooNew = error { throw BusError.store(.keyNeeded, "\(error)") }
        }
        if var kept, kept.key == held.key {
            let before = kept
            kept.rejected.formUnion(held.rejected)
            kept.awaited = held.awaited
            kept.wasPlain.formUnion(former.plain)
            if kept == before { return }
            // Another account's key may be in the slot for the next one.
            let next = try? AccountKeyFile.read(.next, in: directory)
            return try kept.write(next.map { $0.key == kept.key } == false ? .current : .next, in: directory)
        }
        if let present = try? AccountFile.read(in: directory) { try clearNext(of: present) }
        try AccountKeyFile(
            key: held.key, marker: held.marker, left: former.keys, rejected: held.rejected, stage: .using,
            wasShown: wasShown, wasPlain: former.plain
        ).write(.next, in: directory)
    }

    /// Makes the slot ``AccountKeyFile/Slot/next`` free for another key. That of an account may still be there, if it
    /// could not be put in place when the user signed in.
    private func clearNext(of file: AccountFile) throws { try AccountKeyFile.settle(file.account, in: directory) }

    /// Moves the key of an account that was signed in to into its slot. After a failure, the next start tries again.
    func settle(_ account: String) {
        do {
            try AccountKeyFile.settle(account, in: directory)
            // If the key isn't in its slot, this may be the only other copy.
            guard let key = KeyIdentifier(account), try AccountKeyFile.read(in: directory)?.key.identifier == key else {
                return
            }
            try attempted.remove(key)
        } catch {
            logProblem("The key of the account in \(directory) can't be put in place: \(error)")
        }
    }

    /// Whether the account's key is on this device, and nobody has confirmed its recovery phrase. If the account's file
    /// can't be read, its key is among those that are there.
    var isPhraseUnconfirmed: Bool {
        do { return try AccountFile.read(in: directory).flatMap(current)?.wasShown == false } catch {
            return stored.contains { !$0.wasShown }
        }
    }

    /// The keys in both files, whatever account they are of.
    private var stored: [AccountKeyFile] {
        AccountKeyFile.Slot.allCases.compactMap { try? AccountKeyFile.read($0, in: directory) }
    }

    /// The names of the accounts under the stored keys, and under those that these have replaced.
    var names: Set<String> {
        Set(stored.flatMap { $0.left.union([$0.key.identifier]) }.map { "\($0)" })
    }

    private func checkPhraseIsKnown() throws {
        guard isPhraseUnconfirmed else { return }
        throw BusError.store(
            .conflict,
            "Nobody has confirmed the account's recovery phrase. Without the phrase, and without a device that is "
                + "signed in, nobody can read the account any more. Show the phrase first (\"ubiquitousctl account "
                + "phrase\").")
    }

    /// Refuses to leave an account in whose remote its former forms may still be. This device removes them, and others
    /// only if they had the account in that form.
    private func checkFormerFormsAreRemoved() throws {
        guard let key = try AccountFile.read(in: directory).flatMap(current), !key.former.isEmpty, key.tidied == nil
        else { return }
        throw BusError.store(
            .conflict,
            "The remote still has the account's files from before it had this key. This device removes them ten minutes "
                + "after the move, once its recovery phrase was shown. Leave the account after that.")
    }

    /// Refuses to leave an account that possibly nobody could open afterwards, or whose former forms would stay.
    /// - Parameter isReachable: whether the remote can be used, so that they can be removed.
    func checkMayLeave(isReachable: Bool) throws {
        try checkPhraseIsKnown()
        if isReachable { try checkFormerFormsAreRemoved() }
    }

    /// Does the same before this device signs in to an account at another address.
    func checkMayLeave(for url: String, isReachable: Bool) throws {
        // Where the file can't be read, signing in finds out whether this is the account.
        guard let file = try? AccountFile.read(in: directory), !file.isAt(url) else { return }
        try checkMayLeave(isReachable: isReachable)
    }

    /// Returns the recovery phrase, which lets other devices in.
    /// - Parameter marksShown: whether the user has seen the phrase.
    func recoveryPhrase(marksShown: Bool) throws -> String {
        var key: AccountKeyFile
        if isUnreadable, let found = keyOfUnreadable, !stored.contains(where: { $0.stage == .moving }) {
            key = found
        } else {
            guard let file = try AccountFile.read(in: directory) else { throw UserAccount.notSignedIn }
            key = try keyWithPhrase(of: file)
        }
        if key.stage == .moving { throw Self.stillMoving }
        if marksShown, !key.wasShown {
            key.wasShown = true
            try key.write(in: directory)
        }
        return RecoveryPhrase(of: key.key).words.joined(separator: " ")
    }

    private func keyWithPhrase(of file: AccountFile) throws -> AccountKeyFile {
        guard file.isEncrypted == true else {
            throw BusError.store(.conflict, "The account is not encrypted, so it has no recovery phrase.")
        }
        let key: AccountKeyFile?
        do throws(AccountKeyFileError) { key = try AccountKeyFile.key(of: file.account, in: directory) } catch {
            throw BusError.store(.keyNeeded, "\(error)")
        }
        guard let key else { throw BusError.store(.keyNeeded, "The account's key is not on this device.") }
        if file.movingTo != nil { throw Self.stillMoving }
        return key
    }

    private static let stillMoving = BusError.store(
        .conflict,
        "The account is still moving to its new key; its recovery phrase will be available when the move is complete.")

    // MARK: A move

    /// Whether the account is moving to a key. If its file can't be read, the keys on the disk tell.
    var isAccountMoving: Bool {
        do { return try AccountFile.read(in: directory).map(isMoving) ?? false } catch {
            return stored.contains(where: \.isMoving)
        }
    }

    /// Whether an account is moving to a key, or has switched to it but not all of this device's data is uploaded.
    func isMoving(_ file: AccountFile) -> Bool {
        file.movingTo != nil || current(of: file)?.isMoving == true
    }

    /// Whether the account has yet to begin a move, because other devices have left its key. Until then, only this device
    /// reads what it uploads.
    func isToBeReplaced(in file: AccountFile) -> Bool { current(of: file)?.isToBeReplaced == true }

    /// Returns the kind of move that is under way or is to begin; `nil` if there is none.
    func move(of file: AccountFile) -> KeyChange? {
        if isToBeReplaced(in: file) { return .replacement }
        if !isMoving(file) { return nil }
        let hadKey = file.movingTo == nil ? current(of: file)?.left.isEmpty == false : file.isEncrypted == true
        return hadKey ? .replacement : .encryption
    }

    /// Whether a move may need a step after a sync cycle.
    var areWatched: Bool {
        guard let file = try? AccountFile.read(in: directory) else { return false }
        return file.movingTo != nil || isToBeReplaced(in: file) || current(of: file)?.former.isEmpty == false
    }

    /// Begins an account's move to a new key. Both the key and the intent are on the disk then.
    func begin(_ next: AccountKeyFile, of file: AccountFile) throws {
        try clearNext(of: file)
        try next.write(.next, in: directory)
        var file = file
        file.movingTo = "\(next.key.identifier)"
        try file.write(in: directory)
    }

    /// Forgets the key that an account was moving to.
    /// - Returns: the account's file without the move.
    func withdraw(from file: AccountFile) throws -> AccountFile {
        var file = file
        file.movingTo = nil
        try file.write(in: directory)
        try AccountKeyFile.removeNext(in: directory)
        return file
    }
}

extension RemoteError {
    static let keyGone = RemoteError(
        .keyNeeded, "The account is encrypted, and its key is not on this device. Enter its recovery phrase.")
}
