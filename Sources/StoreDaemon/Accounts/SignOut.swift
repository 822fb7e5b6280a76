// SPDX-License-Identifier: Apache-2.0

internal import RemoteAddress
internal import SDBus
internal import StoreBus
internal import StoreEngine
internal import SyncEngine

/// Signs out, whatever is under way.
@BusActor
struct SignOut {
    let account: UserAccount
    let keepsValues: Bool
    /// Whether to refuse to remove values that the account lacks.
    let keepsPending: Bool
    /// Whether to refuse if possibly only this device has the account's key.
    let keepsLastKey: Bool

    /// Signs out, unless another account is signed in by the time of the caller's turn.
    func run() async throws {
        let place = account.url
        await account.attempts.turn()
        // A write of the account's file that is under way must not bring it back.
        try await account.files.inTurn {
            try check()
            guard RemoteAddress.areSame(account.url, place) else { throw Self.signedInElsewhere }
            // Before the file, so that the user can sign out again after a crash in between, or a power cut.
            let clearing = keepsValues ? .success(()) : try await clear()
            if !keepsValues, account.sync.isSignedIn { throw Self.signedInElsewhere }
            try account.attempts.change(leave)
            try clearing.get()
        }
    }

    /// Refuses to sign out if no account is signed in, or if its key or values could be lost.
    func check() throws {
        guard account.sync.isSignedIn || account.saved.exists else { throw UserAccount.notSignedIn }
        // Nobody is told the phrase while the account moves.
        try account.move.checkIsOver()
        if keepsPending, !keepsValues {
            try account.move.checkUploadsAreRead()
            let count = try account.pendingChanges() + account.excludedChanges()
            if count > 0 { throw BusError.notUploaded(count) }
        }
        if keepsLastKey { try account.keys.checkMayLeave(isReachable: account.sync.lastError == nil) }
    }

    /// Removes the values.
    /// - Returns: the error, if they may come back after a power cut.
    private func clear() async throws -> Result<Void, any Error> {
        if account.sync.isSignedIn { try account.attempts.change { try account.sync.signOut(keepingValues: false) } }
        do { return .success(try await account.database.synchronize()) } catch { return .failure(error) }
    }

    private func leave() throws {
        let leaving = try account.saved.leave()
        account.attempts.noteSignOut()
        account.cycles.stopListening()
        account.url = ""
        if keepsValues { try account.sync.signOut(keepingValues: true) }
        account.notices.log(act: "\(account.userName) signed out.")
        account.reports.signedOut()
        try leaving.get()
    }

    private static let signedInElsewhere = BusError.store(
        .busy, "Another call has signed in to another account meanwhile; nothing was signed out.")
}
