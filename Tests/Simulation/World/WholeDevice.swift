// SPDX-License-Identifier: Apache-2.0

// A device that runs the real engine: its database, its sync and its backend. The simulation provides the clock, the
// random numbers, the disk's syncs and the remote.

internal import Blobs
internal import PropertyList
internal import Replication
internal import Sealing
internal import StoreEngine
internal import SyncEngine

/// A device of the whole form.
final class WholeDevice: SimulatedDevice, @unchecked Sendable {
    // Safe because everything that touches it happens on one thread.
    let number: Int
    unowned let world: World<WholeDevice>
    let files: DatabaseFiles
    var isGone = false
    var clock: Int64 = 0
    /// How often the clock was read. Each reading adds a microsecond.
    var readsOfClock: Int64 = 0
    private(set) var process: Process?
    /// The service's record beside the database: which account it has, and whether it is signed in.
    var account: AccountFile?
    private var backup: (image: DatabaseFiles.Image, account: AccountFile?)?
    private var snapshot: (image: DatabaseFiles.Image, runtimeRecord: [UInt8], account: AccountFile?)?
    /// The account that the user wants to be signed in to.
    private var wanted: Int?
    private(set) var isSigningIn = false
    /// How often the user has tried to sign in.
    private var signIns = 0
    /// How often the user has declared this device's state right.
    private var resolutions = 0
    /// The remotes in which the user knows to have an account, so that none is made there.
    private var known: Set<Int> = []
    /// The keys whose markers the user has rejected.
    private(set) var rejected: Set<KeyIdentifier> = []
    /// Whether the key is lost, and the user has not entered the words yet.
    private(set) var hasLostKey = false
    /// How often the user has tried words, and whether an attempt is under way.
    var attempts = 0
    var isUnlocking = false
    /// Whether the key that the account is moving to survives the process.
    var hasKeyOnDisk = true

    struct AccountFile {
        var place: Int
        var identifier: String
        var isSignedIn: Bool
        var isPaused = false
        /// The identifiers that the account had before it went over to a key.
        var formerly: Set<String> = []
        /// Where accounts move: the account's key, and the key that it is moving to.
        var key: KeyFile?
        var next: KeyFile?
    }

    init(number: Int, world: World<WholeDevice>) {
        self.number = number
        self.world = world
        files = DatabaseFiles("\(world.root)/\(number)")
    }

    var origin: Origin? { process?.database.origin }
    var isRunning: Bool { process != nil }
    var place: Int? { account?.place }
    var isSignedIn: Bool { account?.isSignedIn ?? false }

    var isSettled: Bool {
        guard let process, isSignedIn, process.database.account.isDownloaded else { return false }
        return process.sync.state == .idle && !process.sync.hasPendingChanges
    }

    var lacksParts: Bool {
        guard isSettled, let sync = process?.sync else { return false }
        // What devices lack that were removed from the list is no error.
        return sync.lastError?.code == .unavailable || sync.hasJoinedReadable && !sync.hasReadAll
    }

    // MARK: The process

    func start() {
        do {
            let process = try Process(self)
            self.process = process
            process.begin()
        } catch {
            world.report("device \(number) can't be started: \(error)")
        }
    }

    func stop(_ ending: StopKind) {
        guard let process else { return }
        self.process = nil
        (isSigningIn, isUnlocking) = (false, false)
        if !hasKeyOnDisk { account?.next = nil }
        process.client.isAlive = false
        switch ending {
        case .restart:
            process.end()
            files.noteClose()
        case .crash, .reboot, .powerCut:
            let image = ending == .powerCut ? files.imageAfterPowerCut(&world.chance) : files.image
            // Closing moves the log into the database, which a killed process does not do.
            process.end()
            if ending == .crash { files.leave(image) } else { files.write(image) }
            files.writeRuntimeRecord([])
        }
        world.trace.note(world.timeline.now, 5, UInt64(number), line: "device \(number) ends: \(ending)")
    }

    func dieAfter(writes: Int?) {
        guard let process else { return }
        process.client.deathAfter = writes
        process.client.onDeath = { [unowned self, unowned process] in
            guard self.process === process else { return }
            stop(.crash)
            world.startLater(self, 10 * second)
        }
    }

    func end() {
        process?.client.isAlive = false
        process?.end()
        process = nil
        isGone = true
    }

    // MARK: The disk

    func backUp() { backup = (files.image, account) }

    func restore() -> Bool {
        guard let backup else { return false }
        files.write(backup.image)
        account = backup.account
        return true
    }

    // Like a copy, a snapshot is taken with `/run`, at a moment when the service does not run.
    func takeSnapshot() {
        stop(.restart)
        world.executor.drain()
        snapshot = (files.image, files.runtimeRecord, account)
        start()
    }

    func revert() {
        guard let snapshot else { return }
        stop(.crash)
        world.executor.drain()
        files.write(snapshot.image)
        files.writeRuntimeRecord(snapshot.runtimeRecord)
        account = snapshot.account
        start()
    }

    func copyDisk(of other: WholeDevice, isFork: Bool) {
        hasKeyOnDisk = other.hasKeyOnDisk
        // A machine that is copied while it runs is copied with `/run`, here at a moment when the service does not run.
        if isFork { other.stop(.restart) }
        files.write(other.files.image)
        if isFork {
            files.writeRuntimeRecord(other.files.runtimeRecord)
            other.start()
        }
        account = other.account
        wanted = other.wanted
        known = other.known
    }

    // MARK: The account

    func signIn(to place: Place<[UInt8]>) {
        wanted = place.number
        if isSignedIn, account?.place == wanted { continueSync() } else { trySigningIn() }
    }

    private func signInLater() {
        world.timeline.after(minute) { [weak self] in
            guard let self, isRunning, let wanted, account?.place != wanted else { return }
            signIn(to: world.places[wanted])
        }
    }

    /// Tries to sign in until it succeeds, as a patient user does.
    private func trySigningIn() {
        guard let process, let wanted, !isSigningIn, !isGone else { return }
        // The service refuses to leave an account while only this device has its key. If that account is gone, its move
        // goes on once the user has said that this device is right.
        if isMoving, account?.place != wanted {
            resolve()
            return signInLater()
        }
        isSigningIn = true
        hasLostKey = false
        signIns += 1
        let signIn = signIns
        world.trace.note(world.timeline.now, 8, UInt64(number), line: "device \(number) signs in to account \(wanted)")
        world.executor.start { [self] in
            do throws(RemoteError) {
                let backend = try process.backend(of: world.places[wanted])
                let remote = try await open(backend, at: wanted, creatingAccount: !known.contains(wanted))
                let held = await (backend as? any KeyHolding)?.heldKey
                guard self.process === process else { return }
                isSigningIn = false
                if wanted == self.wanted { process.enter(remote, backend, wanted, held) } else { trySigningIn() }
            } catch {
                guard self.process === process else { return }
                isSigningIn = false
                attempts += 1
                // The device's account was encrypted meanwhile, so its user enters the words.
                if error.code == .keyNeeded, world.movesToKeys, process.sync.isReset, account?.place == wanted {
                    return process.sync.postpone(error)
                }
                if error.code == .keyNeeded { rejectOthers() }
                // A user who has tried again meanwhile doesn't try twice.
                world.timeline.after(minute) { [weak self] in
                    if self?.signIns == signIn { self?.trySigningIn() }
                }
            }
        }
    }

    /// Continues after sync has stopped, as a user would: enters the words, signs in again, or declares this device's
    /// state right, for example because the remote was emptied.
    func continueSync() {
        hasLostKey = false
        if world.movesToKeys, isSignedIn, let process, process.sync.needsKey { return unlock() }
        if isSignedIn, let process, process.sync.needsKey, let place = account?.place {
            rejectOthers()
            guard let backend = try? process.backend(of: world.places[place]) else { return }
            return process.sync.change(to: backend, onlyReads: false)
        }
        guard isSignedIn, hasReset, let place = account?.place, wanted ?? place == place else { return }
        wanted = place
        if process?.sync.isReset == false { return resolve() }
        // A user does not sign in again to an account that moves or has moved.
        let hasKey = account?.key != nil || account?.next != nil
        if world.isEmptied || world.isRolledBack || hasKey { resolve() } else { trySigningIn() }
    }

    func loseKey() {
        if world.keys.isEmpty || !isRunning { return }
        stop(.restart)
        hasLostKey = true
        start()
    }

    /// Rejects markers of other accounts that the attacker has planted: those of the attacker's keys, and those of the
    /// other remotes.
    private func rejectOthers() {
        guard let attacker = world.attacker else { return }
        rejected = attacker.identifiers.union(world.keys.map(\.key.identifier))
    }

    /// Whether the user has to say which side is right: the account is gone, or its marker is damaged.
    private var hasReset: Bool {
        guard let process else { return false }
        return process.sync.isReset || process.isStoppedByDamage
    }

    /// Declares this device's state right, and retries until that succeeds.
    func resolve() {
        guard let process, let account, hasReset, !isSigningIn,
            let backend = try? process.backend(of: world.places[account.place])
        else { return }
        isSigningIn = true
        resolutions += 1
        let resolution = resolutions
        world.trace.note(world.timeline.now, 9, UInt64(number), line: "device \(number) resolves")
        world.executor.start { [self] in
            let restored: Result<RemoteAccount, RemoteError>
            do throws(RemoteError) { restored = .success(try await backend.restore(account.identifier)) } catch {
                restored = .failure(error)
            }
            guard self.process === process else { return }
            isSigningIn = false
            guard hasReset else { return }
            switch restored {
            case .success where account.next != nil: return process.sync.change(to: backend, onlyReads: true)
            case .success(let remote):
                return process.enter(remote, backend, account.place, account.key?.held, isRestored: true)
            case .failure(let error) where error.code == .keyNeeded: return process.sync.postpone(error)
            case .failure: break
            }
            // As in signing in, one loop is enough.
            world.timeline.after(minute) { [weak self] in
                if self?.resolutions == resolution { self?.resolve() }
            }
        }
    }

    func noteEntry(_ file: AccountFile) {
        if account == nil { world.noteEntry(self, to: file.place) }
        var file = file
        if let account, account.place == file.place, account.key?.held.key == file.key?.held.key {
            (file.key, file.next, file.formerly) = (account.key, account.next, account.formerly)
        }
        account = file
        known.insert(file.place)
    }

    func notePause(_ isPaused: Bool) { account?.isPaused = isPaused }

    func noteRename(_ identifier: String) {
        account?.identifier = identifier
        if account?.key == nil, let name = KeyIdentifier(identifier) { account?.next?.held.former.plain.insert(name) }
    }

    func signOut(keepingValues: Bool) {
        guard let process else { return }
        wanted = nil
        do { try process.sync.signOut(keepingValues: keepingValues) } catch { world.report("signing out: \(error)") }
        if keepingValues { account?.isSignedIn = false } else { account = nil }
        // Signing out removes the key, and with it the account's former identifiers.
        if world.movesToKeys, let left = account {
            account = AccountFile(place: left.place, identifier: left.identifier, isSignedIn: false)
        }
        process.noteAccount()
        process.verify()
    }

    func syncNow() {
        guard let process, isSignedIn else { return }
        world.executor.start { try? await process.sync.syncNow() }
    }

    func noteHint() { process?.sync.noteHint() }

    // MARK: Reading

    func state(of store: Int) -> StoreState { process?.store(store).snapshot().state ?? StoreState() }

    func values(of store: Int) -> [Int: Int64] {
        var values: [Int: Int64] = [:]
        process?.store(store).forEachValue { key, value in
            guard let index = Names.index(of: key), let number = Names.number(of: value) else { return }
            values[index] = number
        }
        return values
    }

    func overflow(of store: Int) -> [String] {
        guard let store = process?.store(store) else { return [] }
        return store.isOverQuota ? store.overflow.map(\.string) : []
    }

    func check() -> String? {
        guard let process else { return nil }
        process.verify()
        guard let error = process.sync.lastError else { return nil }
        // The service reports a damaged object as long as it is there, which does no harm.
        if error.code != .damaged { return "an error is left: \(error)" }
        world.ledger.excuse(.reportedDamage)
        return nil
    }

    // MARK: Blobs

    static var hasTasks: Bool { true }

    static func tear(_ blob: [UInt8]) -> [UInt8]? { blob.count < 2 ? nil : Array(blob.prefix(blob.count / 2)) }

    static func summary(of blob: [UInt8]) -> String { "\(blob.count) bytes" }
    static var pollsUntilNoticed: UInt64 { 21 }

    static var junk: [(String, [UInt8])] {
        [
            ("h/desktop.ini", [1, 2, 3]), ("h/0123456789abcdef", Array("no head".utf8)), ("h/.tmp", []),
            ("s/readme\n.txt", []), ("a/0000", [0]), ("s/00000000000000000000000000000000", [7]),
        ]
    }

    func forgetTombstones(_ chance: inout Chance) -> Bool { false }
}

/// The names of stores and keys, and the values of writes.
struct Names {
    static let stores = (0..<4).map { "store\($0)" }

    /// Whether keys and values are long enough to be found in what leaves a device.
    let areSecret: Bool
    let keys: [Key]

    private static let (key, secretKey, secretValue) = ("k", "secret ", "written ")
    /// Texts that must not appear in anything that leaves a device of an encrypted account.
    static let secrets = [secretKey, secretValue, "store0", "store1", "store2", "store3", "device", "Device", "hidden"]

    init(areSecret: Bool = false) {
        self.areSecret = areSecret
        keys = (0..<64).map { Key(unchecked: "\(areSecret ? Self.secretKey : Self.key)\($0)") }
    }

    /// The value that the write with this number sets.
    func value(of number: Int64) -> Value {
        areSecret ? .string(Text("\(Self.secretValue)\(number)")) : .integer(number)
    }

    /// The index of a key; `nil` if plans do not use it.
    static func index(of key: Key) -> Int? {
        let prefix = [secretKey, Self.key].first { key.string.hasPrefix($0) }
        return prefix.flatMap { Int(key.string.dropFirst($0.count)) }
    }

    /// The number of the write that has set a value; `nil` if none has.
    static func number(of value: Value) -> Int64? {
        switch value {
        case .integer(let number): number
        case .string(let text) where text.string.hasPrefix(secretValue):
            Int64(text.string.dropFirst(secretValue.count))
        default: nil
        }
    }
}
