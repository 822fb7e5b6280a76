// SPDX-License-Identifier: Apache-2.0

public import Replication
public import StoreEngine

extension AccountSync {
    /// Whether an account is signed in, be it one that can't be used (see ``fail(_:)``).
    public var isSignedIn: Bool { state != .signedOut }

    /// Whether it has a remote to look at: an account that can't be used has none.
    public var hasBackend: Bool { backend != nil }

    /// Goes on with the account that a backend leads to. Values come later.
    /// - Parameters:
    ///   - backend: opened, so that it is known to work.
    ///   - remote: what opening it found.
    ///   - bringsValues: the present values are written to the account, if it is new.
    ///   - deviceName: another name for this device.
    /// - Throws: nothing has changed then.
    public func signIn(
        to backend: any RemoteBackend, as remote: RemoteAccount, bringingValues bringsValues: Bool,
        deviceName: String? = nil
    ) throws(EngineError) {
        try replica.enter(remote, bringsValues: bringsValues && remote.isNew)
        leaveBackend("The account was signed in anew.")
        replica.isPaused = false
        if let deviceName { devices.takeName(deviceName) }
        start(backend)
    }

    /// Goes on with the account that this device was signed in to before it was restarted.
    public func resume(with backend: any RemoteBackend, isPaused: Bool = false, onlyReads: Bool = false) {
        replica.isPaused = isPaused
        start(backend)
        replica.cycle.onlyReads = onlyReads
    }

    /// Goes on with the account that is signed in by another backend.
    /// - Parameter onlyReads: nothing is written to it.
    public func change(to backend: any RemoteBackend, onlyReads: Bool) {
        leaveBackend("The account is moving to another key.")
        resume(with: backend, isPaused: isPaused, onlyReads: onlyReads)
        schedule?.request(monotonicTime())
        onScheduleChange?()
    }

    /// Waits before the next cycle for as long as an error says that the remote is to be left alone. ``syncNow()`` does
    /// not wait.
    public func postpone(_ error: RemoteError) {
        guard hasBackend, !isPaused else { return }
        schedule?.failed(monotonicTime(), retryAfter: error.retryAfter, jitter: 0)
        setState(State(after: error), error: error)
        onScheduleChange?()
    }

    /// Goes on with an account that was gone from its remote and is there again, by this device's doing: what this
    /// device has goes up.
    public func signIn(to backend: any RemoteBackend, asRestored remote: RemoteAccount) throws(EngineError) {
        if Rule.publishAnew.isOn { try database.forgetPublication() }
        try signIn(to: backend, as: remote, bringingValues: false)
    }

    /// Signs out. The values stay as the account's, and writes to them are pending until it is signed in again.
    /// - Parameter keepsValues: `false` removes the account's values from this device, history included.
    /// - Throws: nothing has changed then.
    public func signOut(keepingValues keepsValues: Bool) throws(EngineError) {
        let changes = keepsValues ? [] : try database.clearAccount()
        leaveBackend("The account was signed out.")
        replica.isPaused = false
        // Before the state changes, as in signing in: a client that hears of the state has heard of every change.
        replica.tell(changes, .accountChange)
        setState(.signedOut, error: nil)
    }

    /// Ends what is under way; the account stays signed in.
    public func close() {
        leaveBackend("The service is ending.")
    }

    /// Says that an account that is signed in can't be used.
    public func fail(_ error: RemoteError) {
        setState(.error, error: error)
    }

    private func start(_ backend: any RemoteBackend) {
        replica.backend = backend
        devices.forgetWriters()
        replica.cycle = SyncCycle(SyncSchedule(backend.traits, pace: pace, circumstances, now: monotonicTime()))
        noteCycle(hasEnded: false)
        schedule?.hasSubscribers = hasSubscribers
        if hasPendingChanges { schedule?.noteChange(monotonicTime()) }
        setState(restingState, error: nil)
        onScheduleChange?()
    }

    /// Abandons the backend: closing it may hang, so nothing waits for it. A cycle that is still under way notices when
    /// its call returns.
    private func leaveBackend(_ reason: String) {
        let leaving = backend
        replica.backend = nil
        (replica.cycle, looksAgain) = (SyncCycle(), false)
        waiters.failAll(RemoteError(.unavailable, reason))
        if let leaving { onLeave?(leaving) }
    }
}
