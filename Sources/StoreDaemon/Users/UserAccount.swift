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
    private unowned let daemon: Daemon
    private var subscribers: [ObjectIdentifier: Client] = [:]
    private var storeSubscriptions = 0
    private var timer: EventSource?
    private var listener: Task<Void, Never>?
    /// Signing in or out, or trying a backend: one at a time.
    private var isBusy = false

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
        do {
            guard let file = try AccountFile.read(in: directory) else { return }
            sync.device = RemoteDevice(identifier: sync.device.identifier, name: file.deviceName)
            let backend = try daemon.configuration.makeBackend(request(file.url, file.credentials))
            // A database that was set aside has forgotten whose values it had.
            if database.account.identifier != file.account, !database.hasAccount {
                _ = try database.enter(account: file.account, bringingValues: false)
            }
            url = file.url
            sync.resume(with: backend)
            listen()
        } catch {
            daemon.logger.error("The account of the user \(uid) can't be used: \(error)")
        }
    }

    /// Goes on with a new database, after the old one was set aside.
    func replace(database: UserDatabase) throws {
        listener?.cancel()
        timer = nil
        self.database = database
        let hadSubscribers = sync.hasSubscribers
        sync = try Self.makeSync(database, daemon)
        sync.hasSubscribers = hadSubscribers
        start()
    }

    /// Ends what is under way.
    func stop() async {
        listener?.cancel()
        timer = nil
        await sync.close()
    }

    private func connectSync() {
        sync.localKeys = { [weak self] identifier in
            BusActor.assumeIsolated { self?.localKeys(of: identifier) ?? .none }
        }
        sync.onNotice = { [weak self] notice in
            let lent = Lent(notice)
            BusActor.assumeIsolated { self?.tell(lent.value) }
        }
        sync.onStateChange = { [weak self] in BusActor.assumeIsolated { self?.tellState() } }
        sync.onScheduleChange = { [weak self] in BusActor.assumeIsolated { self?.arm() } }
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
        try await alone {
            let backend = try daemon.configuration.makeBackend(request(url, credentials))
            if let deviceName { sync.device = RemoteDevice(identifier: sync.device.identifier, name: deviceName) }
            let identifier = try await sync.signIn(
                to: backend, creatingAccount: creatingAccount, bringingValues: bringingValues)
            self.url = url
            try AccountFile(url: url, account: identifier, credentials: credentials, deviceName: sync.device.name)
                .write(in: directory)
            listen()
            daemon.logger.notice("The user \(uid) signed in to \(url).")
            return identifier
        }
    }

    func signOut(keepingValues: Bool) async throws {
        try await alone {
            guard sync.isSignedIn || AccountFile.exists(in: directory) else {
                throw BusError.store(.notSignedIn, "No account is signed in")
            }
            try AccountFile.remove(in: directory)
            listener?.cancel()
            url = ""
            try await sync.signOut(keepingValues: keepingValues)
            daemon.logger.notice("The user \(uid) signed out.")
        }
    }

    /// Tries a backend step by step.
    func check(_ url: String, _ credentials: BackendCredentials) async throws -> [BackendCheck] {
        try await alone { try await daemon.configuration.checkBackend(request(url, credentials)) }
    }

    private func alone<T>(_ body: () async throws -> T) async throws -> T {
        if isBusy { throw BusError.store(.busy, "The account is being signed in, out or checked; try again after it") }
        isBusy = true
        defer { isBusy = false }
        return try await body()
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
        if let error = sync.lastError { daemon.logger.info("The account of the user \(uid): \(error.message)") }
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

/// Hands a value that is not Sendable to an isolation that is in fact the same one.
struct Lent<Value>: @unchecked Sendable {
    // Because it is unwrapped on the thread that wrapped it, before the call that lends it returns.
    let value: Value
    init(_ value: Value) { self.value = value }
}
