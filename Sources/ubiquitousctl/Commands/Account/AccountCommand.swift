// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import SDBus
internal import UbiquitousStore

/// `account`.
struct AccountCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "account",
        abstract: "Signs in and out, and looks after the account and its devices.",
        subcommands: [
            SignInCommand.self, SwitchCommand.self, SignOutCommand.self, SyncCommand.self, PauseCommand.self,
            ResumeCommand.self, ResolveCommand.self, DevicesCommand.self, RenameCommand.self, ForgetCommand.self,
        ])
}

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
        _ what: String, plan: @BusActor (AccountObject, AccountDescription) async throws -> String?,
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

/// Remotes can be far away, and behind a link that is slow.
enum Patience {
    static let remote = Duration.seconds(300)
}
