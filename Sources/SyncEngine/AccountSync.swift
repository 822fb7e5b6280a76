// SPDX-License-Identifier: Apache-2.0

// One person's account: signing in and out, and the passes that bring device and remote together.
//
// A pass goes one way: look what is new → join it store by store, each in a transaction with its signals
// after it → keep the cursor → if something is pending and due: record the publication, sync the disk,
// upload, mark exactly that as published. It may be cut between any two of these; the next pass leads to the
// same result.
//
// Not Sendable: it lives with the database in its owner's isolation. Only the backend works elsewhere.

public import PropertyList
public import StoreEngine

/// Keeps one user's database and a remote together.
public final class AccountSync {
    /// Where the account stands.
    public private(set) var state: State = .signedOut
    /// What went wrong last; `nil` after a pass that went well.
    public private(set) var lastError: RemoteError?
    /// When the last complete look at the remote ended, in microseconds since 1970; 0: never.
    public private(set) var lastPull: UInt64 = 0
    /// When the last upload ended, in microseconds since 1970; 0: never.
    public private(set) var lastPush: UInt64 = 0
    /// The device's name, as other devices are told it.
    public var device: RemoteDevice

    /// Called when ``state`` or ``lastError`` becomes another one.
    public var onStateChange: (() -> Void)?
    /// Called when the remote, or an account, has changed what a store shows.
    public var onNotice: ((StoreNotice) -> Void)?
    /// Called when the account goes on under another identifier.
    public var onRename: (() -> Void)?
    /// Called when ``nextPass`` may have become another one.
    public var onScheduleChange: (() -> Void)?
    /// The keys of a store that never leave this device.
    public var localKeys: (String) -> LocalKeys = { _ in .none }

    private let database: UserDatabase
    private let monotonicTime: () -> UInt64
    private var backend: (any RemoteBackend)?
    private var schedule: SyncSchedule?
    private var names: [Origin: RemoteDevice] = [:]
    private var isPassing = false
    /// Something that was passed over, while the rest went well.
    private var problem: RemoteError?
    private var ownPublication: OwnPublication = .missing

    private typealias Waiter = CheckedContinuation<Result<Void, RemoteError>, Never>
    /// Those that wait for a pass that is still to begin, and those whom the one under way will answer.
    private var waiters: [Waiter] = []
    private var answeredByPass: [Waiter] = []

    /// Where an account stands, by the names that the bus uses.
    public enum State: String, Sendable {
        case initialSync = "initial-sync"
        case idle, syncing, offline, paused, error
        case authFailed = "auth-failed"
        case signedOut = "signed-out"
    }

    /// An account that is signed out.
    /// - Parameter monotonicTime: microseconds of a clock that never jumps.
    public init(_ database: UserDatabase, device: RemoteDevice, monotonicTime: @escaping () -> UInt64) {
        self.database = database
        self.device = device
        self.monotonicTime = monotonicTime
    }

    // MARK: Signing in and out

    /// Whether the account is signed in.
    public var isSignedIn: Bool { backend != nil }

    /// Goes on with the account that a backend leads to. Values come later.
    /// - Parameters:
    ///   - backend: opened, so that it is known to work.
    ///   - remote: what opening it found.
    ///   - bringsValues: the present values are written to the account, if it is new.
    /// - Throws: nothing has changed then.
    public func signIn(
        to backend: any RemoteBackend, as remote: RemoteAccount, bringingValues bringsValues: Bool
    ) throws(EngineError) {
        try enter(remote, bringsValues: bringsValues && remote.isNew)
        leaveBackend("the account was signed in anew")
        start(backend)
    }

    /// Goes on with the account that this device was signed in to before it was restarted.
    public func resume(with backend: any RemoteBackend) {
        start(backend)
    }

    /// Signs out. The values stay as the account's, and writes to them are pending until it is signed in again.
    /// - Parameter keepsValues: `false` removes the account's values from this device, history included.
    public func signOut(keepingValues keepsValues: Bool) throws(EngineError) {
        leaveBackend("the account was signed out")
        (lastPull, lastPush) = (0, 0)
        setState(.signedOut, error: nil)
        if !keepsValues { tell(try database.clearAccount(), .accountChange) }
    }

    /// Ends what is under way; the account stays signed in.
    public func close() {
        leaveBackend("the service is ending")
    }

    /// Says that an account that is signed in can't be used.
    public func fail(_ error: RemoteError) {
        setState(.error, error: error)
    }

    private func enter(_ remote: RemoteAccount, bringsValues: Bool) throws(EngineError) {
        let current = database.account.identifier
        if database.hasAccount, remote.isNamed(current) { return try rename(to: remote) }
        let changes = try database.enter(account: remote.identifier, bringingValues: bringsValues)
        (lastPull, lastPush) = (0, 0)
        // Where the new account's values are still to come, the signal comes with them.
        if database.account.isDownloaded || bringsValues { tell(changes, .accountChange) }
    }

    /// Goes on under the smallest of the identifiers that devices have given the account.
    private func rename(to remote: RemoteAccount) throws(EngineError) {
        guard remote.identifier != database.account.identifier else { return }
        try database.rename(accountTo: remote.identifier)
        onRename?()
    }

    private func start(_ backend: any RemoteBackend) {
        self.backend = backend
        (ownPublication, problem, names) = (.missing, nil, [:])
        schedule = SyncSchedule(backend.traits, now: monotonicTime())
        schedule?.hasSubscribers = hasSubscribers
        if hasPendingChanges { schedule?.noteChange(monotonicTime()) }
        setState(restingState, error: nil)
        onScheduleChange?()
    }

    /// Leaves the backend to itself: it may hang, and nobody waits for it. A pass that is still under way with it
    /// finds out when it comes back.
    private func leaveBackend(_ reason: String) {
        let leaving = backend
        backend = nil
        schedule = nil
        isPassing = false
        answer(answeredByPass + waiters, .failure(RemoteError(.unavailable, reason)))
        (answeredByPass, waiters) = ([], [])
        if let leaving { Task { await leaving.close() } }
    }

    // MARK: What happens around it

    /// Somebody subscribes to what the remote changes.
    public var hasSubscribers = false {
        didSet {
            guard hasSubscribers != oldValue else { return }
            schedule?.hasSubscribers = hasSubscribers
            onScheduleChange?()
        }
    }

    /// Something was written to a store on this device.
    public func noteLocalChange() {
        let before = schedule
        schedule?.noteChange(monotonicTime())
        if schedule != before { onScheduleChange?() }
    }

    /// What is pending is uploaded as soon as the limit on uploads allows.
    public func hasten() {
        schedule?.hasten(monotonicTime())
        onScheduleChange?()
    }

    /// The remote has something new.
    public func noteHint() {
        schedule?.noteHint(monotonicTime())
        onScheduleChange?()
    }

    /// The remote's hints, to be passed to ``noteHint()``; ends when the account leaves this backend.
    public var hints: AsyncStream<Void>? { backend?.hints() }

    /// When the next pass is due, on the monotonic clock; `nil`: not before something happens.
    public var nextPass: UInt64? { isPassing || state == .paused ? nil : schedule?.nextPass }

    /// When a failed pass is tried again, on the monotonic clock; `nil` if the last one did not fail.
    public var nextAttempt: UInt64? { schedule?.nextAttempt }

    /// Whether the remote has everything.
    public var hasPendingChanges: Bool { (try? database.pendingChanges()).map { $0 > 0 } ?? false }

    // MARK: Passes

    /// Uploads and downloads now, and returns when both are done.
    /// - Throws: why it could not be done.
    public func syncNow() async throws(RemoteError) {
        guard backend != nil else { throw RemoteError(.noAccount, "no account is signed in") }
        if state == .paused { throw pauseReason }
        if waiters.count >= Self.maximumWaiters {
            throw RemoteError(.unavailable, "\(Self.maximumWaiters) others wait for the account already")
        }
        schedule?.request(monotonicTime())
        let result = await withCheckedContinuation { continuation in
            waiters.append(continuation)
            onScheduleChange?()
        }
        try result.get()
    }

    private static let maximumWaiters = 256

    private var pauseReason: RemoteError { lastError ?? RemoteError(.unavailable, "the account is paused") }

    /// Makes the passes that are due.
    public func runDuePasses() async {
        guard !isPassing else { return }
        while let due = nextPass, due <= monotonicTime(), let backend {
            isPassing = true
            (answeredByPass, waiters) = (waiters, [])
            let result = await pass(backend)
            // Meanwhile the account may have left this backend, and even be in a pass with another one.
            guard isCurrent(backend) else { return }
            isPassing = false
            answer(answeredByPass, result)
            answeredByPass = []
            // Whoever asked while the pass was under way wants one that began later.
            if !waiters.isEmpty { schedule?.request(monotonicTime()) }
            if state == .paused {
                answer(waiters, .failure(pauseReason))
                waiters = []
            }
        }
        onScheduleChange?()
    }

    private func pass(_ backend: any RemoteBackend) async -> Result<Void, RemoteError> {
        do {
            let uploads = schedule?.begin(monotonicTime()) ?? false
            let received = try await download(from: backend)
            let uploaded = uploads ? try await upload(to: backend) : false
            guard isCurrent(backend) else { return .failure(RemoteError(.unavailable, "the account was signed out")) }
            let isDownloaded = database.account.isDownloaded
            schedule?.traits = backend.traits
            schedule?.passed(
                monotonicTime(), received: received || !isDownloaded, uploaded: uploaded,
                isPending: isDownloaded && (hasPendingChanges || needsRepublication))
            setState(restingState, error: problem)
            return isDownloaded ? .success(()) : .failure(problem ?? RemoteError(.unavailable, "not all has arrived"))
        } catch {
            let error = error as? RemoteError ?? RemoteError(.damaged, "this device's database: \(error)")
            guard isCurrent(backend) else { return .failure(error) }
            schedule?.failed(
                monotonicTime(), retryAfter: error.retryAfter, jitter: database.environment.random())
            setState(State(after: error), error: error)
            return .failure(error)
        }
    }

    /// Looks at the remote and joins what is new.
    /// - Returns: whether there was anything.
    private func download(from backend: any RemoteBackend) async throws -> Bool {
        let epoch = database.downloadEpoch
        let pull = try await backend.pull(after: database.account.cursor, as: database.origin)
        guard isCurrent(backend) else { return false }
        guard pull.account.isNamed(database.account.identifier) else {
            throw RemoteError(
                .reset, "the remote holds another account, or was emptied; say which side is right with Resolve")
        }
        try rename(to: pull.account)
        names.merge(pull.devices) { $1 }
        problem = pull.problems.first.map { RemoteError(.damaged, $0) }
        ownPublication = pull.ownPublication
        if case .foreign = pull.ownPublication { try database.leaveOrigin() }
        if !pull.stores.isEmpty && database.account.isDownloaded { setState(.syncing, error: lastError) }

        var joined: Set<String> = []
        var received = false
        for identifier in pull.stores {
            let change = try await pull.change(of: identifier)
            guard isCurrent(backend) else { return received }
            switch try join(change, to: identifier) {
            case .refused: continue
            case .changed: received = true
            case .unchanged: break
            }
            joined.insert(identifier)
        }
        let result = await pull.finish(joined: joined)
        guard isCurrent(backend) else { return received }
        // A store that was taken into use meanwhile may have been passed over.
        if epoch == database.downloadEpoch { try keep(result) } else { schedule?.noteHint(monotonicTime()) }
        return received
    }

    private func keep(_ result: PullResult) throws {
        let isFirst = !database.account.isDownloaded
        guard result.isComplete || !isFirst else {
            problem = problem ?? RemoteError(.unavailable, "parts of the account have not arrived in the remote yet")
            return
        }
        if isFirst { try arriveEverywhere() }
        if result.cursor != database.account.cursor { try database.completeDownload(cursor: result.cursor) }
        if result.isComplete { lastPull = database.environment.time() }
    }

    /// Every store of the account has arrived: those of which the remote has nothing as well.
    private func arriveEverywhere() throws {
        let waiting = Set(try database.storesAwaitingDownload()).union(database.loadedStores.map(\.identifier))
        for identifier in waiting.sorted() {
            _ = try join(RemoteChange(state: StoreState(), isComplete: true), to: identifier)
        }
    }

    private enum JoinResult {
        case changed, unchanged
        /// It has to be joined another time.
        case refused
    }

    /// Joins what is new of a store, and tells of it.
    private func join(_ change: RemoteChange, to identifier: String) throws -> JoinResult {
        let store = try database.store(identifier, localKeys: localKeys(identifier))
        if store.isForgotten { return .unchanged }
        let isArriving = !store.isDownloaded
        // What is written after the arrival is ordinary, and must know all that the account has.
        if isArriving && !change.isComplete { return .refused }
        let plan = Join.plan(store, taking: change.state, isFirstDownload: isArriving)
        if !isArriving, plan.changesNothing(in: store.context) { return .unchanged }
        guard store.canHold(plan) else {
            problem = RemoteError(.damaged, "the store \(identifier) has grown too large to be joined any further")
            return .refused
        }
        try carryOut(plan, in: store, isArriving: isArriving)
        return .changed
    }

    private func carryOut(_ plan: JoinPlan, in store: Store, isArriving: Bool) throws(EngineError) {
        let (hadBackdrop, wasOverQuota) = (store.hasBackdrop, store.isOverQuota)
        let change = store.stage(plan, cause: isArriving ? .downloaded : .joined)
        try database.commit()
        if isArriving || !change.keys.isEmpty {
            let reason: StoreNotice.Reason =
                isArriving ? (hadBackdrop ? .accountChange : .initialSyncChange) : .serverChange
            onNotice?(
                StoreNotice(store: store, reason: reason, keys: change.keys, device: soleDevice(change.origins)))
        }
        if store.isOverQuota && !wasOverQuota {
            onNotice?(StoreNotice(store: store, reason: .quotaViolationChange, keys: store.overflow, device: nil))
        }
    }

    /// The identifier of the device that wrote under an origin, where it is known.
    public func deviceIdentifier(of origin: Origin) -> String? {
        if origin == database.origin { return device.identifier }
        return names[origin]?.identifier
    }

    private func soleDevice(_ origins: Set<Origin>) -> String? {
        let devices = Set(origins.map(deviceIdentifier))
        return devices.count == 1 ? devices.first ?? nil : nil
    }

    private func tell(_ changes: [StoreViewChange], _ reason: StoreNotice.Reason) {
        for change in changes where !change.keys.isEmpty {
            onNotice?(StoreNotice(store: change.store, reason: reason, keys: change.keys, device: nil))
        }
    }

    // MARK: Uploading

    /// Uploads what is pending.
    /// - Returns: whether there was anything.
    private func upload(to backend: any RemoteBackend) async throws -> Bool {
        guard isCurrent(backend), database.account.isDownloaded, hasPendingChanges || needsRepublication else {
            return false
        }
        setState(.syncing, error: lastError)
        try database.willPublish()
        let push = try await backend.push(publication())
        guard isCurrent(backend) else { return false }
        let origin = database.origin
        let snapshots = try push.stores.map { try database.store($0, localKeys: localKeys($0)).snapshot() }
        // What leaves the device is on its disk before: a dot that was published must never be used again.
        try await database.synchronize()
        for snapshot in snapshots {
            guard isCurrent(backend), origin == database.origin else { return false }
            try await push.upload(snapshot)
        }
        guard isCurrent(backend), origin == database.origin else { return false }
        try await push.finish()
        guard isCurrent(backend) else { return false }
        let published = snapshots.map { ($0.identifier, $0.sequence) }
        try database.markPublished(Dictionary(uniqueKeysWithValues: published), under: origin)
        ownPublication = .asPublished
        lastPush = database.environment.time()
        return true
    }

    private func publication() throws(EngineError) -> Publication {
        Publication(
            account: database.account.identifier, origin: database.origin,
            formerOrigins: try database.formerOrigins(), device: device, stores: try database.accountStores(),
            time: database.environment.time())
    }

    /// What this device published is not there any more, or what it wrote goes under a new name.
    private var needsRepublication: Bool {
        if case .asPublished = ownPublication { return false }
        return database.hasPublished
    }

    // MARK: State

    /// Whether the account is still with the backend that a pass began with.
    private func isCurrent(_ backend: any RemoteBackend) -> Bool {
        self.backend.map { $0 as AnyObject === backend as AnyObject } ?? false
    }

    private var restingState: State { database.account.isDownloaded ? .idle : .initialSync }

    private func setState(_ state: State, error: RemoteError?) {
        guard state != self.state || error != lastError else { return }
        self.state = state
        lastError = error
        onStateChange?()
    }

    private func answer(_ waiters: [Waiter], _ result: Result<Void, RemoteError>) {
        for waiter in waiters { waiter.resume(returning: result) }
    }
}

/// What a store's subscribers are told.
public struct StoreNotice {
    /// The store, after the change.
    public let store: Store
    /// Why it changed.
    public let reason: Reason
    /// The keys whose visible value is another one; with a quota violation, those that do not fit.
    public let keys: [Key]
    /// The identifier of the device that wrote, where it was one and is known.
    public let device: String?

    /// Why a store changed, by the numbers of the bus. The first four are Apple's.
    public enum Reason: UInt32, Sendable {
        case serverChange = 0
        case initialSyncChange = 1
        case quotaViolationChange = 2
        case accountChange = 3
        case localChange = 16
    }

    /// A notice of its parts.
    public init(store: Store, reason: Reason, keys: [Key], device: String?) {
        self.store = store
        self.reason = reason
        self.keys = keys
        self.device = device
    }
}

extension AccountSync.State {
    init(after error: RemoteError) {
        switch error.code {
        case .unavailable: self = .offline
        case .unauthorized: self = .authFailed
        case .reset: self = .paused
        case .denied, .full, .noAccount, .tooNew, .damaged, .unsupported: self = .error
        }
    }
}
