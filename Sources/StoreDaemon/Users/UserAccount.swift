// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import PropertyList
internal import Replication
internal import SDBus
internal import Sealing
internal import StoreBus
internal import StoreEngine
internal import SyncEngine

/// One user's account as the bus has it: what the user is signed in to, and its sync.
@BusActor
final class UserAccount {
    let uid: UInt32
    let path: String
    private(set) var sync: AccountSync
    var url = ""
    /// Whether the account in the file is encrypted: the file is not read for each question.
    var isFileEncrypted = false
    private(set) var database: UserDatabase
    let directory: String
    unowned let daemon: Daemon
    /// Whose account it is.
    private weak var user: User?
    let subscribers = AccountSubscribers()
    /// How many subscriptions the user's stores have.
    private var storeSubscriptions = 0
    private lazy var timer = CycleTimer(in: directory) { [weak self] in await self?.runDueCycles() }
    var listener: Task<Void, Never>?
    let attempts = Attempts()
    private(set) lazy var move = MoveToKey(of: self)
    /// Calls that are answered later.
    var callsUnderWay = 0
    private var log = AccountLog()
    /// The user's name, once it could be looked up: a user of another name has another directory.
    var name: String? {
        if known == .late { known = UserLookup.shared.entry(.uid(uid)) }
        if case .known(let entry) = known { return entry?.name }
        return nil
    }
    private var known = UserLookup.Answer.late
    /// What the user is signed in to; `nil`: nothing.
    func savedFile() throws -> AccountFile? { try AccountFile.read(in: directory) }
    var keys: AccountKeys {
        AccountKeys(directory: directory, environment: daemon.environment, logger: daemon.logger)
    }
    /// The user in the journal.
    var userName: String { UserName.text(name, uid) }

    init(_ uid: UInt32, database: UserDatabase, directory: String, daemon: Daemon) throws {
        self.uid = uid
        self.database = database
        self.directory = directory
        self.daemon = daemon
        path = BusNames.accountPath(uid: uid)
        sync = try Self.makeSync(database, daemon)
    }

    private static func makeSync(_ database: UserDatabase, _ daemon: Daemon) throws -> AccountSync {
        AccountSync(
            database,
            device: RemoteDevice(
                identifier: try database.deviceIdentifier(), name: daemon.configuration.deviceName),
            monotonicTime: { EventLoop.now })
    }

    // MARK: Beginning and ending

    /// Goes on with the account that the user is signed in to, if there is one.
    func start(for user: User) {
        self.user = user
        resume()
    }

    private func resume() {
        connectSync()
        guard AccountFile.exists(in: directory) else { return }
        do {
            guard let file = try savedFile() else { return }
            sync.devices.own = RemoteDevice(identifier: sync.devices.own.identifier, name: file.deviceName)
            sync.devices.announcesName = file.announcesName ?? false
            (url, isFileEncrypted) = (file.url, file.isEncrypted == true)
            // The file is written first, and a database that was set aside has forgotten whose values it had.
            let former = database.account.identifier
            let isGoingOver = former != file.account && file.formerly?.contains(former) == true
            if former != file.account, !isGoingOver {
                _ = try database.enter(account: file.account, bringingValues: false)
            }
            try daemon.configuration.check(scheme: file.url)
            let (protection, problem) = keys.protection(of: file)
            try daemon.configuration.check(protection)
            let backend = try makeBackend(file.url, file.credentials, protection)
            if isGoingOver {
                try sync.signIn(to: backend, asRestored: RemoteAccount(identifier: file.account, aliases: [former]))
            } else {
                sync.resume(with: backend, onlyReads: protection.move != nil)
            }
            sync.setPaused(file.isPaused ?? false)
            keys.settle(accountIdentifier)
            move.watch()
            if let problem { sync.postpone(problem) }
            if problem == nil, let wait = timer.wait { sync.postpone(Self.suspicion(wait)) }
            listen()
        } catch {
            let error = error as? RemoteError ?? RemoteError(.damaged, "The account can't be read: \(error).")
            daemon.logger.error("The account of the user \(uid) can't be used: \(error)")
            sync.fail(error)
        }
    }

    /// Tries anew to go on with an account that can't be used: the settings may allow it now.
    func startIfFailed() {
        if sync.isSignedIn, !sync.hasBackend { resume() }
    }

    /// Goes on with a new database, after the old one was set aside.
    func replace(database: UserDatabase) throws {
        let next = try Self.makeSync(database, daemon)
        listener?.cancel()
        timer.pause()
        sync.close()
        self.database = database
        next.hasSubscribers = sync.hasSubscribers
        next.circumstances = sync.circumstances
        (sync, url) = (next, "")
        resume()
    }

    /// Sets the database aside that a cycle found damaged, as a call would.
    private func recover(_ reason: String) {
        do { try user?.recover(reason) } catch {
            daemon.logger.error("The database of the user \(uid) can't be replaced: \(error)")
            sync.fail(RemoteError(.damaged, "This device's database is damaged: \(error)."))
        }
    }

    /// Ends what is under way.
    func stop() {
        listener?.cancel()
        sync.close()
        timer.stop()
        user = nil
    }

    private func connectSync() {
        sync.localKeys = { [weak self] identifier in
            BusActor.assumeIsolated { self?.user?.manifests.localKeys(of: identifier) ?? .none }
        }
        sync.onNotice = { [weak self] notice in
            BusActor.assumeIsolated(lending: (self, notice)) { account, notice in account?.tell(notice) }
        }
        sync.onLeave = { backend in BusActor.assumeIsolated { Self.close(backend) } }
        sync.onRename = { [weak self] in BusActor.assumeIsolated { self?.renewFile() } }
        sync.devices.onOwnChange = { [weak self] in BusActor.assumeIsolated { self?.renewFile() } }
        sync.onDamage = { [weak self] reason in BusActor.assumeIsolated { self?.recover(reason) } }
        sync.onStateChange = { [weak self] in BusActor.assumeIsolated { self?.tellState() } }
        sync.onScheduleChange = { [weak self] in BusActor.assumeIsolated { self?.arm() } }
    }

    static func close(_ backend: any RemoteBackend) {
        EventLoop.task { await backend.close() }
    }

    /// Listens to the hints of the remote that the account is with.
    func listen() {
        listener?.cancel()
        guard let hints = sync.hints else { return }
        listener = EventLoop.task { [weak self] in
            for await _ in hints { self?.sync.noteHint() }
        }
    }

    /// Sets the timer for the next cycle.
    private func arm() {
        timer.set(sync.nextCycle)
        do {
            try timer.noteNetworks(sync.nextAttempt != nil) { [weak self] in self?.sync.noteNetwork() }
        } catch {
            daemon.logger.debug("The end of an outage is found out by trying: \(error)")
        }
    }

    private func runDueCycles() async {
        daemon.logger.debug("A sync cycle of \(userName) begins.")
        await sync.runDueCycles()
        await move.goOn()
        daemon.logger.debug(
            "The sync cycle of \(userName) has ended (\(sync.state.wireName)); the next one is \(timeOfNextCycle).")
        user?.rest()
    }

    private var timeOfNextCycle: String {
        sync.nextCycle.map { "in \(($0 - min($0, EventLoop.now)) / 1_000_000) s" } ?? "when something happens"
    }

    /// Why an account waits during whose cycles the process died.
    private static func suspicion(_ seconds: Int) -> RemoteError {
        RemoteError(
            .unavailable,
            "The service ended unexpectedly during the last sync cycles of this account. The next one begins in "
                + "\((seconds + 59) / 60) min. SyncNow tries at once.", retryAfter: seconds)
    }

    /// Whether no account is signed in, no client subscribes to its state and no call waits for an answer.
    var isIdle: Bool { !sync.isSignedIn && subscribers.isEmpty && callsUnderWay == 0 && storeSubscriptions == 0 }

    // MARK: Telling

    /// Subscribes a client through a path.
    func subscribe(_ client: Client, _ peer: Peer, at path: String) {
        subscribers.add(client, at: path) { [unowned self] in
            // If it fails, the connection is gone, and with it everyone who could be told.
            try? daemon.connection.signal(path, BusNames.accountInterface, "AccountChanged", to: peer) { signal in
                try append(stateFor: client, to: signal)
            }
        }
    }

    /// The stores have more or fewer subscribers.
    func subscribersChanged(by difference: Int) {
        storeSubscriptions += difference
        sync.hasSubscribers = storeSubscriptions > 0
    }

    private func tell(_ notice: StoreNotice) {
        guard let store = user?.storeInUse(notice.store.identifier) else { return }
        var info: [String: Value] = [:]
        if let device = notice.device { info["origin-device"] = .string(Text(device)) }
        if notice.reason == .quotaViolationChange {
            info.merge(Self.quotaInfo(notice.store.usage, database.limits)) { $1 }
        }
        store.notify(notice.reason, keys: notice.keys, info: info)
    }

    private static func quotaInfo(_ usage: Usage, _ limits: Limits) -> [String: Value] {
        let isKeys = usage.keys > limits.keys
        return [
            "limit": .string(isKeys ? "keys" : "total-bytes"),
            "needed": .integer(Int64(isKeys ? usage.keys : usage.bytes)),
            "available": .integer(0),
        ]
    }

    private func tellState() {
        daemon.logger.debug("The account of the user \(uid) is \(sync.state.wireName).")
        // What is under way says nothing yet.
        if sync.lastError != nil || sync.state != .syncing {
            let line = log.note(sync.state == .signedOut ? nil : sync.lastError, ofUser: userName, EventLoop.now)
            if let line { daemon.logger.log(level: line.level, "\(line.text)") }
        }
        subscribers.tell()
        daemon.surroundings.follow(sync.isSignedIn || daemon.users.hasAccount)
    }

    /// An error as a client is told of it: to a sandboxed app it does not say where the account is.
    func told(_ error: RemoteError, to client: Client) -> BusError {
        BusError(mapping: error, for: client)
    }

    /// What a client is told of the state: a signal's arguments.
    private func append(stateFor client: Client, to signal: Message) throws {
        try signal.append(sync.state.wireName)
        try signal.appendDictionary {
            try signal.append(entry: "account-identifier", text: accountIdentifier)
            try signal.append(entry: "initial-sync-done", .boolean(isDownloaded))
            try signal.append(entry: "encrypted", .boolean(isEncrypted))
            guard let error = sync.lastError else { return }
            let told = told(error, to: client)
            try signal.append(entry: "error-name", .string(Text(told.name)))
            try signal.append(entry: "error-message", text: told.message)
        }
    }

    // MARK: Properties

    var deviceIdentifier: String { sync.devices.own.identifier }
    /// The account that is signed in; empty if none is.
    var accountIdentifier: String { sync.state == .signedOut ? "" : database.account.identifier }
    /// Whether the account that is signed in is encrypted.
    var isEncrypted: Bool { sync.isSignedIn && isFileEncrypted }
    var isDownloaded: Bool { sync.isSignedIn && database.account.isDownloaded }
    func pendingChanges() throws -> Int { try database.pendingChanges() }

    /// When a failed attempt is made up for, in microseconds since 1970; 0: none is to be.
    var nextAttempt: UInt64 { sync.nextAttempt.map(date) ?? 0 }

    /// When the next sync cycle is due, in microseconds since 1970; 0: not before something happens.
    var nextCycle: UInt64 { sync.nextCycle.map(date) ?? 0 }

    /// A moment of the monotonic clock, or now if it is over.
    private func date(_ moment: UInt64) -> UInt64 {
        daemon.environment.time() + moment - min(moment, EventLoop.now)
    }

    /// Why there are fewer cycles than otherwise, by the words that the bus uses.
    var savings: [String] {
        guard sync.hasBackend, daemon.configuration.pace.sparingPace > .zero else { return [] }
        return [(sync.circumstances.isMetered, "metered-network"), (sync.circumstances.savesPower, "power-saver")]
            .filter(\.0).map(\.1)
    }
}

/// Hands a value that is not Sendable to an isolation that is in fact the same one.
struct Lent<Value>: @unchecked Sendable {
    // Because it is unwrapped on the thread that wrapped it, before the call that lends it returns.
    let value: Value
    init(_ value: Value) { self.value = value }
}
