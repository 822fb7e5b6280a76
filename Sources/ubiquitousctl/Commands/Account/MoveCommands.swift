// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import PropertyList
internal import SDBus
internal import UbiquitousStore

/// `account encrypt`.
struct EncryptCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "encrypt",
        abstract: "Encrypts the account, so that only its devices can read it.",
        discussion: """
            This device uploads everything that it has of the account under a new key. At a terminal, the command then \
            shows the words of the recovery phrase; elsewhere, "account phrase" prints them. The other devices ask for \
            the words ("account unlock", in a script with --phrase-file), and then upload what was written on them \
            meanwhile. An account that is already encrypted stays as it is.
            """)

    @OptionGroup var options: AccountOptions
    @OptionGroup var unread: UnreadOptions

    func perform() async throws {
        try await Move(options: options).make("Encrypting") { account in
            account.isEncrypted ? nil : "encrypt \(account.backend)"
        } _: {
            try await $0.encrypt(passingOverUnread: unread.passOverUnread, timeout: Patience.remote)
        }
    }
}

/// `account replace-key`.
struct ReplaceKeyCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "replace-key",
        abstract: "Gives an encrypted account a new key and a new recovery phrase.",
        discussion: """
            Use it after a device was lost, or after others have seen the words. Change the remote's password too. The \
            other devices ask for the new words. The former key still opens what it could open before, including \
            earlier versions that a provider keeps.
            """)

    @OptionGroup var options: AccountOptions
    @OptionGroup var unread: UnreadOptions

    func perform() async throws {
        try await Move(options: options).make("Replacing the key") { account in
            // A check asks the service for nothing, which would refuse this.
            guard !options.change.check || account.isEncrypted || account.needsKey else {
                throw Failure(
                    .refused, "The account is not encrypted, so it has no key to replace; encrypt it instead.")
            }
            return "replace the key of \(account.backend)"
        } _: {
            try await $0.replaceKey(passingOverUnread: unread.passOverUnread, timeout: Patience.remote)
        }
    }
}

/// The option for what can't be read in the account.
struct UnreadOptions: ParsableArguments {
    @Flag(help: "Leave out data in the account that can't be read. The device that wrote it uploads it again.")
    var passOverUnread = false
}

/// A move of the account to a new key.
@BusActor
private struct Move {
    let options: AccountOptions

    /// Makes the move, and shows the new phrase.
    func make(
        _ what: Sentence, plan: (AccountDescription) throws -> String?,
        _ body: @BusActor (AccountObject) async throws -> Void
    ) async throws {
        let (object, account) = try await options.signedIn()
        let planned = try plan(account)
        if planned != nil, options.change.check, try await object.isPaused(account) { throw AccountObject.paused }
        if planned != nil, !options.change.check {
            do {
                try await Progress.showing(what) { try await object.unlessPaused { try await body(object) } }
            } catch let error as UbiquitousStoreError {
                // What has begun goes on by itself, so the status can't be the one that says that nothing has changed.
                guard try await object.isMoving() else { throw error }
                throw Failure(
                    .unreachable, Sentence(service: error.message),
                    advice: "The move to the new key has begun, and the service goes on with it after each sync.")
            }
            try await Phrase.tell(object, options.change)
        }
        options.change.report(planned)
    }
}
