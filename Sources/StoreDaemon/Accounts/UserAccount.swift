// SPDX-License-Identifier: Apache-2.0

internal import PlainText
internal import Replication
internal import SDBus
internal import Sealing
internal import StoreBus
internal import StoreEngine
internal import SyncEngine

/// A user's account as the bus shows it: the remote that the user is signed in to, and its sync.
@BusActor
final class UserAccount {
    let uid: UInt32
    let path: String
    private(set) var sync: AccountSync
    var url = ""
    private(set) var database: UserDatabase
    let directory: String
    let service: ServiceContext
    let reports: Reports
    /// The account's user, until ``stop()``. A weak reference would slow down every use of the user.
    private(set) var user: User?
    private(set) lazy var notices = AccountNotices(of: self, in: service)
    private(set) lazy var cycles = AccountCycles(of: self, in: service)
    let attempts = Attempts()
    let history = HistoryWork()
    private let leftovers: LeftoverWork
    let files = FileWrites()
    let saved: SavedAccount
    private(set) lazy var move = MoveToKey(of: self, in: service)
    /// The number of calls that are answered later.
    var callsUnderWay = 0
    /// Resumes an account that has to wait.
    private var resumption: EventSource?
    /// The user's name; `nil` if it isn't known yet. It can't change: a user of another name has another directory.
    var name: String? {
        if knownName == nil { knownName = UserName.nameAtOnce(of: uid) }
        return knownName
    }
    private var knownName: String?
    var remotes: AccountRemotes {
        AccountRemotes(uid: uid, name: name, service: service, noteBusy: reports.busy)
    }
    var keys: AccountKeys {
        AccountKeys(
            directory: directory, account: accountIdentifier, environment: service.environment,
            logProblem: { [service, uid] problem in
                // Keys are used on the bus's thread only.
                BusActor.assumeIsolated { service.logProblem(problem, of: uid) }
            })
    }
    /// The user, as the journal names users.
    var userName: String { UserName.text(name, uid) }

    /// What the rest of the service has to know of an account.
    struct Reports {
        /// Called when the account was signed in to or out of, or its state has changed otherwise.
        let stateChanged: @BusActor (_ isSignedIn: Bool) -> Void
        /// Called when the user has signed out.
        let signedOut: @BusActor () -> Void
        /// Called with the microseconds of the bus thread that a backend has taken, once they are many.
        let busy: @BusActor @Sendable (UInt64) -> Void
    }

    init(
        _ uid: UInt32, database: UserDatabase, directory: String, in service: ServiceContext, reports: Reports
    ) throws {
        self.uid = uid
        self.database = database
        self.directory = directory
        leftovers = LeftoverWork(of: uid)
        saved = SavedAccount(in: directory, writing: files)
        self.service = service
        self.reports = reports
        path = BusNames.accountPath(uid: uid)
        let isForeign = MachineRecord.isForeign(in: directory, uid: uid)
        sync = try Self.makeSync(database, isForeign: isForeign, service)
        // Two devices of one name would be hard to tell apart.
        if isForeign { try? saved.changeAtOnce { $0.deviceName = service.configuration.deviceName } }
        MachineRecord.remove(in: directory)
        leftovers.follow(database)
    }

    /// - Parameter isForeign: whether the database is a copy of another device's.
    private static func makeSync(
        _ database: UserDatabase, isForeign: Bool = false, _ service: ServiceContext
    ) throws -> AccountSync {
        AccountSync(
            database,
            device: RemoteDevice(
                identifier: try database.deviceIdentifier(isForeign: isForeign),
                name: service.configuration.deviceName),
            monotonicTime: { EventLoop.now })
    }

    // MARK: Beginning and ending

    /// Resumes the account that the user is signed in to, if there is one.
    func start(for user: User) {
        self.user = user
        resume()
    }

    private func resume() {
        connectSync()
        guard saved.exists else { return }
        do {
            guard var file = try saved.resume() else { return }
            sync.devices.own = RemoteDevice(identifier: sync.devices.own.identifier, name: file.deviceName)
            sync.devices.announcesName = file.announcesName ?? false
            url = file.url
            try saved.entering.run {
                let former = try reconcile(&file)
                if file.isEncrypted == true { try database.names.noteEncrypted() }
                try sync.devices.readOwnName()
                try beginSync(of: file, succeeding: former)
            }
        } catch {
            // Not now, because the user's data may just be being opened.
            if case EngineError.corrupt(let reason) = error {
                _ = EventLoop.task { [weak self] in self?.recover(reason) }
            }
            let error =
                error as? RemoteError
                ?? RemoteError(.damaged, "The account can't be read. \(BusError(mapping: error).message)")
            // The log has the failure as a change of the account's state.
            sync.fail(error)
            guard let seconds = saved.entering.obstacle?.retryAfter else { return }
            resumption = EventLoop.shared.after(.seconds(seconds)) { [weak self] in self?.startIfFailed() }
        }
    }

    /// Has the file and the database name one account.
    ///
    /// The file is written first when the user signs in, and a database that replaces a damaged one doesn't know its
    /// account. When a cycle renames the account, the database is written first.
    /// - Returns: the account in the database, if that of the file succeeds it once sync begins; otherwise `nil`.
    private func reconcile(_ file: inout AccountFile) throws -> String? {
        let present = database.account.identifier
        if present == file.account { return nil }
        if try database.names.accounts(formerly: [file.account]).contains(present) {
            file.rename(to: present)
            try saved.changeAtOnce { $0.rename(to: present) }
            return nil
        }
        if file.formerly?.contains(present) == true { return present }
        _ = try database.enter(account: file.account, bringingValues: file.bringsValues ?? false)
        return nil
    }

    /// - Parameter former: the account in the database, if that of the file succeeds it.
    private func beginSync(of file: AccountFile, succeeding former: String?) throws {
        try service.configuration.check(scheme: file.url)
        let (protection, problem) = keys.protection(of: file)
        try service.configuration.check(protection)
        let backend = try remotes.makeBackend(file.url, file.credentials, protection)
        if let former {
            var remote = RemoteAccount(identifier: file.account, aliases: [former])
            remote.isEncrypted = file.isEncrypted == true
            try sync.signIn(to: backend, asRestored: remote)
        } else {
            sync.resume(with: backend, onlyReads: protection.move != nil)
        }
        sync.setPaused(file.isPaused ?? false)
        keys.settle(accountIdentifier)
        move.watch()
        if let obstacle = problem ?? cycles.obstacle { sync.postpone(obstacle) }
        cycles.listen()
    }

    /// Tries again to resume an account that can't be used, because the settings may allow it now.
    func startIfFailed() {
        if sync.isSignedIn, !sync.hasBackend { resume() }
    }

    /// Switches to a new database after the old one was set aside.
    func replace(database: UserDatabase) throws {
        let next = try Self.makeSync(database, service)
        cycles.pause()
        sync.close()
        self.database = database
        leftovers.follow(database)
        next.hasSubscribers = sync.hasSubscribers
        next.circumstances = sync.circumstances
        (sync, url) = (next, "")
        resume()
    }

    /// Sets aside a database that a cycle found damaged, as a call would.
    private func recover(_ reason: String) {
        do { try user?.recovery.replaceDatabase(reason) } catch {
            let message = BusError(mapping: error).message
            service.logProblem("The database of \(userName) can't be replaced: \(message)", of: uid)
            sync.fail(RemoteError(.damaged, "This device's database is damaged: \(message.clause)."))
        }
    }

    /// Ends what is under way.
    func stop() {
        // The directory may be another user's by the time when an attempt ends.
        attempts.noteSignOut()
        sync.close()
        cycles.stop()
        leftovers.stop()
        (user, resumption) = (nil, nil)
    }

    private func connectSync() {
        sync.host.localKeys = { [weak self] identifier in
            BusActor.assumeIsolated { self?.user?.localKeys.keys(of: identifier) ?? .none }
        }
        sync.host.makeRoom = { [weak self] (store, plan) throws(RemoteError) in
            try BusActor.assumeIsolated(lending: (self, store, plan)) { lent throws(RemoteError) in
                try lent.0?.makeRoom(in: lent.1, for: lent.2)
            }
        }
        sync.host.onNotice = { [weak self] notice in
            BusActor.assumeIsolated(lending: (self, notice)) { account, notice in account?.notices.tell(notice) }
        }
        sync.host.onLeave = { backend in BusActor.assumeIsolated { Self.close(backend) } }
        sync.host.onRename = { [weak self] in BusActor.assumeIsolated { self?.renewFile() } }
        sync.devices.onOwnChange = { [weak self] in BusActor.assumeIsolated { self?.renewNameLater() } }
        sync.host.onDamage = { [weak self] reason in BusActor.assumeIsolated { self?.recover(reason) } }
        sync.host.onStateChange = { [weak self] in BusActor.assumeIsolated { self?.noteState() } }
        sync.host.keyNames = { [weak self] in BusActor.assumeIsolated { self?.keys.names ?? [] } }
        cycles.connect(sync)
    }

    private func noteState() {
        notices.tellState()
        reports.stateChanged(sync.isSignedIn)
    }

    /// Throws if there is no room on the disk or in memory for what other devices have written.
    private func makeRoom(in target: Store, for plan: JoinPlan) throws(RemoteError) {
        guard let user else { return }
        do {
            try user.room.checkDisk(for: plan, in: target)
            let growth = UserStore.growth(of: target, by: plan)
            // A store that is not in use is in memory for the join only.
            guard let store = user.storeInUse(target.identifier) else {
                return try user.makeRoom(for: UserStore.memory(of: target) + growth)
            }
            try store.makeRoom(for: growth)
            store.noteGrown(by: growth)
        } catch {
            let reason = BusError(mapping: error).message
            throw RemoteError(.device, "What other devices have written to \(target.identifier) waits. \(reason)")
        }
    }

    private func renewNameLater() {
        EventLoop.task { [weak self] in await self?.renewName() }
    }

    static func close(_ backend: any RemoteBackend) {
        EventLoop.task { await backend.close() }
    }

    /// Whether no account is signed in, no client subscribes and no call waits for an answer.
    var isIdle: Bool { !sync.isSignedIn && notices.isUnheard && callsUnderWay == 0 }

    // MARK: Changing

    /// Pauses or resumes sync, and remembers it.
    func setPaused(_ isPaused: Bool) async throws {
        try await saved.change { file in
            if (file.isPaused ?? false) != isPaused { file.isPaused = isPaused }
        } then: {
            self.sync.setPaused(isPaused)
        }
    }

    nonisolated static let notSignedIn = BusError.store(.notSignedIn, "No account is signed in.")

    /// Throws if the user has signed out since then.
    func checkIsSignedIn(since signOuts: Int) throws(BusError) {
        guard signOuts == attempts.signOuts else {
            throw .store(.notSignedIn, "The account was signed out meanwhile.")
        }
    }

    /// Throws if the account that is signed in was under a key before, and has left it.
    func checkIsNotFormer(_ held: HeldKey) throws {
        if try sync.formerNames.contains("\(held.key.identifier)") { throw RemoteError.formerKey }
    }

    /// Makes a backend, runs `body` with it and switches to it, unless the user has signed out meanwhile. A backend
    /// that the account doesn't switch to is closed.
    @discardableResult
    func reach(
        _ url: String, _ credentials: BackendCredentials, _ protection: Protection,
        _ body: @escaping @Sendable (any RemoteBackend) async throws -> RemoteAccount,
        then switchTo: (any RemoteBackend, RemoteAccount, HeldKey?) throws -> Void
    ) async throws -> RemoteAccount {
        try service.configuration.check(scheme: url)
        let signOuts = attempts.signOuts
        let (backend, (found, held)) = try await attempt(url, credentials, protection) {
            (try await body($0), await $0.heldKey)
        }
        do {
            try checkIsSignedIn(since: signOuts)
            let remote = try sync.genuine(found)
            try attempts.change { try switchTo(backend, remote, held) }
            return remote
        } catch {
            Self.close(backend)
            throw error
        }
    }

    /// Makes a backend and runs `body` with it, as an attempt. Calls that wait for an earlier one have no backend yet.
    /// If the attempt fails, the backend is closed.
    func attempt<Result: Sendable>(
        _ url: String, _ credentials: BackendCredentials, _ protection: Protection,
        _ body: @escaping @Sendable (LoggingBackend) async throws -> Result
    ) async throws -> (backend: LoggingBackend, result: Result) {
        var made: LoggingBackend?
        do {
            return try await attempts.make { @BusActor [remotes] in
                try Task.checkCancellation()
                let backend = try remotes.makeBackend(url, credentials, protection)
                made = backend
                return (backend, try await backend.untilCancelled { try await body(backend) })
            }
        } catch {
            if let made { Self.close(made) }
            throw error
        }
    }

    /// Switches to the key that the account has moved to, and uploads all of this device's data under it.
    /// - Parameters:
    ///   - file: the account's file so far, with whether sync is paused from now on.
    ///   - former: the forms that the account had before.
    func adoptKey(
        _ file: AccountFile, to remote: RemoteAccount, _ backend: any RemoteBackend, _ held: HeldKey?,
        _ former: FormerForms
    ) throws {
        try keys.keep(held, wasShown: true, former: former)
        let names = remote.aliases.union(former.plain.map(\.description)).union([file.account])
        try saved.commit(file.gone(over: remote.identifier)) {
            try sync.signIn(
                to: backend, asRestored: RemoteAccount(encrypted: remote.identifier, aliases: names),
                isPaused: file.isPaused == true)
        }
    }

    /// Updates the file after the account's identifier has changed.
    func renewFile() {
        do {
            try saved.changeAtOnce {
                $0.rename(to: database.account.identifier)
                takeName(into: &$0)
            }
        } catch {
            logUnwritten(error)
        }
    }

    /// Updates the file after this device's name, or whether that is uploaded, has changed.
    func renewName() async {
        do { try await saved.change { self.takeName(into: &$0) } } catch {
            if saved.exists { logUnwritten(error) }
        }
    }

    /// Notes in the file that the values that went along into the account are uploaded.
    func noteUploadedValues() async {
        guard saved.bringsValues, sync.isPublished else { return }
        do { try await saved.change { $0.bringsValues = nil } } catch {
            if saved.exists { logUnwritten(error) }
        }
    }

    private func takeName(into file: inout AccountFile) {
        file.deviceName = sync.devices.own.name
        file.announcesName = sync.devices.announcesName
    }

    private func logUnwritten(_ error: any Error) {
        service.logProblem(
            "The account of \(userName) can't be written: \(BusError(mapping: error).message)", of: uid)
    }

    // MARK: Properties

    var deviceIdentifier: String { sync.devices.own.identifier }
    /// The identifier of the account that is signed in; empty if none is.
    var accountIdentifier: String { sync.isSignedIn ? database.account.identifier : "" }
    /// Whether an account is signed in and encrypted.
    var isEncrypted: Bool {
        sync.isSignedIn && (saved.isUnreadable ? keys.isUnreadableEncrypted : saved.isEncrypted)
    }
    var isDownloaded: Bool { sync.isSignedIn && database.account.isDownloaded }
    /// Whether the stores show the values of an account that the user has signed out of.
    var showsFormerAccount: Bool { !sync.isSignedIn && database.hasAccount }
    func pendingChanges() throws -> Int { try database.summaries.pendingChanges() }
    func excludedChanges() throws -> Int { sync.isSignedIn ? try database.summaries.excludedChanges() : 0 }

    /// When a failed attempt is repeated, in microseconds since 1970; 0 if none is.
    var nextAttempt: UInt64 { sync.nextAttempt.map(date) ?? 0 }

    /// When the next sync cycle is due, in microseconds since 1970; 0 if not before another event.
    var nextCycle: UInt64 { sync.nextCycle.map(date) ?? 0 }

    /// Converts a time of the monotonic clock to microseconds since 1970. A past time becomes the present.
    private func date(_ moment: UInt64) -> UInt64 {
        service.environment.time() + moment - min(moment, EventLoop.now)
    }

    /// The reasons why cycles are less frequent, by their names on the bus.
    var savings: [String] {
        guard sync.hasBackend, service.configuration.pace.sparingPace > .zero else { return [] }
        return [(sync.circumstances.isMetered, "metered-network"), (sync.circumstances.savesPower, "power-saver")]
            .filter(\.0).map(\.1)
    }
}

/// Passes a non-Sendable value to code that is already on the same actor.
struct Lent<Value>: @unchecked Sendable {
    // Because it is unwrapped on the thread that wrapped it, before the call that lends it returns.
    let value: Value
    init(_ value: Value) { self.value = value }
}
