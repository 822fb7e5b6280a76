// SPDX-License-Identifier: Apache-2.0

package import Replication
internal import StoreEngine

extension AccountSync {
    /// A program that asks for a sync cycle.
    package enum Requester: Sendable {
        /// A program of the user's, perhaps because the user has put something right.
        case program
        /// An app, which may ask often and without the user's knowledge.
        case app
    }

    /// Runs a sync cycle for a program: now, or soon if programs have asked for many. Returns when it has ended.
    ///
    /// After the server has refused the credentials, this returns the refusal without another attempt, except once a
    /// minute for a program that isn't an app.
    /// - Throws: why the cycle failed, or could not be run.
    package func syncNow(for requester: Requester) async throws(RemoteError) {
        try checkCanSync()
        if let refusal, requester == .app || !mayRetryRefused() { throw refusal }
        try await wait { $0.requestAtPace($1) }
    }

    /// Runs a sync cycle now, however many were requested, and returns when it has ended.
    /// - Throws: why the cycle failed, or could not be run.
    package func syncNow() async throws(RemoteError) {
        try await wait { $0.request($1) }
    }

    /// Syncs for a program, and makes sure that the remote has all that this device has, also what only came from other
    /// devices: reads back what was uploaded, and uploads it again if the remote hasn't kept it.
    /// - Returns: whether the remote had kept what was uploaded.
    /// - Throws: why a cycle failed, or that the remote keeps nothing.
    @discardableResult
    package func syncAndVerify(for requester: Requester) async throws(RemoteError) -> Bool {
        replica.verifications += 1
        // An upload that was not found again doesn't count.
        var (hasKept, isDoubtful) = (true, false)
        defer {
            replica.verifications -= 1
            if isDoubtful { forgetPublication() }
        }
        for _ in 0..<4 {
            await backend?.doubtPublication()
            try await syncNow(for: requester)
            if replica.cycle.found == .missing { hasKept = false }
            isDoubtful = replica.cycle.uploaded
            if isPublished, !isDoubtful, !replica.facts.isPending { return hasKept }
        }
        throw isPublished
            ? RemoteError(.unavailable, "Programs go on writing, so the remote never has everything.")
            : RemoteError(
                .unavailable,
                "The remote doesn't keep what this device uploads. Look for a program that removes or empties files there."
            )
    }

    /// Whether the first download can't end, because parts of the account have not arrived, or are damaged.
    package var lacksParts: Bool { state == .initialSync && lastError != nil }

    /// Ends the first download without the parts of the account that can't be read. If they arrive later, they are
    /// joined like any change.
    /// - Throws: why the account could not be downloaded.
    package func acceptGaps() async throws(RemoteError) {
        replica.cycle.wantsGaps = true
        do { try await syncNow() } catch {
            replica.cycle.wantsGaps = false
            guard database.account.isDownloaded else { throw error }
        }
    }

    private func checkCanSync() throws(RemoteError) {
        guard backend != nil else { throw lastError ?? RemoteError(.noAccount, "No account is signed in.") }
        if isPaused { throw pauseReason }
        if waiters.isFull {
            throw RemoteError(.unavailable, CycleWaiters.refusal)
        }
    }

    private func wait(for request: (inout SyncSchedule, UInt64) -> Void) async throws(RemoteError) {
        // A remote that was found empty may be a drive that was not mounted, so it is read again.
        pollsOnRequest = isReset || needsKey
        let result: Result<Void, RemoteError> = await withCheckedContinuation { continuation in
            // The user may have paused or signed out since the call.
            do throws(RemoteError) { try checkCanSync() } catch {
                return continuation.resume(returning: .failure(error))
            }
            if var schedule {
                request(&schedule, monotonicTime())
                self.schedule = schedule
            }
            waiters.add(continuation)
            host.onScheduleChange?()
        }
        try result.get()
    }

    /// Whether refused credentials may be tried again for a program, which counts as done.
    func mayRetryRefused() -> Bool {
        let now = monotonicTime()
        guard refusedAttempts.nextToken(now) == now else { return false }
        refusedAttempts.take(now)
        return true
    }

    var pauseReason: RemoteError { lastError ?? .paused }

    /// Runs the cycles that are due.
    package func runDueCycles() async {
        guard !replica.cycle.isRunning else { return }
        while let due = nextCycle, due <= monotonicTime(), let backend {
            pollsOnRequest = false
            waiters.beginCycle()
            let result = await runCycle(with: backend)
            // Meanwhile the account may have left this backend, and may even be in a cycle with another one.
            guard replica.isWith(backend) else { return }
            waiters.endCycle(replica.cycle.isInterrupted ? nil : result)
            if let damage {
                self.damage = nil
                return host.onDamage?(damage) ?? ()
            }
            // The calls that an interrupted cycle leaves wait for the next one.
            if !waiters.isEmpty, schedule?.isRequested == false { schedule?.request(monotonicTime()) }
            if state == .paused { waiters.failWaiting(pauseReason) }
        }
        host.onScheduleChange?()
    }

    private func runCycle(with backend: any RemoteBackend) async -> Result<Void, RemoteError> {
        let uploads = replica.cycle.begin(monotonicTime())
        // The pull before an upload may take long. Meanwhile the state should not claim that there is nothing to do.
        if uploads, state == .idle, replica.cycle.wantsPublication(replica.facts) {
            setState(.syncing, error: lastError)
        }
        do {
            try await replica.makeCycle(with: backend)
            guard replica.isCurrent(backend) else { return cut(backend, pauseReason) }
            noteCycle(hasEnded: true)
            if replica.cycle.isPublicationGone { forgetPublication() }
            refusal = nil
            try database.names.noteSuccessor(nil)
            setState(restingState, error: replica.cycle.problem)
            if database.account.isDownloaded, !replica.cycle.isAwaitingParts { return .success(()) }
            return .failure(
                replica.cycle.problem ?? RemoteError(.unavailable, "Not all of the account has arrived yet."))
        } catch {
            if case EngineError.corrupt(let reason) = error, replica.isWith(backend) { damage = reason }
            let error = RemoteError(error)
            guard replica.isCurrent(backend), damage == nil else { return cut(backend, error) }
            noteCycle(hasEnded: false)
            if replica.cycle.isPublicationGone || error.code == .reset { forgetPublication() }
            refusal = error.code == .unauthorized ? error : nil
            // Recorded now, because the user may sign out before entering the recovery phrase.
            if let identifier = error.encryptedAccount { try? database.names.noteSuccessor(identifier) }
            replica.cycle.fail(error, monotonicTime(), jitter: database.environment.random())
            setState(State(after: error), error: error)
            return .failure(error)
        }
    }

    private func cut(_ backend: any RemoteBackend, _ error: RemoteError) -> Result<Void, RemoteError> {
        if replica.isWith(backend) { replica.cycle.cut(monotonicTime()) }
        return .failure(error)
    }
}

extension RemoteError {
    /// Why nothing is synced while the user has paused that.
    package static let paused = RemoteError(.unavailable, "Sync is paused on this device.")
}
