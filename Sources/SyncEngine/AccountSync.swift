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

    /// What the account asks the program that it is part of, and tells it.
    package var host: AccountHost {
        get { replica.host }
        set { replica.host = newValue }
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
            host.onScheduleChange?()
        }
    }

    /// How often the remote is polled, as the administrator has configured it.
    package var pace = SyncPace() {
        didSet {
            guard pace != oldValue else { return }
            schedule?.follow(pace, monotonicTime())
            host.onScheduleChange?()
        }
    }

    /// Whether the user is present, and what the machine has to save.
    package var circumstances = SyncCircumstances() {
        didSet {
            guard circumstances != oldValue else { return }
            schedule?.follow(circumstances, monotonicTime())
            host.onScheduleChange?()
        }
    }

    /// Notes that the machine has been asleep.
    package func noteWaking() {
        schedule?.noteWaking(monotonicTime())
        host.onScheduleChange?()
    }

    /// Notes a write to a store on this device.
    package func noteLocalChange() {
        let before = schedule
        schedule?.noteChange(monotonicTime())
        if schedule != before { host.onScheduleChange?() }
    }

    /// Uploads what is pending as soon as the limit on uploads allows.
    package func hasten() {
        schedule?.hasten(monotonicTime())
        host.onScheduleChange?()
    }

    /// Notes that the machine's network may have changed.
    package func noteNetwork() {
        schedule?.noteNetwork(monotonicTime())
        host.onScheduleChange?()
    }

    /// Notes that the remote has something new.
    package func noteHint() {
        schedule?.noteHint(monotonicTime())
        host.onScheduleChange?()
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
        host.onScheduleChange?()
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
        host.onStateChange?()
    }

    /// The arguments of the last call of ``AccountHost/onStateChange``.
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
