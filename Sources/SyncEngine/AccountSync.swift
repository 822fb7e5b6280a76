// SPDX-License-Identifier: Apache-2.0

// One user's account: signing in and out, and the cycles that sync the device and the remote. SyncCycle decides what a
// cycle does, and in which order; AccountReplica carries it out on the database.
//
// Not Sendable: it lives with the database in its owner's isolation. Only the backend works elsewhere.

package import Replication
package import StoreEngine

/// Syncs one user's database with a remote.
package final class AccountSync {
    /// The state of the account.
    package internal(set) var state: State = .signedOut
    /// The last error; `nil` after a cycle without a problem.
    package internal(set) var lastError: RemoteError?
    /// When the last complete pull ended, in microseconds since 1970; 0 if never.
    package var lastPull: UInt64 { isSignedIn ? database.account.lastPull : 0 }
    /// When the last upload ended, in microseconds since 1970; 0 if never, or if it is gone from the remote.
    package var lastPush: UInt64 { isSignedIn && !replica.cycle.isPublicationGone ? database.account.lastPush : 0 }
    /// The account's devices, including this one.
    package var devices: DeviceList { replica.devices }
    /// Whether the user has paused sync.
    package var isPaused: Bool { replica.isPaused }

    /// Called when ``state``, ``lastError``, the account, or whether its values have arrived has changed.
    package var onStateChange: (() -> Void)?
    /// Called after a cycle that found the database damaged, with the reason.
    package var onDamage: ((String) -> Void)?
    /// Called when the remote, or a change of account, has changed what a store shows.
    package var onNotice: ((StoreNotice) -> Void)? {
        get { replica.onNotice }
        set { replica.onNotice = newValue }
    }
    /// Called when the account continues under another identifier.
    package var onRename: (() -> Void)? {
        get { replica.onRename }
        set { replica.onRename = newValue }
    }
    /// Called with a backend that the account has left, to close it. Closing may hang, so nothing should wait for it.
    package var onLeave: ((any RemoteBackend) -> Void)?
    /// Called when ``nextCycle`` may have changed.
    package var onScheduleChange: (() -> Void)?
    /// The keys of a store that never leave this device.
    package var localKeys: (String) -> LocalKeys {
        get { replica.localKeys }
        set { replica.localKeys = newValue }
    }

    /// Called before a store takes in what other devices have written. If it throws, the cycle goes on without the store
    /// and reports that error, and every pull offers the store again.
    package var makeRoom: (Store, JoinPlan) throws(RemoteError) -> Void {
        get { replica.makeRoom }
        set { replica.makeRoom = newValue }
    }

    /// Called between a cycle's steps with the microseconds that they have used the processor. The cycle goes on when it
    /// returns.
    package var onWork: ((UInt64) async -> Void)? {
        get { replica.onWork }
        set { replica.onWork = newValue }
    }

    let replica: AccountReplica
    let monotonicTime: () -> UInt64
    var damage: String?
    /// The account's identifiers, as the last pull found them; empty before the first pull with this backend.
    package var identifiers: Set<String> { replica.identifiers }
    /// Whether a sync was requested although the account waits for a decision of the user.
    var pollsOnRequest = false
    /// The server's refusal of the credentials, if the last cycle ended with it.
    var refusal: RemoteError?
    /// When programs may have refused credentials tried again.
    var refusedAttempts = TokenBucket(capacity: 1, interval: 60_000_000)
    private var lastReported: ReportedState?

    var waiters = CycleWaiters()

    /// The state of an account.
    package enum State: Sendable {
        case initialSync, idle, syncing, offline, paused, error, authFailed, signedOut
    }

    /// Makes an account that is signed out.
    /// - Parameter monotonicTime: returns the monotonic clock's time in microseconds.
    package init(_ database: UserDatabase, device: RemoteDevice, monotonicTime: @escaping () -> UInt64) {
        replica = AccountReplica(database, own: device, monotonicTime: monotonicTime)
        self.monotonicTime = monotonicTime
        lastReported = ReportedState(
            state: state, error: nil, account: database.account.identifier,
            isDownloaded: database.account.isDownloaded)
        replica.onTransfer = { [unowned self] in setState(.syncing, error: lastError) }
    }

    var database: UserDatabase { replica.database }
    /// The backend of the account; `nil` if it has none.
    package var backend: (any RemoteBackend)? { replica.backend }

    // MARK: Events from outside

    /// Whether a client subscribes to remote changes.
    package var hasSubscribers = false {
        didSet {
            guard hasSubscribers != oldValue else { return }
            schedule?.noteSubscribers(hasSubscribers, monotonicTime())
            onScheduleChange?()
        }
    }

    /// How often the remote is polled, as the administrator has configured it.
    package var pace = SyncPace() {
        didSet {
            guard pace != oldValue else { return }
            schedule?.follow(pace, monotonicTime())
            onScheduleChange?()
        }
    }

    /// Whether the user is present, and what the machine has to save.
    package var circumstances = SyncCircumstances() {
        didSet {
            guard circumstances != oldValue else { return }
            schedule?.follow(circumstances, monotonicTime())
            onScheduleChange?()
        }
    }

    /// Notes that the machine has been asleep.
    package func noteWaking() {
        schedule?.noteWaking(monotonicTime())
        onScheduleChange?()
    }

    /// Notes a write to a store on this device.
    package func noteLocalChange() {
        let before = schedule
        schedule?.noteChange(monotonicTime())
        if schedule != before { onScheduleChange?() }
    }

    /// Uploads what is pending as soon as the limit on uploads allows.
    package func hasten() {
        schedule?.hasten(monotonicTime())
        onScheduleChange?()
    }

    /// Notes that the machine's network may have changed.
    package func noteNetwork() {
        schedule?.noteNetwork(monotonicTime())
        onScheduleChange?()
    }

    /// Notes that the remote has something new.
    package func noteHint() {
        schedule?.noteHint(monotonicTime())
        onScheduleChange?()
    }

    /// The backend's hints, to be passed to ``noteHint()``. They end when the account leaves this backend.
    package var hints: AsyncStream<Void>? { backend?.hints() }

    /// When the next cycle is due, by the monotonic clock; `nil` if none is before another event.
    package var nextCycle: UInt64? {
        isPaused || (isStopped && !pollsOnRequest) ? nil : replica.cycle.nextCycle
    }

    /// Pauses or resumes sync. A pause is not an error. What is pending waits.
    package func setPaused(_ isPaused: Bool) {
        guard isPaused != self.isPaused else { return }
        replica.isPaused = isPaused
        guard backend != nil, !isStopped else { return }
        setState(restingState, error: nil)
        if isPaused {
            waiters.failAll(pauseReason)
        } else if let refusal, !mayRetryRefused() {
            setState(.authFailed, error: refusal)
        } else {
            schedule?.requestAtPace(monotonicTime())
        }
        onScheduleChange?()
    }

    /// Whether the remote was reset. Sync is paused until the user says which side is right.
    package var isReset: Bool { state == .paused && lastError?.code == .reset }

    /// Whether the last cycle with this backend that ended has joined everything of the account that can be read.
    package internal(set) var hasReadAll = false

    /// Whether the last cycle with this backend that ended has joined everything that it could read, even if parts of the
    /// account have not arrived.
    package internal(set) var hasJoinedReadable = false

    /// Whether the last cycle that ended skipped something that can't be read.
    package internal(set) var hasUnread = false

    /// Whether a cycle is under way.
    package var isInCycle: Bool { replica.cycle.isRunning }

    /// Whether the last cycle that ended found this device's last publication in the remote, whatever else is in it.
    package internal(set) var isPublished = false

    func noteCycle(hasEnded: Bool) {
        let isThere = hasEnded && database.account.isDownloaded
        hasJoinedReadable = isThere && replica.cycle.hasJoinedReadable
        (hasReadAll, hasUnread) = (hasJoinedReadable && replica.cycle.isPullComplete, replica.cycle.hasUnread)
        isPublished = isThere && replica.cycle.foundPublication && lastPush != 0
    }

    /// Records that what was uploaded is gone from the remote, because neither the next process nor an account that was
    /// left would know it. If that fails, the next cycle does it.
    func forgetPublication() {
        if database.account.lastPush != 0 { try? database.progress.forgetPublication() }
    }

    /// Whether this device lacks the account's key. Sync is paused until the user enters the recovery phrase.
    package var needsKey: Bool { state == .paused && lastError?.code == .keyNeeded }

    /// Whether sync is paused until the user decides something.
    private var isStopped: Bool { isReset || needsKey }

    /// When a failed cycle is tried again, by the monotonic clock; `nil` if the last one did not fail.
    package var nextAttempt: UInt64? { state == .paused ? nil : schedule?.nextAttempt }

    /// Whether changes are pending that may be uploaded.
    package var hasPendingChanges: Bool { replica.hasPendingChanges }

    /// Whether what is pending is going to be uploaded, as far as is known.
    package var isUploading: Bool {
        switch state {
        case .idle, .syncing: true
        case .initialSync: lastError == nil
        case .offline, .paused, .error, .authFailed, .signedOut: false
        }
    }

    var schedule: SyncSchedule? {
        get { replica.cycle.schedule }
        set { replica.cycle.schedule = newValue }
    }

    // MARK: State

    var restingState: State { isPaused ? .paused : database.account.isDownloaded ? .idle : .initialSync }

    func setState(_ state: State, error: RemoteError?) {
        self.state = state
        lastError = error
        let now = ReportedState(
            state: state, error: error, account: database.account.identifier,
            isDownloaded: database.account.isDownloaded)
        if lastReported == now { return }
        lastReported = now
        onStateChange?()
    }

    /// The arguments of the last call of ``onStateChange``.
    private struct ReportedState: Equatable {
        let state: State
        let error: RemoteError?
        let account: String
        let isDownloaded: Bool
    }
}

extension AccountSync.State {
    init(after error: RemoteError) {
        switch error.code {
        case .unavailable: self = .offline
        case .unauthorized: self = .authFailed
        case .reset, .keyNeeded: self = .paused
        case .denied, .full, .noAccount, .tooNew, .damaged, .unsupported, .keyWrong, .otherKeys, .unencrypted, .device:
            self = .error
        }
    }
}
