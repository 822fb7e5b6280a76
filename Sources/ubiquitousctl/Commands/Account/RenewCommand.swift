// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import SDBus
internal import UbiquitousStore

/// `account renew`.
struct RenewCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "renew",
        abstract: "Gives the account that is signed in another password, and keeps everything else.",
        discussion: """
            For after the password was changed on the server: it is asked for, tried, and used from then on. What isn't \
            given stays as it is: the login, the certificates, the device's name, a pause.
            """)

    @OptionGroup var options: AccountOptions
    @OptionGroup var credentials: Credentials

    func perform() async throws {
        let (object, account) = try await options.signedIn()
        guard !account.backend.hasPrefix("folder:") else {
            throw Failure(.refused, "An account in a folder has no password.")
        }
        let isPasswordGiven =
            credentials.passwordFile != nil || credentials.tokenFile != nil || credentials.login != nil
        var request = try await credentials.options(for: account.backend)
        if !isPasswordGiven && credentials.caFile == nil {
            request.password = try await Password.ask(localized("New password for \(account.backend): "))
        }
        request.renews = true
        try await options.signIn(
            object, account.backend, request, plan: "renew the credentials for \(account.backend)",
            isSameIfCredentialsAre: account.state != "auth-failed")
    }
}
