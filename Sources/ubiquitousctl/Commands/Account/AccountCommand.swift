// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser

/// `account`.
struct AccountCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "account",
        abstract: "Signs in and out, and manages the account and its devices.",
        subcommands: [
            SignInCommand.self, RenewCommand.self, SwitchCommand.self, SignOutCommand.self, SyncCommand.self,
            PauseCommand.self,
            ResumeCommand.self, PhraseCommand.self, UnlockCommand.self, EncryptCommand.self, ReplaceKeyCommand.self,
            ResolveCommand.self, DevicesCommand.self,
            RenameCommand.self, ForgetCommand.self,
        ])
}
