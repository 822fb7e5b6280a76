// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import SDBus
internal import StoreBus
internal import UbiquitousStore

/// The options of a command that changes the account.
struct AccountOptions: ParsableArguments {
    @OptionGroup var service: ServiceOptions
    @OptionGroup var change: ChangeOptions

    /// Changes the account, unless nothing would change.
    ///
    /// - Parameters:
    ///   - what: what is being done, for the progress message.
    ///   - plan: returns what is to be done, in words, given the present account; `nil` if nothing is.
    @BusActor
    func make(
        _ what: Sentence, plan: @BusActor (AccountObject, AccountDescription) async throws -> String?,
        _ body: @BusActor (AccountObject) async throws -> Void
    ) async throws {
        let account = try await service.account()
        try await change.make(what) {
            try await plan(account, try await account.properties())
        } _: {
            try await body(account)
        }
    }
}

extension AccountOptions {
    /// Returns the account and its present state.
    @BusActor
    func present() async throws -> (AccountObject, AccountDescription) {
        try await Progress.showing("Waiting for the service") {
            let account = try await service.connectAsUser().account(ofUser: try service.uid())
            return (account, try await account.properties())
        }
    }

    /// Returns the account and its present state, if this device is signed in.
    /// - Throws: ``Failure`` if it isn't.
    @BusActor
    func signedIn() async throws -> (AccountObject, AccountDescription) {
        let (object, account) = try await present()
        guard account.isSignedIn else { throw Self.notSignedIn }
        return (object, account)
    }

    /// The error if this device isn't signed in.
    static var notSignedIn: Failure {
        Failure(.refused, "This device isn't signed in.", advice: "Use \"ubiquitousctl account sign-in URL\".")
    }

    /// Signs in. With `--check`, only tries the remote with the credentials.
    ///
    /// - Parameters:
    ///   - plan: what is done, in words.
    ///   - isSameIfCredentialsAre: whether nothing changes if the account already has these credentials.
    @BusActor
    func signIn(
        _ account: AccountObject, _ url: String, _ request: SignInOptions, plan: String, isSameIfCredentialsAre: Bool
    ) async throws {
        var isSame = false
        if change.check || isSameIfCredentialsAre {
            var tested = request
            if change.check { tested.triesSignIn = true }
            let steps = try await Self.steps(account, url, tested)
            let wrong = steps.first { !$0.isPassed }
            // What these steps find does not keep a renewal from taking credentials.
            if let wrong, change.check || !["key", "sign-in"].contains(wrong.step) { throw Self.failure(wrong) }
            let checked = Set(steps.map(\.step))
            isSame =
                isSameIfCredentialsAre && wrong == nil && checked.contains("credentials")
                && (request.recoveryPhrase == nil || checked.contains("key"))
        }
        if !isSame && !change.check {
            try await Progress.showing("Signing in") {
                do { _ = try await account.signIn(url, request, timeout: Patience.remote) } catch let error
                    as UbiquitousStoreError where error.code == .backendUnsupported
                {
                    // Only the steps tell whether the address is wrong, or its server.
                    let wrong = try await Self.steps(account, url, request).first { !$0.isPassed }
                    if let wrong, wrong.step == "address" { throw Self.failure(wrong) }
                    throw error
                }
            }
        }
        change.report(isSame ? nil : plan)
    }

    /// Tests a remote.
    /// - Throws: the failure of the first step that failed.
    @BusActor
    static func check(_ account: AccountObject, _ url: String, _ request: SignInOptions) async throws {
        let steps = try await steps(account, url, request)
        if let wrong = steps.first(where: { !$0.isPassed }) { throw failure(wrong) }
    }

    /// Tests a remote.
    /// - Returns: the steps, up to the first that failed.
    @BusActor
    static func steps(
        _ account: AccountObject, _ url: String, _ request: SignInOptions
    ) async throws -> [BackendStep] {
        try await Progress.showing("Trying \(url)") {
            do { return try await account.check(url, request, timeout: Patience.remote) } catch let error
                as UbiquitousStoreError where error.code == .backendUnsupported
            { throw Failure(.usage, Sentence(service: error.message), advice: "Nothing was changed.") }
        }
    }

    private static func failure(_ wrong: BackendStep) -> any Error {
        // As signing in itself fails, for whoever wants an account that is there.
        if wrong.code == .noAccount { return UbiquitousStoreError(.noAccount, wrong.detail) }
        let outcome: Outcome =
            switch (wrong.step, wrong.code) {
            case ("address", _): .usage
            case (_, let code?): Failure.outcomes[code] ?? .refused
            // An older service doesn't say.
            case ("connect", nil), ("time", nil): .unreachable
            default: .refused
            }
        return Failure(
            outcome, Sentence(service: wrong.detail),
            advice: Failure.advice(on: wrong.detail) ?? "Nothing was changed.")
    }
}

/// How long to wait for a remote, which may be far away or behind a slow link.
enum Patience {
    static let remote = Duration.seconds(300)
    /// For a store's values, without which the command goes on.
    static let values = Duration.seconds(10)
}
