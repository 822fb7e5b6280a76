// SPDX-License-Identifier: Apache-2.0

package import Replication
package import StoreEngine

extension AccountSync {
    /// Whether an account is signed in, including one that can't be used (see ``fail(_:)``).
    package var isSignedIn: Bool { state != .signedOut }

    /// Whether the account has a backend. An account that can't be used has none.
    package var hasBackend: Bool { backend != nil }

    /// The names that the account had before its present key, as far as this device knows them.
    package var formerNames: Set<String> { get throws(EngineError) { try database.names.former() } }

    /// Returns the account that a remote really shows: see ``AccountReplica/genuine(_:)``.
    package func genuine(_ remote: RemoteAccount) throws -> RemoteAccount { try replica.genuine(remote) }

    /// Signs in to the account that a backend has found. Its values arrive later.
    /// - Parameters:
    ///   - backend: a backend that was opened, and therefore works.
    ///   - remote: the account that opening it has found.
    ///   - bringsValues: whether to write the present values to the account, if it is new.
    ///   - deviceName: another name for this device; `nil` keeps the present one.
    ///   - isPaused: whether no cycle begins before ``setPaused(_:)`` allows it.
    /// - Throws: if the database fails; then nothing has changed.
    package func signIn(
        to backend: any RemoteBackend, as remote: RemoteAccount, bringingValues bringsValues: Bool,
        deviceName: String? = nil, isPaused: Bool = false
    ) throws {
        try replica.enter(remote, bringsValues: bringsValues && remote.isNew)
        leaveBackend("The account was signed in again.")
        replica.isPaused = isPaused
        if let deviceName { devices.takeName(deviceName) }
        start(backend)
    }

    /// Continues with the account that this device was signed in to before the service was restarted.
    package func resume(with backend: any RemoteBackend, isPaused: Bool = false, onlyReads: Bool = false) {
        replica.isPaused = isPaused
        start(backend)
        replica.cycle.onlyReads = onlyReads
    }

    /// Continues with the account that is signed in, through another backend.
    /// - Parameter onlyReads: whether cycles write nothing to the remote.
    package func change(to backend: any RemoteBackend, onlyReads: Bool) {
        leaveBackend("The account is moving to another key.")
        resume(with: backend, isPaused: isPaused, onlyReads: onlyReads)
        schedule?.request(monotonicTime())
        host.onScheduleChange?()
    }

    /// Delays the next cycle for as long as an error says that the remote must be left alone. ``syncNow()`` ignores the
    /// delay.
    package func postpone(_ error: RemoteError) {
        guard hasBackend else { return }
        if isPaused {
            // The user has to know before the pause ends.
            if error.code == .keyNeeded { setState(State(after: error), error: error) }
            return
        }
        schedule?.failed(monotonicTime(), retryAfter: error.retryAfter, jitter: 0)
        refusal = error.code == .unauthorized ? error : nil
        setState(State(after: error), error: error)
        host.onScheduleChange?()
    }

    /// Signs in to an account that was gone from its remote and that this device has restored there. All that this
    /// device has is uploaded.
    package func signIn(
        to backend: any RemoteBackend, asRestored remote: RemoteAccount, isPaused: Bool = false
    ) throws {
        if Rule.publishAnew.isOn { try database.progress.forgetPublication() }
        try signIn(to: backend, as: remote, bringingValues: false, isPaused: isPaused)
    }

    /// Signs out. The values stay in the account, and writes to them are pending until it is signed in again.
    /// - Parameter keepsValues: false removes the account's values from this device, including their history.
    /// - Throws: if the database fails; then nothing has changed.
    package func signOut(keepingValues keepsValues: Bool) throws(EngineError) {
        let changes = keepsValues ? [] : try database.clearAccount()
        leaveBackend("The account was signed out.")
        replica.isPaused = false
        // Before the state changes, as when signing in, so that a client that learns the state knows of every change.
        replica.tell(changes, .accountChange)
        setState(.signedOut, error: nil)
    }

    /// Ends what is under way. The account stays signed in.
    package func close() {
        leaveBackend("The service is ending.")
    }

    /// Notes that the account that is signed in can't be used.
    package func fail(_ error: RemoteError) {
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
        host.onScheduleChange?()
    }

    /// Leaves the backend. Nothing waits for its closing, which may hang. A cycle that is still under way notices when
    /// its call returns.
    private func leaveBackend(_ reason: String) {
        let leaving = backend
        replica.backend = nil
        (replica.cycle, pollsOnRequest, refusal) = (SyncCycle(), false, nil)
        waiters.failAll(RemoteError(.unavailable, reason))
        if let leaving { host.onLeave?(leaving) }
    }
}
