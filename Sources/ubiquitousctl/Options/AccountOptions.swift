// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import SDBus
internal import UbiquitousStore

/// What a command that changes the account may be asked; and how it answers.
struct AccountOptions: ParsableArguments {
    @OptionGroup var service: ServiceOptions
    @OptionGroup var change: ChangeOptions

    /// Makes a change of the account, unless it is so already.
    ///
    /// - Parameters:
    ///   - what: what is being done, in words, for a person who waits.
    ///   - plan: what is to be done, in words, from how the account is; `nil` if nothing is.
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
    /// The account as it is.
    @BusActor
    func present() async throws -> (AccountObject, AccountDescription) {
        try await Progress.showing("Waiting for the service") {
            let account = try await service.connectAsUser().account(ofUser: try service.uid())
            return (account, try await account.properties())
        }
    }

    /// The account as it is, if this device is signed in to one.
    /// - Throws: ``Failure`` if it isn't.
    @BusActor
    func signedIn() async throws -> (AccountObject, AccountDescription) {
        let (object, account) = try await present()
        guard account.state != "signed-out" else { throw Self.notSignedIn }
        return (object, account)
    }

    /// That there is no account to do something with.
    static var notSignedIn: Failure {
        Failure(.refused, "This device isn't signed in.", advice: "Use \"ubiquitousctl account sign-in URL\".")
    }

    /// Signs in; where only a check is asked for, tries the remote with the credentials.
    ///
    /// - Parameters:
    ///   - plan: what is done, in words.
    ///   - isSameIfCredentialsAre: nothing changes if the account has these credentials already.
    @BusActor
    func signIn(
        _ account: AccountObject, _ url: String, _ request: SignInOptions, plan: String, isSameIfCredentialsAre: Bool
    ) async throws {
        var isSame = false
        if change.check || isSameIfCredentialsAre {
            let steps = try await Progress.showing("Trying \(url)") {
                try await account.check(url, request, timeout: Patience.remote)
            }
            if let wrong = steps.first(where: { !$0.isPassed }) {
                throw Failure(
                    .refused, Sentence(verbatim: "\(wrong.step): \(wrong.detail)"), advice: "Nothing was changed.")
            }
            isSame = isSameIfCredentialsAre && steps.contains { $0.step == "credentials" }
        }
        if !isSame && !change.check {
            try await Progress.showing("Signing in") {
                _ = try await account.signIn(url, request, timeout: Patience.remote)
            }
        }
        change.report(isSame ? nil : plan)
    }
}

/// Remotes can be far away, and behind a link that is slow.
enum Patience {
    static let remote = Duration.seconds(300)
}
