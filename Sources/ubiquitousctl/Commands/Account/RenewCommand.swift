// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import SDBus
internal import StoreBus
internal import UbiquitousStore

/// `account renew`.
struct RenewCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "renew",
        abstract: "Replaces the password of the account, and keeps everything else.",
        discussion: """
            Use it after the password was changed on the server. The command prompts for the new one and tries it \
            before it replaces the old one. Whatever you don't give stays as it is: the login, the certificates, the \
            device's name, a pause. If the account has another key as well, the command then asks for its recovery \
            words; without a terminal, "account unlock" takes them.
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
        do {
            try await options.signIn(
                object, account.backend, request, plan: "renew the credentials for \(account.backend)",
                isSameIfCredentialsAre: account.state != .authFailed && !account.needsKey)
        } catch let error as UbiquitousStoreError where error.code == .keyNeeded || error.code == .remoteReset {
            Output.remark("The server accepts the credentials")
            guard error.code == .keyNeeded, isatty(STDIN_FILENO) == 1 else { throw error }
            try await Phrase.ask(account.backend) { phrase in
                try await Progress.showing("Unlocking") { try await object.unlock(phrase, timeout: Patience.remote) }
            }
            options.change.report("renew the credentials for \(account.backend)")
        }
    }
}
