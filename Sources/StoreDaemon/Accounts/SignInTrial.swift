// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import SDBus
internal import Sealing
internal import SyncEngine

/// A sign-in that is tried and not done.
struct SignInTrial {
    let createsAccount: Bool
    let bringsValues: Bool
    let encryption: EncryptionOptions

    /// Opens the remote's account, as signing in would. Returns the step of a check that says whether signing in
    /// would be refused.
    @BusActor
    func step(_ url: String, _ credentials: BackendCredentials, for account: UserAccount) async throws -> BackendCheck {
        do {
            let protection = try account.keys.protection(at: url, encryption, isTrial: true)
            let remote: RemoteAccount
            do { remote = try await open(url, credentials, protection, for: account) } catch let error as RemoteError
                where error.code == .keyNeeded && encryption.phrase == nil
            {
                let found = try await account.withCandidates(at: url, besides: protection) {
                    try await open(url, credentials, .key($0), for: account)
                }
                guard let found else { throw error }
                remote = found
            }
            guard remote.isNew || !bringsValues else { return refused(RemoteError(.inPlain, UserAccount.inUse)) }
        } catch let error as RemoteError {
            let isNoObstacle =
                error.code == .noAccount && createsAccount || error.code == .otherKeys && encryption.rejectsOthers
            if !isNoObstacle { return refused(error) }
        }
        return BackendCheck(step: "sign-in", isPassed: true)
    }

    private func refused(_ error: RemoteError) -> BackendCheck { BackendCheck(step: "sign-in", failed: error) }

    @BusActor
    private func open(
        _ url: String, _ credentials: BackendCredentials, _ protection: Protection, for account: UserAccount
    ) async throws -> RemoteAccount {
        let backend = try account.remotes.makeBackend(url, credentials, protection)
        defer { UserAccount.close(backend) }
        return try await account.attempts.make {
            try await backend.untilCancelled { try await backend.open(creatingAccount: false) }
        }
    }
}
