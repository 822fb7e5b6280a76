// SPDX-License-Identifier: Apache-2.0

public import Replication
internal import StoreEngine

extension AccountSync {
    /// Uploads and downloads now, and returns when both are done.
    /// - Throws: why it could not be done.
    public func syncNow() async throws(RemoteError) {
        guard backend != nil else { throw lastError ?? RemoteError(.noAccount, "no account is signed in") }
        if isPaused { throw pauseReason }
        if waiters.count >= Self.maximumWaiters {
            throw RemoteError(.unavailable, "\(Self.maximumWaiters) others wait for the account already")
        }
        // A place that was empty may be a drive that is back.
        looksAgain = isReset || needsKey
        schedule?.request(monotonicTime())
        let result = await withCheckedContinuation { continuation in
            waiters.append(continuation)
            onScheduleChange?()
        }
        try result.get()
    }

    private static let maximumWaiters = 256

    var pauseReason: RemoteError { lastError ?? RemoteError(.unavailable, "sync is paused on this device") }

    /// Makes the cycles that are due.
    public func runDueCycles() async {
        guard !cycle.isRunning else { return }
        while let due = nextCycle, due <= monotonicTime(), let backend {
            looksAgain = false
            (answeredByCycle, waiters) = (waiters, [])
            let result = await runCycle(with: backend)
            // Meanwhile the account may have left this backend, and even be in a cycle with another one.
            guard isWith(backend) else { return }
            // Whoever waits for an upload that was interrupted waits for the next one.
            if cycle.isInterrupted { waiters = answeredByCycle + waiters } else { answer(answeredByCycle, result) }
            answeredByCycle = []
            if let damage {
                self.damage = nil
                return onDamage?(damage) ?? ()
            }
            // Whoever asked during the cycle wants one that began later.
            if !waiters.isEmpty { schedule?.request(monotonicTime()) }
            if state == .paused {
                answer(waiters, .failure(pauseReason))
                waiters = []
            }
        }
        onScheduleChange?()
    }

    private func runCycle(with backend: any RemoteBackend) async -> Result<Void, RemoteError> {
        let uploads = cycle.begin(monotonicTime())
        // The look before an upload may take long, and nobody should be told meanwhile that there is nothing to do.
        if uploads, state == .idle, cycle.wantsPublication(facts) { setState(.syncing, error: lastError) }
        do {
            try await makeCycle(with: backend)
            guard isCurrent(backend) else { return cut(backend, pauseReason) }
            setState(restingState, error: cycle.problem)
            if database.account.isDownloaded, cycle.isPullComplete { return .success(()) }
            return .failure(cycle.problem ?? RemoteError(.unavailable, "Not all of the account has arrived yet."))
        } catch {
            if case EngineError.corrupt(let reason) = error, isWith(backend) { damage = reason }
            let error = RemoteError(error)
            guard isCurrent(backend), damage == nil else { return cut(backend, error) }
            cycle.fail(error, monotonicTime(), jitter: database.environment.random())
            setState(State(after: error), error: error)
            return .failure(error)
        }
    }

    private func cut(_ backend: any RemoteBackend, _ error: RemoteError) -> Result<Void, RemoteError> {
        if isWith(backend) { cycle.cut() }
        return .failure(error)
    }
}
