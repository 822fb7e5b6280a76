// SPDX-License-Identifier: Apache-2.0

// One user's account: signing in and out, and the cycles that bring device and remote together. What a cycle does, and
// in which order, is decided by SyncCycle; AccountSync+cycle does it to the database.
//
// Not Sendable: it lives with the database in its owner's isolation. Only the backend works elsewhere.

public import Replication
public import StoreEngine

/// Keeps one user's database and a remote together.
public final class AccountSync {
    /// Where the account stands.
    public internal(set) var state: State = .signedOut
    /// What went wrong last; `nil` after a pass that went well.
    public internal(set) var lastError: RemoteError?
    /// When the last complete look at the remote ended, in microseconds since 1970; 0: never.
    public var lastPull: UInt64 { isSignedIn ? database.account.lastPull : 0 }
    /// When the last upload ended, in microseconds since 1970; 0: never.
    public var lastPush: UInt64 { isSignedIn ? database.account.lastPush : 0 }
    /// This device, as the others are told of it.
    public var device: RemoteDevice
    /// The person has chosen the device's name here, and it counts whatever the account says, until that has it.
    public var announcesName = false
    /// The person has it rest.
    public internal(set) var isPaused = false

    /// Called when ``state``, ``lastError``, the account or whether its values have arrived becomes another one.
    public var onStateChange: (() -> Void)?
    /// Called when this device got another name, and when the account has the one that was chosen here.
    public var onDeviceChange: (() -> Void)?
    /// Called after a pass that found the database damaged, with the reason.
    public var onDamage: ((String) -> Void)?
    /// Called when the remote, or an account, has changed what a store shows.
    public var onNotice: ((StoreNotice) -> Void)?
    /// Called when the account goes on under another identifier.
    public var onRename: (() -> Void)?
    /// Called with a backend that the account has left, to be closed. It may hang: nobody should wait for it.
    public var onLeave: ((any RemoteBackend) -> Void)?
    /// Called when ``nextCycle`` may have become another one.
    public var onScheduleChange: (() -> Void)?
    /// The keys of a store that never leave this device.
    public var localKeys: (String) -> LocalKeys = { _ in .none }

    let database: UserDatabase
    let monotonicTime: () -> UInt64
    var backend: (any RemoteBackend)?
    package var cycle = SyncCycle()
    /// Whom the account's origins belong to, as far as a pull has ever said.
    var names: [Origin: RemoteDevice] = [:]
    /// Those of whom the last pull has found something.
    var presentDevices: Set<String> = []
    var damage: String?
    /// Somebody wants a remote that was reset to be looked at all the same.
    var looksAgain = false
    private var told: Told?

    typealias Waiter = CheckedContinuation<Result<Void, RemoteError>, Never>
    /// Those that wait for a pass that is still to begin, and those whom the one under way will answer.
    var waiters: [Waiter] = []
    var answeredByCycle: [Waiter] = []

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
        told = Told(
            state: state, error: nil, account: database.account.identifier,
            isDownloaded: database.account.isDownloaded)
    }

    // MARK: What happens around it

    /// Somebody subscribes to what the remote changes.
    public var hasSubscribers = false {
        didSet {
            guard hasSubscribers != oldValue else { return }
            schedule?.noteSubscribers(hasSubscribers, monotonicTime())
            onScheduleChange?()
        }
    }

    /// What an administrator says of how often the remote is looked at.
    public var pace = SyncPace() {
        didSet {
            guard pace != oldValue else { return }
            schedule?.follow(pace, monotonicTime())
            onScheduleChange?()
        }
    }

    /// Where the person is, and what the machine is to save.
    public var circumstances = SyncCircumstances() {
        didSet {
            guard circumstances != oldValue else { return }
            schedule?.follow(circumstances, monotonicTime())
            onScheduleChange?()
        }
    }

    /// The machine was asleep.
    public func noteWaking() {
        schedule?.noteWaking(monotonicTime())
        onScheduleChange?()
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

    /// This machine may have come to a network, or left one.
    public func noteNetwork() {
        schedule?.noteNetwork(monotonicTime())
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
    public var nextCycle: UInt64? {
        isPaused || (isStopped && !looksAgain) ? nil : cycle.nextCycle
    }

    /// Has the account rest, or go on. It rests without an error, and what is pending waits.
    public func setPaused(_ isPaused: Bool) {
        guard isPaused != self.isPaused else { return }
        self.isPaused = isPaused
        guard backend != nil, !isStopped else { return }
        setState(restingState, error: nil)
        if isPaused {
            answer(answeredByCycle + waiters, .failure(pauseReason))
            (answeredByCycle, waiters) = ([], [])
        } else {
            schedule?.request(monotonicTime())
        }
        onScheduleChange?()
    }

    /// The remote is not what it was: it rests until somebody says which side is right.
    public var isReset: Bool { state == .paused && lastError?.code == .reset }

    /// The account is encrypted under a key that is not here: it rests until somebody enters the recovery phrase.
    public var needsKey: Bool { state == .paused && lastError?.code == .keyNeeded }

    /// It rests until a person decides something.
    private var isStopped: Bool { isReset || needsKey }

    /// When a failed pass is tried again, on the monotonic clock; `nil` if the last one did not fail.
    public var nextAttempt: UInt64? { state == .paused ? nil : schedule?.nextAttempt }

    /// Whether there is something that the remote does not have and may have.
    public var hasPendingChanges: Bool { (try? database.hasUploads()) ?? false }

    /// Whether what is pending is going to be uploaded as far as is known.
    public var isUploading: Bool {
        switch state {
        case .idle, .syncing: true
        case .initialSync: lastError == nil
        case .offline, .paused, .error, .authFailed, .signedOut: false
        }
    }

    var schedule: SyncSchedule? {
        get { cycle.schedule }
        set { cycle.schedule = newValue }
    }

    // MARK: State

    /// Whether the account is still with the backend that a pass began with.
    func isWith(_ backend: any RemoteBackend) -> Bool {
        self.backend.map { $0 as AnyObject === backend as AnyObject } ?? false
    }

    /// Whether a pass that began with a backend may go on.
    package func isCurrent(_ backend: any RemoteBackend) -> Bool { isWith(backend) && !isPaused }

    var restingState: State { isPaused ? .paused : database.account.isDownloaded ? .idle : .initialSync }

    func setState(_ state: State, error: RemoteError?) {
        self.state = state
        lastError = error
        let now = Told(
            state: state, error: error, account: database.account.identifier,
            isDownloaded: database.account.isDownloaded)
        if told == now { return }
        told = now
        onStateChange?()
    }

    /// What ``onStateChange`` was called for last.
    private struct Told: Equatable {
        let state: State
        let error: RemoteError?
        let account: String
        let isDownloaded: Bool
    }

    func answer(_ waiters: [Waiter], _ result: Result<Void, RemoteError>) {
        for waiter in waiters { waiter.resume(returning: result) }
    }
}

extension AccountSync.State {
    init(after error: RemoteError) {
        switch error.code {
        case .unavailable: self = .offline
        case .unauthorized: self = .authFailed
        case .reset, .keyNeeded: self = .paused
        case .denied, .full, .noAccount, .tooNew, .damaged, .unsupported, .keyWrong, .inPlain, .device: self = .error
        }
    }
}
