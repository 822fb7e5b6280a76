// SPDX-License-Identifier: Apache-2.0

internal import SDBus
internal import StoreBus
internal import UbiquitousStore

extension AccountObject {
    /// Runs `body`, which waits for the remote. If it fails because of a pause, the error says how to end the pause.
    @BusActor
    func unlessPaused<Result>(_ body: @BusActor () async throws -> Result) async throws -> Result {
        do {
            return try await body()
        } catch let error as UbiquitousStoreError where error.code == .backendUnavailable {
            guard let state = try? await properties(), try await isPaused(state) else { throw error }
            throw Self.paused
        }
    }

    /// Whether the user has paused sync, also if the account can't be used, so that its state is an error.
    @BusActor
    func isPaused(_ account: AccountDescription) async throws -> Bool {
        if account.state != .error, !account.needsKey { return account.isPausedByUser }
        return try await devices().first { $0.isThisOne }?.isPaused ?? false
    }

    /// Tells the user if the last cycle has skipped something that it could not read, such as a damaged upload of
    /// another device. The cycle itself counts as done.
    @BusActor
    func remarkOnUnread() async throws {
        if try await properties().lastError == nil { return }
        Output.remark("Not everything in the remote could be read; see \"ubiquitousctl status\"")
    }

    nonisolated static var paused: Failure {
        Failure(
            .unreachable, "Sync is paused on this device.",
            advice: "\"ubiquitousctl account resume\" ends the pause.")
    }
}

extension AccountObject {
    /// Syncs, and returns the account's state then, also if sync has stopped for a decision of the user.
    @BusActor
    func synced() async throws -> AccountDescription {
        do { try await unlessPaused { try await syncNow(timeout: Patience.remote) } } catch {
            let account = try await properties()
            guard account.isReset || account.needsKey || account.isDamaged || account.lacksParts else { throw error }
            return account
        }
        return try await properties()
    }

    /// Returns how this device moves the account to a new key that only it has; empty if it doesn't.
    @BusActor
    func move() async throws -> String { try await devices().first { $0.isThisOne }?.moves ?? "" }

    /// Whether this device moves the account to a new key that only it has.
    @BusActor
    func isMoving() async throws -> Bool {
        guard try await properties().isSignedIn else { return false }
        return try await !move().isEmpty
    }

    /// Waits for the account's values. Until they are there, they take precedence over what a script sets next.
    @BusActor
    func awaitValues(timeout: Duration) async {
        do { try await syncNow(timeout: timeout) } catch {
            let account = try? await properties()
            guard let error = account?.lastError, account?.state != .initialSync else { return await remarkOnValues() }
            Output.remark("The account can't be synced now: \(Sentence(service: error.message))")
        }
    }

    /// Tells the user that the account's values have not all arrived.
    @BusActor
    func remarkOnValues() async {
        if let account = try? await properties(), (try? await isPaused(account)) == true {
            return Output.remark(
                """
                Sync is paused, and not all of the account's values are here; once they arrive, they replace what is \
                set here
                """)
        }
        Output.remark("The account's values are still arriving; until all are there, they replace what is set here")
    }

    /// Uploads pending changes if this device is signed in.
    /// - Parameter check: whether to upload nothing. Then changes count as unsaved if the service doesn't upload them now.
    /// - Returns: the error if values that are removed from this device may be lost; `nil` if the remote has them.
    @BusActor
    func unsaved(check: Bool) async throws -> Failure? {
        let account = try await check ? properties() : uploadPendingChanges(timeout: Patience.remote)
        if !account.isSignedIn { return nil }
        if account.awaitsDecision { return .perhapsUnsaved(account) }
        let isUploading = check && [.idle, .syncing, .initialSync].contains(account.state)
        if !isUploading, account.pendingChanges > 0 { return .unsaved(account.pendingChanges) }
        if account.mayLackChanges { return .perhapsUnsaved(account) }
        if !check, let error = account.lastError {
            Output.remark("What was uploaded can't be read back just now: \(Sentence(service: error.message))")
        }
        return nil
    }
}

extension AccountDescription {
    /// Whether something of the account is damaged in the remote.
    var isDamaged: Bool { lastError?.code == .corrupt }

    /// Whether the account can't arrive on this device, because parts of it are missing or damaged.
    var lacksParts: Bool { state == .initialSync && lastError != nil }
}
