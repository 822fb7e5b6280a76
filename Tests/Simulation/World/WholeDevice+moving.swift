// SPDX-License-Identifier: Apache-2.0

// Moves of accounts to keys, as the service makes them. The key is on the disk before anything is in the remote.
// KeyMove, MoveProgress and MarkerChoice decide the rest, from the disk and from what a cycle has found.

internal import Blobs
internal import Replication
internal import Sealing
internal import StoreEngine
internal import SyncEngine

extension WholeDevice {
    /// The key of an account, as the service stores it. The user writes the words down as soon as they are shown.
    struct KeyFile {
        var held: HeldKey
        var published: UInt64?
        /// When the move to this key began, in microseconds since 1970.
        var begun: UInt64 = 0

        init(_ held: HeldKey, former: FormerForms = FormerForms()) {
            self.held = held
            self.held.former = former
        }

        var standing: MoveProgress.Standing {
            MoveProgress.Standing(former: held.former, published: published, wasShown: true, tidied: tidied)
        }

        var tidied: UInt64? {
            didSet { held.former.areRemoved = tidied != nil }
        }
    }

    /// The key under which the device has its account.
    var key: KeyIdentifier? { account?.key?.held.key.identifier }

    /// Whether the account is between two forms, as far as its user has to wait for that.
    var isMoving: Bool {
        guard let account else { return false }
        return account.next != nil || account.key.map { !$0.held.former.isEmpty && $0.published == nil } == true
    }

    /// What the device knows of the encryption of a remote's account, where accounts move.
    func movingProtection(at place: Int) -> Protection {
        if let account, account.place == place {
            if let next = account.next { return .moving(KeyMove(from: account.key?.held, to: next.held)) }
            if let key = account.key { return .key(key.held) }
            if account.isSignedIn { return .none }
        }
        // A user who makes an encrypted account has its first key.
        if !world.keys.isEmpty, attempts % 2 == 0 { return .key(world.keys[place]) }
        return words(for: place).map { .phrase(RecoveryPhrase(of: $0)) } ?? .none
    }

    /// The words that the user tries next, beginning with those told last.
    private func words(for place: Int) -> AccountKey? {
        let told = world.told[place].filter { $0.identifier != key }
        return told.isEmpty ? nil : told[told.count - 1 - attempts / 2 % told.count]
    }

    // MARK: Moving

    /// Moves the account to a new key, as its user wants.
    func moveToKey() {
        guard let process, isSignedIn, !isMoving, !isSigningIn else { return }
        world.executor.start { [self] in
            try? await process.sync.syncNow()
            guard self.process === process, process.sync.hasReadAll, !process.sync.hasUnread, isSignedIn, !isMoving,
                !process.isAdoptingKey, !isSigningIn,
                let former = account
            else { return }
            let held = HeldKey(
                replacing: former.key?.held, time: process.database.environment.time(),
                random: { world.chance.next() })
            var next = KeyFile(held, former: former.forms)
            if former.key == nil {
                next.held.former.plain.formUnion(process.sync.identifiers.compactMap { KeyIdentifier($0) })
            }
            world.trace.note(
                world.timeline.now, 10, UInt64(number), line: "device \(number) moves to \(held.key.identifier)")
            next.begun = world.timeline.now
            account?.next = next
            hasKeyOnDisk = Rule.keyFirst.isOn
            change(onlyReads: true)
        }
    }

    /// Takes the next step of a move, after a cycle.
    func continueMove() async {
        guard let process, !process.isAdoptingKey, isSignedIn, let file = account else { return }
        if file.next != nil, process.sync.hasReadAll { hasKeyOnDisk = true }
        let facts = MoveProgress.Facts(
            time: process.database.environment.time(), needsKey: process.sync.needsKey,
            hasReadAll: process.sync.hasReadAll, hasUnread: process.sync.hasUnread,
            isPublished: process.sync.isPublished)
        let begun = file.next?.held.marker.time
        switch MoveProgress.next(movingSince: begun, key: begun == nil ? file.key?.standing : nil, facts) {
        case .wait where passesOver(facts, since: begun): await adoptKey(passingOver: true)
        case .wait: break
        case .giveWay: giveWay()
        case .adoptKey: await adoptKey()
        case .confirm:
            account?.key?.published = facts.time
            if let key = file.key?.held.key {
                world.tell(key, of: file.place)
                world.notePublished(under: key.identifier)
            }
        case .removeFormerForms: await removeFormerForms()
        }
    }

    /// Whether the user lets a move go on without parts of the former form that have not arrived for hours.
    private func passesOver(_ facts: MoveProgress.Facts, since begun: UInt64?) -> Bool {
        guard let begun, let process, world.resolvesByItself, !facts.hasReadAll, process.sync.hasJoinedReadable else {
            return false
        }
        return SyncCycle.isAway(facts.time, from: begun, by: 2 * MoveProgress.arrival)
    }

    /// Continues with the account on another backend.
    private func change(onlyReads: Bool) {
        guard let process, let place, let backend = try? process.backend(of: world.places[place]) else { return }
        process.sync.change(to: backend, onlyReads: onlyReads)
    }

    private func giveWay() {
        if let account, let next = account.next?.held, let chosen = chosenKey(of: account.place),
            chosen != next.key.identifier
        {
            // Its user knows which of their own moves came first, and that this one may have left notes.
            let move = KeyMove(from: account.key?.held, to: next)
            world.joinings[account.place] +=
                [move.link, KeyLink(from: next.key, to: chosen, .gaveWay)].compactMap { $0 }
        }
        account?.next = nil
        world.trace.note(world.timeline.now, 10, UInt64(number), line: "device \(number) gives way")
        change(onlyReads: false)
    }

    private func adoptKey(passingOver passesOver: Bool = false) async {
        guard let process, let file = account, var next = file.next else { return }
        let begun = next.held
        if file.key == nil {
            next.held.former.plain.formUnion(process.sync.identifiers.compactMap { KeyIdentifier($0) })
        }
        process.isAdoptingKey = true
        defer { process.isAdoptingKey = false }
        guard let backend = try? process.backend(of: world.places[file.place], .key(next.held)),
            let remote = try? await backend.open(creatingAccount: false), self.process === process,
            process.sync.hasReadAll || passesOver || !Rule.joinAgain.isOn, !process.sync.isInCycle, isSignedIn,
            account?.next?.held == begun
        else {
            if self.process === process, account?.next != nil, process.sync.needsKey { giveWay() }
            return
        }
        world.madeKeys[file.place].append(next.held)
        // If this device has skipped something, none of the former form counts as read.
        world.keyAdoptions.append(
            KeyAdoption(
                place: file.place, from: file.key?.held.key.identifier, next: next.held.key.identifier,
                begun: process.sync.hasUnread || passesOver ? 0 : next.begun))
        let names = Set(next.held.former.plain.map(\.description)).union([file.identifier])
        enter(remote, next, backend, formerly: names)
    }

    /// Goes over to a key. The file is written first, and the database follows it.
    private func enter(
        _ remote: RemoteAccount, _ key: KeyFile, _ backend: any RemoteBackend, formerly names: Set<String>
    ) {
        guard let process, var file = account else { return }
        world.trace.note(
            world.timeline.now, 10, UInt64(number), line: "device \(number) goes over to \(remote.identifier)")
        file.formerly.formUnion(names)
        // As in the service, this resumes a paused sync: a user who enters the words wants it to run.
        (file.identifier, file.key, file.next, file.isPaused) = (remote.identifier, key, nil, false)
        account = file
        continueSync(with: backend, of: file, in: process)
        process.noteAccount()
        process.verify()
    }

    /// Makes a database that knows the account by a former name follow the file.
    func continueSync(with backend: any RemoteBackend, of file: AccountFile, in process: Process) {
        do {
            var remote = RemoteAccount(identifier: file.identifier, aliases: file.formerly)
            remote.isEncrypted = file.key != nil
            try process.sync.signIn(to: backend, asRestored: remote)
        } catch {
            world.report("going over to a key: \(error)")
        }
    }

    private func removeFormerForms() async {
        guard let process, let holding = process.sync.backend as? any KeyHolding else { return }
        process.isAdoptingKey = true
        defer { process.isAdoptingKey = false }
        let identifier = account?.identifier
        guard (try? await holding.removeFormerForms()) != nil, account?.identifier == identifier else { return }
        account?.key?.tidied = process.database.environment.time()
    }

    // MARK: Unlocking

    /// Enters words that were told, until some open the account.
    func unlock() {
        guard let process, let file = account, process.sync.needsKey, !isMoving || file.next == nil, !isUnlocking else {
            return
        }
        if mayHaveFormerMarkers, key != nil, key == chosenKey(of: file.place), rejectOthers() { return }
        guard let words = words(for: file.place) else {
            attempts += 1
            return unlockLater()
        }
        attempts += 1
        isUnlocking = true
        world.executor.start { [self] in
            let opened = await open(with: words, file)
            isUnlocking = false
            guard self.process === process, process.sync.needsKey, account?.key?.held == file.key?.held else { return }
            guard let (backend, remote, held) = opened else { return unlockLater() }
            if remote.identifier == file.identifier { return change(onlyReads: false) }
            if let former = file.key?.held.key {
                world.joinings[file.place].append(KeyLink(from: former, to: held.key.identifier, .joined))
            }
            enter(remote, KeyFile(held, former: file.forms), backend, formerly: [file.identifier])
        }
    }

    /// Whether markers may be in the remote that nobody put there just now: an attacker has, or a server was restored to
    /// a backup, perhaps from amid a move that gave way.
    private var mayHaveFormerMarkers: Bool { world.attacker != nil || world.isRolledBack }

    /// The key that would be the account's without the attacker's keys. Users know which keys they have made or are
    /// making.
    private func chosenKey(of place: Int) -> KeyIdentifier? {
        let accounts = world.devices.filter { !$0.isGone }.compactMap(\.account).filter { $0.place == place }
        let moves = accounts.compactMap { $0.next?.held }
        // A move that gave way before it had written its note leads nowhere.
        let notes = world.joinings[place].filter {
            $0.kind != .replaced || world.places[place].has("\(BlobName.markers)/\($0.noteName)", seenBy: number)
        }
        let seen = SeenMarkers(sealed: (world.madeKeys[place] + moves).map(\.marker), notes: notes)
        guard case .keyNeeded(let key) = MarkerChoice(among: seen, key: nil, wasEncrypted: true) else { return nil }
        return key
    }

    /// Keeps this device's key and rejects the others, which an attacker or a backup may have put there.
    private func rejectOthers() -> Bool {
        guard let process, let file = account, let key = file.key, file.next == nil,
            let backend = try? process.backend(of: world.places[file.place], .key(key.held))
        else { return false }
        attempts += 1
        isUnlocking = true
        world.executor.start { [self] in
            let holding = backend as? any KeyHolding
            var isDone = (try? await holding?.rejectOtherKeys(andSuccessors: false)) != nil
            // The marker of a move that gave way may have been put back. Nobody has its words, so the key is replaced.
            let replacesKey = !isDone && isFirst(under: key.held.key.identifier, at: file.place)
            if replacesKey { isDone = (try? await holding?.rejectOtherKeys(andSuccessors: true)) != nil }
            if isDone { isDone = (try? await backend.open(creatingAccount: false)) != nil }
            let held = await holding?.heldKey
            isUnlocking = false
            guard self.process === process, process.sync.needsKey, account?.key?.held == key.held else { return }
            guard isDone, let held else { return unlockLater() }
            account?.key?.held = held
            change(onlyReads: false)
            if replacesKey { replaceKey(held.key.identifier) }
        }
        return true
    }

    /// Whether this is the one device on which its user replaces a key.
    private func isFirst(under key: KeyIdentifier, at place: Int) -> Bool {
        world.resolvesByItself
            && world.devices.first { !$0.isGone && $0.account?.place == place && $0.key == key } === self
    }

    /// Replaces a key, at the latest when everything has been read.
    private func replaceKey(_ former: KeyIdentifier) {
        // Another device's user needs ten minutes to enter the new words, and a quiet day has two.
        guard !world.isQuiet, key == former, account?.next == nil else { return }
        moveToKey()
        world.timeline.after(minute) { [weak self] in self?.replaceKey(former) }
    }

    private func open(
        with words: AccountKey, _ file: AccountFile
    ) async -> (any RemoteBackend, RemoteAccount, HeldKey)? {
        let phrase = Protection.phrase(RecoveryPhrase(of: words))
        guard let backend = try? process?.backend(of: world.places[file.place], phrase),
            let holding = backend as? any KeyHolding,
            let remote = try? await open(backend, at: file.place, creatingAccount: false)
        else { return nil }
        guard (try? await holding.noteJoining(from: file.key?.held.key, file.forms)) != nil else { return nil }
        return await holding.heldKey.map { (backend, remote, $0) }
    }

    /// Opens an account with words that its user knows to be right, whatever an attacker has planted.
    func open(
        _ backend: any RemoteBackend, at place: Int, creatingAccount createsAccount: Bool
    ) async throws(RemoteError) -> RemoteAccount {
        do throws(RemoteError) { return try await backend.open(creatingAccount: createsAccount) } catch {
            guard error.code == .otherKeys, world.movesToKeys, mayHaveFormerMarkers,
                let holding = backend as? any KeyHolding,
                await holding.heldKey?.key.identifier == chosenKey(of: place),
                (try? await holding.rejectOtherKeys(andSuccessors: false)) != nil
            else { throw error }
            return try await backend.open(creatingAccount: false)
        }
    }

    private func unlockLater() {
        if world.resolvesByItself { world.timeline.after(minute) { [weak self] in self?.unlock() } }
    }
}

extension WholeDevice.AccountFile {
    /// The former forms of the account, once it moves on.
    var forms: FormerForms {
        let name = KeyIdentifier(identifier).map { Set([$0]) } ?? []
        guard let key else { return FormerForms(plain: name) }
        return FormerForms(plain: key.held.former.plain, keys: name.union(key.held.former.keys))
    }
}
