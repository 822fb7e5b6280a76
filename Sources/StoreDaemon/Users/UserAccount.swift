// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import PropertyList
internal import SDBus
internal import StoreBus
internal import StoreEngine
internal import SyncEngine

/// One user's account as the bus has it: the sync, its timer, its file, and who is told of its state.
@BusActor
final class UserAccount {
    let uid: UInt32
    let path: String
    private(set) var sync: AccountSync
    private(set) var url = ""
    private var database: UserDatabase
    private let directory: String
    unowned let daemon: Daemon
    private var subscribers: [ObjectIdentifier: Client] = [:]
    private var storeSubscriptions = 0
    private var timer: EventSource?
    private var listener: Task<Void, Never>?
    /// Signing in or out, or trying a backend: one at a time.
    private var isBusy = false
    private var attempts = 0
    private var loggedError: RemoteError?

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
    func start() {
        connectSync()
        guard AccountFile.exists(in: directory) else { return }
        do {
            guard let file = try AccountFile.read(in: directory) else { return }
            sync.device = RemoteDevice(identifier: sync.device.identifier, name: file.deviceName)
            url = file.url
            // The file is written first, and a database that was set aside has forgotten whose values it had.
            if database.account.identifier != file.account {
                _ = try database.enter(account: file.account, bringingValues: false)
            }
            sync.resume(with: try daemon.configuration.makeBackend(request(file.url, file.credentials)))
            listen()
        } catch {
            let error = error as? RemoteError ?? RemoteError(.damaged, "the account can't be read: \(error)")
            daemon.logger.error("The account of the user \(uid) can't be used: \(error)")
            sync.fail(error)
        }
    }

    /// Goes on with a new database, after the old one was set aside.
    func replace(database: UserDatabase) throws {
        listener?.cancel()
        timer = nil
        sync.close()
        self.database = database
        let hadSubscribers = sync.hasSubscribers
        sync = try Self.makeSync(database, daemon)
        sync.hasSubscribers = hadSubscribers
        start()
    }

    /// Ends what is under way.
    func stop() {
        listener?.cancel()
        timer = nil
        sync.close()
    }

    private func connectSync() {
        sync.localKeys = { [weak self] identifier in
            BusActor.assumeIsolated { self?.localKeys(of: identifier) ?? .none }
        }
        sync.onNotice = { [weak self] notice in
            let lent = Lent(notice)
            BusActor.assumeIsolated { self?.tell(lent.value) }
        }
        sync.onLeave = { backend in BusActor.assumeIsolated { Self.close(backend) } }
        sync.onRename = { [weak self] in BusActor.assumeIsolated { self?.renameInFile() } }
        sync.onStateChange = { [weak self] in BusActor.assumeIsolated { self?.tellState() } }
        sync.onScheduleChange = { [weak self] in BusActor.assumeIsolated { self?.arm() } }
    }

    private static func close(_ backend: any RemoteBackend) {
        EventLoop.task { await backend.close() }
    }

    private func localKeys(of identifier: String) -> LocalKeys {
        (try? daemon.users.user(uid))?.localKeys(of: identifier) ?? .none
    }

    private func listen() {
        listener?.cancel()
        guard let hints = sync.hints else { return }
        listener = EventLoop.task { [weak self] in
            for await _ in hints { self?.sync.noteHint() }
        }
    }

    /// Sets the timer to when the next pass is due.
    private func arm() {
        timer = nil
        guard let due = sync.nextPass else { return }
        let now = EventLoop.now
        timer = EventLoop.shared.after(.microseconds(Int64(due > now ? due - now : 0))) { [weak self] in
            self?.timer = nil
            EventLoop.task { [weak self] in await self?.sync.runDuePasses() }
        }
    }

    // MARK: Signing in and out

    /// Signs in, or takes new credentials for the account that is signed in.
    /// - Returns: the account's identifier.
    func signIn(
        _ url: String, _ credentials: BackendCredentials, deviceName: String?, creatingAccount: Bool,
        bringingValues: Bool
    ) async throws -> String {
        try credentials.check()
        let backend = try daemon.configuration.makeBackend(request(url, credentials))
        let remote = try await alone {
            try await Self.limited { try await backend.open(creatingAccount: creatingAccount) }
        }
        guard remote.isNew || !bringingValues else {
            throw BusError.store(.conflict, "There is an account in the place already, and it is not empty")
        }
        let name = deviceName ?? sync.device.name
        let file = AccountFile(
            url: url, account: remote.identifier, credentials: credentials, deviceName: name)
        try commit(file) { try sync.signIn(to: backend, as: remote, bringingValues: bringingValues) }
        sync.device = RemoteDevice(identifier: sync.device.identifier, name: name)
        self.url = url
        listen()
        daemon.logger.notice("The user \(uid) signed in to \(url).")
        return accountIdentifier
    }

    /// Writes the file, and does what belongs to it; if that fails the file is what it was.
    ///
    /// In this order: what a crash leaves in between, ``start()`` completes.
    private func commit(_ file: AccountFile, _ body: () throws -> Void) throws {
        let former = try? AccountFile.read(in: directory)
        try file.write(in: directory)
        do { try body() } catch {
            if let former { try former.write(in: directory) } else { try AccountFile.remove(in: directory) }
            throw error
        }
    }

    /// The account goes on under another identifier.
    private func renameInFile() {
        do {
            guard var file = try AccountFile.read(in: directory) else { return }
            file.account = accountIdentifier
            try file.write(in: directory)
        } catch {
            daemon.logger.error("The account of the user \(uid) can't be written: \(error)")
        }
    }

    /// Signs out, whatever is under way.
    func signOut(keepingValues: Bool) throws {
        guard sync.isSignedIn || AccountFile.exists(in: directory) else {
            throw BusError.store(.notSignedIn, "No account is signed in")
        }
        try AccountFile.remove(in: directory)
        attempts += 1
        listener?.cancel()
        url = ""
        try sync.signOut(keepingValues: keepingValues)
        daemon.logger.notice("The user \(uid) signed out.")
        daemon.armIdleTimer()
    }

    /// Tries a backend step by step.
    func check(_ url: String, _ credentials: BackendCredentials) async throws -> [BackendCheck] {
        try credentials.check()
        let request = request(url, credentials)
        let check = daemon.configuration.checkBackend
        return try await alone { try await Self.limited { try await check(request) } }
    }

    /// One backend is tried at a time, and what signing out has overtaken is not gone on with.
    private func alone<T>(_ body: () async throws -> T) async throws -> T {
        if isBusy { throw BusError.store(.busy, "The account is being signed in or checked; try again after it") }
        isBusy = true
        let attempt = attempts
        defer { isBusy = false }
        let result = try await body()
        if attempt != attempts { throw BusError.store(.notSignedIn, "The account was signed out meanwhile") }
        return result
    }

    /// Waits for a backend, but not for ever: a dead network mount never answers.
    private static func limited<T: Sendable>(
        _ work: @escaping @Sendable () async throws -> T
    ) async throws -> T {
        let race = Race<T>()
        let timer = EventLoop.shared.after(.seconds(60)) {
            race.end(.failure(RemoteError(.unavailable, "the place did not answer within a minute")))
        }
        defer { timer.cancel() }
        return try await withCheckedThrowingContinuation { continuation in
            race.continuation = continuation
            EventLoop.task {
                do { race.end(.success(try await work())) } catch { race.end(.failure(error)) }
            }
        }
    }

    private func request(_ url: String, _ credentials: BackendCredentials) -> BackendRequest {
        BackendRequest(
            url: url, uid: uid, mode: daemon.configuration.mode, folderRoots: daemon.configuration.folderRoots,
            credentials: credentials)
    }

    // MARK: Properties

    var deviceIdentifier: String { sync.device.identifier }
    var accountIdentifier: String { database.account.identifier }
    var isDownloaded: Bool { database.hasAccount && database.account.isDownloaded }
    func pendingChanges() throws -> Int { try database.pendingChanges() }

    /// When a failed attempt is made up for, in microseconds since 1970; 0: none is to be.
    var nextAttempt: UInt64 {
        guard let next = sync.nextAttempt else { return 0 }
        return daemon.environment.time() + next - min(next, EventLoop.now)
    }

    // MARK: Telling

    func subscribe(_ client: Client) {
        if subscribers.updateValue(client, forKey: ObjectIdentifier(client)) == nil { subscribersChanged(by: 0) }
    }

    /// - Returns: whether there was a subscription.
    @discardableResult
    func unsubscribe(_ client: Client) -> Bool {
        subscribers.removeValue(forKey: ObjectIdentifier(client)) != nil
    }

    func isSubscribed(_ client: Client) -> Bool { subscribers[ObjectIdentifier(client)] != nil }

    /// The stores have more or fewer subscribers.
    func subscribersChanged(by difference: Int) {
        storeSubscriptions += difference
        sync.hasSubscribers = storeSubscriptions > 0
    }

    private func tell(_ notice: StoreNotice) {
        guard let store = try? daemon.users.user(uid).storeInUse(notice.store.identifier) else { return }
        var info: [String: Value] = [:]
        if let device = notice.device { info["origin-device"] = .string(Text(device)) }
        if notice.reason == .quotaViolationChange { info.merge(Self.quotaInfo(notice.store)) { $1 } }
        store.notify(notice.reason, keys: notice.keys, info: info)
    }

    private static func quotaInfo(_ store: Store) -> [String: Value] {
        let (usage, limits) = (store.usage, Limits.standard)
        let isKeys = usage.keys > limits.keys
        return [
            "limit": .string(isKeys ? "keys" : "total-bytes"),
            "needed": .integer(Int64(isKeys ? usage.keys : usage.bytes)),
            "available": .integer(0),
        ]
    }

    private func tellState() {
        if let error = sync.lastError, error != loggedError {
            daemon.logger.info("The account of the user \(uid): \(error.message)")
        }
        loggedError = sync.lastError
        for client in subscribers.values { tellState(client) }
    }

    private func tellState(_ client: Client) {
        do {
            let signal = try daemon.connection.newSignal(
                path, BusNames.accountInterface, "AccountChanged", to: client.peer.uniqueName)
            try signal.append(sync.state.rawValue)
            try signal.appendDictionary {
                try signal.append(entry: "account-identifier", .string(Text(accountIdentifier)))
                try signal.append(entry: "initial-sync-done", .boolean(isDownloaded))
                guard let error = sync.lastError else { return }
                let busError = BusError(remote: error)
                try signal.append(entry: "error-name", .string(Text(busError.name)))
                try signal.append(entry: "error-message", .string(Text(busError.message)))
            }
            try daemon.connection.send(signal)
        } catch {
            // The connection is gone, and with it everybody who could be told.
        }
    }
}

/// Of several ends, the first one counts.
@BusActor
private final class Race<T: Sendable> {
    var continuation: CheckedContinuation<T, any Error>?

    func end(_ result: Result<T, any Error>) {
        continuation?.resume(with: result)
        continuation = nil
    }
}

/// Hands a value that is not Sendable to an isolation that is in fact the same one.
struct Lent<Value>: @unchecked Sendable {
    // Because it is unwrapped on the thread that wrapped it, before the call that lends it returns.
    let value: Value
    init(_ value: Value) { self.value = value }
}
