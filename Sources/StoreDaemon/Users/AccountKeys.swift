// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import Replication
internal import SDBus
internal import Sealing
internal import StoreBus

/// The keys that a user's account has on this device, and what follows from them.
///
/// A key is on the disk before anything is written under it. Where it can't be used, sync rests and nothing leaves.
struct AccountKeys {
    /// The user's, with the account's file and those of its keys.
    let directory: String
    let environment: Environment
    let logger: Logger

    // MARK: What a backend is to know

    /// What is known of the encryption of an account, and why its key can't be used if it can't.
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
            logger.error("\(error)")
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
        return wish.encrypts ? .key(try first()) : .none
    }

    /// The key of a new account, which is on the disk before the account is anywhere. One that an attempt before has
    /// left is taken again: that may have made the account.
    private func first() throws -> HeldKey {
        if let left = try? AccountKeyFile.read(.next, in: directory), left.stage == .moving, left.former.areNone {
            return left.held
        }
        let held = HeldKey(time: environment.time(), random: environment.random)
        try AccountKeyFile(key: held.key, marker: held.marker, stage: .moving).write(.next, in: directory)
        return held
    }

    // MARK: The keys

    /// The key that an account is under, if it can be used.
    func current(of file: AccountFile) -> AccountKeyFile? {
        file.isEncrypted == true ? try? AccountKeyFile.key(of: file.account, in: directory) : nil
    }

    /// The key that an account has before it goes over to another one, and the forms that it has had.
    func former(of file: AccountFile) -> (AccountKey?, FormerForms) {
        let name = KeyIdentifier(file.account).map { Set([$0]) } ?? []
        guard file.isEncrypted == true else { return (nil, FormerForms(plain: name)) }
        let key = current(of: file)
        return (key?.key, FormerForms(plain: key?.wasPlain ?? [], keys: name.union(key?.left ?? [])))
    }

    /// The key that an account is moving to.
    func next(of file: AccountFile) -> AccountKeyFile? {
        guard let identifier = file.movingTo else { return nil }
        do {
            if let next = try AccountKeyFile.read(.next, in: directory), "\(next.key.identifier)" == identifier {
                return next
            }
            logger.error("The key that the account in \(directory) is moving to is not there.")
        } catch {
            logger.error("\(error)")
        }
        return nil
    }

    /// Keeps the key of an account that is about to be signed in to.
    /// - Parameters:
    ///   - wasShown: the user has the phrase.
    ///   - former: what the account was before.
    func keep(_ held: HeldKey?, wasShown: Bool, former: FormerForms = FormerForms()) throws {
        guard let held else { return }
        var kept: AccountKeyFile?
        do throws(AccountKeyFileError) {
            kept = try AccountKeyFile.key(of: "\(held.key.identifier)", in: directory)
        } catch {
            if case .tooNew = error { throw BusError.store(.keyNeeded, "\(error)") }
        }
        if var kept, kept.key == held.key {
            if kept.rejected.isSuperset(of: held.rejected), kept.awaited == held.awaited { return }
            kept.rejected.formUnion(held.rejected)
            kept.awaited = held.awaited
            return try kept.write(.next, in: directory)
        }
        try AccountKeyFile(
            key: held.key, marker: held.marker, left: former.keys, rejected: held.rejected, stage: .using,
            wasShown: wasShown, wasPlain: former.plain
        ).write(.next, in: directory)
    }

    /// Gives the key of an account that was signed in to its place. What fails here is made up for at the next start.
    func settle(_ account: String) {
        do { try AccountKeyFile.settle(account, in: directory) } catch {
            logger.error("The key of the account in \(directory) can't be put in place: \(error)")
        }
    }

    /// Refuses to leave an account that perhaps nobody could enter then.
    func checkPhraseIsKnown() throws {
        guard let file = try? AccountFile.read(in: directory), let key = current(of: file), !key.wasShown else {
            return
        }
        throw BusError.store(
            .conflict,
            "Nobody has confirmed the account's recovery phrase. Without it, and without a device that is signed in, "
                + "what is in the remote can't be read any more.")
    }

    /// The words that let another device in.
    /// - Parameter marksShown: the user has seen them.
    func recoveryPhrase(of file: AccountFile, marksShown: Bool) throws -> String {
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

    // MARK: A move

    /// Whether an account is moving to a key, or has gone over to one without all of this device's being there.
    func isMoving(_ file: AccountFile) -> Bool {
        file.movingTo != nil || current(of: file).map { $0.stage == .moving && !$0.former.areNone } == true
    }

    /// Which move is under way; `nil`: none.
    func move(of file: AccountFile) -> KeyChange? {
        if !isMoving(file) { return nil }
        let hadKey = file.movingTo == nil ? current(of: file)?.left.isEmpty == false : file.isEncrypted == true
        return hadKey ? .replacement : .encryption
    }

    /// Whether something may be to be done for a move after a sync cycle.
    var areWatched: Bool {
        guard let file = try? AccountFile.read(in: directory) else { return false }
        return file.movingTo != nil || current(of: file)?.former.areNone == false
    }

    /// Has an account move to a new key: both are on the disk then.
    func begin(_ next: AccountKeyFile, of file: AccountFile) throws {
        try next.write(.next, in: directory)
        var file = file
        file.movingTo = "\(next.key.identifier)"
        try file.write(in: directory)
    }

    /// Forgets the key that an account was moving to.
    /// - Returns: what the user is signed in to from now on.
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
