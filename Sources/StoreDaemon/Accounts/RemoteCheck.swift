// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import SDBus
internal import Sealing
internal import StoreBus
internal import SyncEngine

/// Tests a remote step by step, and whether signing in would be refused, without doing it.
///
/// The recovery phrase of the request is tested on the encrypted account. If there is none, the key of the account that
/// is signed in is tested, if this is its remote.
@BusActor
struct RemoteCheck {
    let account: UserAccount
    private(set) var request: SignInRequest
    let triesSignIn: Bool

    mutating func run() async throws -> [BackendCheck] {
        try request.credentials.check()
        if triesSignIn { try request.check() }
        try account.service.configuration.check(scheme: request.url)
        let file = try? account.saved.read()
        try request.complete(from: account.saved)
        let present = file.flatMap { $0.isAt(request.url) ? $0 : nil }
        let hasItsCredentials = present?.credentials == request.credentials
        if let file { request.takeAuthority(from: file) }
        var steps = try await remoteSteps(file)
        // The account that is signed in must be there: its folder may be gone, which is no obstacle to a new one.
        if triesSignIn || present != nil, steps.allSatisfy(\.isPassed) { steps.append(try await signInStep()) }
        if hasItsCredentials, steps.allSatisfy(\.isPassed) {
            steps.append(
                BackendCheck(
                    step: "credentials", isPassed: true, detail: "they are those of the account that is signed in"))
        }
        return steps
    }

    private func remoteSteps(_ file: AccountFile?) async throws -> [BackendCheck] {
        let encryption = request.encryption
        let protection = encryption.phrase.map(Protection.phrase) ?? file.flatMap(knownProtection) ?? .none
        let check = account.remotes.check(
            request.url, request.credentials, protection,
            creatingUnencrypted: request.createsAccount && !encryption.encrypts)
        do { return try await account.attempts.make { try await check() } } catch let error as RemoteError
            where error.code == .unavailable
        {
            return [BackendCheck(step: "time", failed: error)]
        }
    }

    /// Returns this device's key of the account that is signed in; `nil` if there is none, or that is elsewhere.
    private func knownProtection(of file: AccountFile) -> Protection? {
        guard file.isAt(request.url), case (.key(let held), nil) = account.keys.protection(of: file) else {
            return nil
        }
        return .key(held)
    }

    // MARK: Trying to sign in

    /// Opens the remote's account, as signing in would. Returns the step of a check that says whether signing in would
    /// be refused.
    private func signInStep() async throws -> BackendCheck {
        let present = PresentAccount(account, at: request.url)
        do {
            let remote = try await account.keys.withKeys(at: request.url, request.encryption, creatingAccount: false) {
                protection, _ in try await open(protection, for: present)
            }
            guard remote.isNew || !request.bringsValues else { return refused(RemoteError(.unencrypted, SignIn.inUse)) }
        } catch let error as RemoteError {
            let error = present.failure(error, hasPhrase: request.hasPhrase)
            let isNoObstacle =
                error.code == .noAccount && request.createsAccount
                || error.code == .otherKeys && request.encryption.rejectsOthers
            if !isNoObstacle { return refused(error) }
        }
        return BackendCheck(step: "sign-in", isPassed: true)
    }

    private func refused(_ error: RemoteError) -> BackendCheck { BackendCheck(step: "sign-in", failed: error) }

    private func open(_ protection: Protection, for present: PresentAccount) async throws -> RemoteAccount {
        let (backend, (found, held)) = try await account.attempt(request.url, request.credentials, protection) {
            (try await $0.open(creatingAccount: false), await $0.heldKey)
        }
        defer { UserAccount.close(backend) }
        let remote = try account.sync.genuine(found)
        try present.check(remote, held, hasPhrase: request.hasPhrase, account)
        return remote
    }
}
