// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import PropertyList
internal import SDBus
internal import UbiquitousStore

/// `account phrase`.
struct PhraseCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "phrase",
        abstract: "Shows the recovery phrase of the encrypted account.",
        discussion: """
            Other devices ask for the words when they sign in. Anyone who has them can read the account, so show them \
            to nobody else, and keep them out of files and logs.
            """)

    @OptionGroup var service: ServiceOptions

    @Flag(help: "Print an object of JSON.")
    var json = false

    func perform() async throws {
        let account = try await service.account()
        let phrase = try await account.recoveryPhrase(marksShown: false)
        if try await account.properties().needsKey {
            Output.remark(
                """
                The remote has another key by now. These words open the account only if this device's is put back \
                ("ubiquitousctl account resolve local").
                """)
        }
        if json {
            Output.print(json: ["words": .array(phrase.split(separator: " ").map { .string(Text(String($0))) })])
        } else {
            Output.print(phrase)
        }
        // Words that could not be written have been seen by nobody.
        Output.endIfBroken()
        guard try await account.recoveryPhrase(marksShown: true) == phrase else {
            throw Failure(.refused, "The account has other words by now; show them once more.")
        }
    }
}

/// `account unlock`.
struct UnlockCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "unlock",
        abstract: "Enters the recovery phrase, if the key is missing on this device or was replaced.",
        discussion: "Prompts for the words, or reads them from --phrase-file or a pipe, never from an argument.")

    @OptionGroup var options: AccountOptions

    @Option(
        help: ArgumentHelp("Read the recovery phrase from a file; - is standard input.", valueName: "file"),
        completion: .file())
    var phraseFile: String?

    @Flag(help: "Ignore all other keys in the remote. Use it only if none of your devices has made them.")
    var rejectOthers = false

    @Argument(help: .hidden)
    var words: [String] = []

    func validate() throws {
        if words.isEmpty { return }
        throw ValidationError(
            localized(
                """
                The words are no arguments: other users see those, and the shell keeps them. Leave them out; you are \
                asked for them. If these are the account's, give it others with "ubiquitousctl account replace-key".
                """))
    }

    func perform() async throws {
        let (object, present) = try await options.signedIn()
        var account = present
        // The device may not have noticed yet that the account has another key. A phrase can be tried during a pause.
        if !options.change.check, !account.needsKey, !account.isPausedByUser {
            account = try await Progress.showing("Syncing") { try await object.synced() }
        }
        if account.isReset, let error = account.lastError { throw error }
        if account.isUnreadable, let error = account.lastError { throw error }
        guard account.isEncrypted || account.needsKey else {
            throw Failure(.refused, "The account is not encrypted, so it has no recovery phrase.")
        }
        var isLocked = account.needsKey
        if !isLocked { isLocked = try await isKeyFileUnusable(object) }
        // A device that isn't stopped has keys to reject as well.
        let changes = isLocked || rejectOthers
        let unlocks = changes && !options.change.check
        if let phrase = try phraseFile.map({ try Phrase.read(from: $0) }) {
            let use = unlocks ? unlock : check
            try await use(object, account.backend, phrase)
        } else if unlocks {
            try await Phrase.ask(account.backend) { try await unlock(object, account.backend, $0) }
        }
        options.change.report(changes ? "unlock \(account.backend)" : nil)
    }

    /// Whether the file with the account's key can't be used. As long as the service runs it has the key in memory, so
    /// it syncs all the same.
    @BusActor
    private func isKeyFileUnusable(_ object: AccountObject) async throws -> Bool {
        do { _ = try await object.recoveryPhrase(marksShown: false) } catch let error as UbiquitousStoreError {
            return error.code == .keyNeeded
        }
        return false
    }

    /// Refuses a phrase that doesn't open the account.
    @BusActor
    private func check(_ account: AccountObject, _ url: String, _ phrase: String) async throws {
        var request = SignInOptions()
        (request.renews, request.recoveryPhrase) = (true, phrase)
        try await AccountOptions.check(account, url, request)
    }

    @BusActor
    private func unlock(_ account: AccountObject, _ url: String, _ phrase: String) async throws {
        try await Progress.showing("Unlocking") {
            guard rejectOthers else { return try await account.unlock(phrase, timeout: Patience.remote) }
            var request = SignInOptions()
            (request.renews, request.recoveryPhrase, request.rejectsOthers) = (true, phrase, true)
            _ = try await account.signIn(url, request, timeout: Patience.remote)
        }
    }
}
