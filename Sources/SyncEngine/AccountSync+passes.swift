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
        looksAgain = isReset
        schedule?.request(monotonicTime())
        let result = await withCheckedContinuation { continuation in
            waiters.append(continuation)
            onScheduleChange?()
        }
        try result.get()
    }

    private static let maximumWaiters = 256

    var pauseReason: RemoteError { lastError ?? RemoteError(.unavailable, "sync is paused on this device") }

    /// Makes the passes that are due.
    public func runDueCycles() async {
        guard !isCycling else { return }
        while let due = nextCycle, due <= monotonicTime(), let backend {
            (isCycling, looksAgain, isInterrupted) = (true, false, false)
            (answeredByCycle, waiters) = (waiters, [])
            let result = await pass(backend)
            // Meanwhile the account may have left this backend, and even be in a pass with another one.
            guard isWith(backend) else { return }
            isCycling = false
            // Whoever waits for an upload that was interrupted waits for the next one.
            if isInterrupted { waiters = answeredByCycle + waiters } else { answer(answeredByCycle, result) }
            answeredByCycle = []
            if let damage {
                self.damage = nil
                return onDamage?(damage) ?? ()
            }
            // Whoever asked while the pass was under way wants one that began later.
            if !waiters.isEmpty { schedule?.request(monotonicTime()) }
            if state == .paused {
                answer(waiters, .failure(pauseReason))
                waiters = []
            }
        }
        onScheduleChange?()
    }

    func pass(_ backend: any RemoteBackend) async -> Result<Void, RemoteError> {
        do {
            let uploads = schedule?.begin(monotonicTime()) ?? false
            // The look before an upload may take long, and nobody should be told meanwhile that there is nothing to do.
            if uploads, state == .idle, hasSomethingToPublish { setState(.syncing, error: lastError) }
            let received = try await download(from: backend)
            let uploaded = uploads || isPublicationDue ? try await upload(to: backend) : false
            try await collectGarbage(backend)
            guard isCurrent(backend) else { return .failure(pauseReason) }
            let isDownloaded = database.account.isDownloaded
            schedule?.traits = backend.traits
            schedule?.passed(
                monotonicTime(), received: received || !isDownloaded, uploaded: uploaded,
                isPending: isDownloaded && hasSomethingToPublish)
            setState(restingState, error: problem)
            if isDownloaded, isPullComplete { return .success(()) }
            return .failure(problem ?? RemoteError(.unavailable, "Not all of the account has arrived yet."))
        } catch {
            if case EngineError.corrupt(let reason) = error, isWith(backend) { damage = reason }
            let error = RemoteError(error)
            guard isCurrent(backend), damage == nil else { return .failure(error) }
            schedule?.failed(
                monotonicTime(), retryAfter: error.leastRest, jitter: database.environment.random())
            setState(State(after: error), error: error)
            return .failure(error)
        }
    }
}
