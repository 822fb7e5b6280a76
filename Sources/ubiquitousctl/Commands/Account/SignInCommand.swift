// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import SDBus
internal import StoreBus
internal import UbiquitousStore

/// `account sign-in`.
struct SignInCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign-in",
        abstract: "Signs in to an account, and creates it if there is none.",
        discussion: """
            URL is folder:///PATH, webdavs://HOST/PATH or etcds://HOST/PREFIX; the default is the account that the \
            administrator has configured. The command checks the remote and waits for the account's values. They \
            replace values that were set on this device before the download was complete. If this device is already \
            signed in there, only new credentials are a change. --check tries the remote with the credentials, and \
            changes nothing. To go to another account, use "account switch".

            The password is prompted for without echo, or read from --password-file or a pipe. It is never an \
            argument, because every user of the machine can see arguments.
            """)

    @OptionGroup var options: AccountOptions
    @OptionGroup var credentials: Credentials
    @OptionGroup var joining: JoiningOptions

    func perform() async throws {
        try await joining.signIn(options, credentials) { account, url in
            guard !account.isSignedIn || account.isUnreadable || account.isAt(url) else {
                throw Failure(
                    .refused, "This device is signed in to \(account.backend) already.",
                    advice: "Use \"ubiquitousctl account switch\" to go to another account.")
            }
        }
    }
}

/// `account switch`.
struct SwitchCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "switch",
        abstract: "Switches from this account to another one.",
        discussion: """
            The stores then show the other account's values. Changes that were not uploaded to the present account \
            stay with it, and are uploaded when this device returns to it. If sync was paused, it goes on in the other \
            account.
            """)

    @OptionGroup var options: AccountOptions
    @OptionGroup var credentials: Credentials
    @OptionGroup var joining: JoiningOptions

    @Flag(help: "Leave the account even if nobody has seen its recovery phrase.")
    var forgetKey = false

    func perform() async throws {
        try await joining.signIn(options, credentials) { account, url in
            guard account.isSignedIn else {
                throw Failure(
                    .refused, "This device isn't signed in.",
                    advice: "Use \"ubiquitousctl account sign-in \(url)\".")
            }
            if account.isPhraseUnconfirmed, !account.isUnreadable, !account.isAt(url), !forgetKey {
                try LastKey.ask(
                    Question("Switch anyway? [y/N]", default: false, advice: "Use --forget-key."),
                    reason: LastKey.reason, options.change)
            }
        }
    }
}

/// The key of an encrypted account that nobody could open afterwards, because nobody has seen its phrase.
private enum LastKey {
    static let reason: Sentence = "Nobody has confirmed the account's recovery phrase."
    static let advice: Sentence = """
        "ubiquitousctl account phrase" shows the words, and --forget-key leaves the account without them.
        """

    static let anyway: Sentence = "Use --forget-key to sign out anyway."

    /// Asks at a terminal; elsewhere, and where nothing is to be changed, it is refused.
    static func ask(
        _ question: Question, reason: Sentence, advice: Sentence = advice, _ change: ChangeOptions
    ) throws {
        guard isatty(STDIN_FILENO) == 1, !change.json, !change.check else {
            throw Failure(.refused, reason, advice: advice)
        }
        Output.remark(reason)
        guard try question.isYes() else { throw Failure(.refused, "Nothing was changed.") }
    }
}

/// `account sign-out`.
struct SignOutCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign-out",
        abstract: "Signs out; the values stay on this device.",
        discussion: """
            If this device is signed out already, nothing changes. Signing out removes the key of an encrypted \
            account. If nobody has seen its recovery phrase yet, or if --clear-values would discard changes that can't \
            be uploaded, the command asks at a terminal, and fails elsewhere.
            """)

    @OptionGroup var options: AccountOptions

    @Flag(help: "Remove the account's values from this device, their history included.")
    var clearValues = false

    @Flag(help: "Sign out even if nobody has seen the recovery phrase of the encrypted account.")
    var forgetKey = false

    @Flag(help: "With --clear-values: also discard changes that have not been uploaded.")
    var discardChanges = false

    func validate() throws {
        guard discardChanges, !clearValues else { return }
        throw ValidationError(localized("--discard-changes goes with --clear-values."))
    }

    func perform() async throws {
        let savesChanges = clearValues && !discardChanges && !options.change.check
        let keepsPending = savesChanges ? try await saveChanges() : false
        do { try await signOut(keepingPending: keepsPending, keepingLastKey: !forgetKey) } catch let error
            as UbiquitousStoreError where error.code == .conflict && !forgetKey
        {
            // A move to a new key can't be left with --forget-key either.
            let object = try await options.present().0
            if try await object.isMoving() { throw error }
            // A program may have set a value since the upload.
            if keepsPending, try await object.unsaved(check: true) != nil { throw error }
            try LastKey.ask(
                Question("Sign out anyway? [y/N]", default: false, advice: "Use --forget-key."),
                reason: Sentence(service: error.message), advice: LastKey.anyway, options.change)
            try await signOut(keepingPending: keepsPending, keepingLastKey: false)
        }
    }

    /// Uploads pending changes, or asks the user whether they may be lost.
    /// - Returns: whether all are uploaded.
    @BusActor
    private func saveChanges() async throws -> Bool {
        let (object, _) = try await options.present()
        let unsaved = try await Progress.showing("Syncing") { try await object.unsaved(check: false) }
        let failures = [unsaved, .excluded(try await object.properties().excludedChanges)].compactMap(\.self)
        guard let first = failures.first else { return true }
        guard isatty(STDIN_FILENO) == 1, !options.change.json else { throw first }
        for failure in failures { Output.remark(Sentence(verbatim: failure.message)) }
        let question = Question("Remove them anyway? [y/N]", default: false, advice: "Use --discard-changes.")
        guard try question.isYes() else { throw Failure(.refused, "Nothing was changed.") }
        return false
    }

    @BusActor
    private func signOut(keepingPending keepsPending: Bool, keepingLastKey keepsLastKey: Bool) async throws {
        try await options.make("Signing out") { object, account in
            if !account.isSignedIn {
                guard clearValues else { return nil }
                throw Failure(
                    .refused, "This device is signed out already; its values are kept.",
                    advice: "\"ubiquitousctl stores remove IDENTIFIER\" removes those of a store.")
            }
            if options.change.check {
                try await checkValues(object, account)
                try await object.signOut(
                    keepingValues: !clearValues, keepingLastKey: keepsLastKey, onlyChecking: true)
            }
            let place = account.isUnreadable ? "an account whose address is lost" : account.backend
            return "sign out of \(place)" + (clearValues ? ", and remove its values from this device" : "")
        } _: {
            try await $0.signOut(
                keepingValues: !clearValues, keepingPending: keepsPending, keepingLastKey: keepsLastKey)
        }
    }

    /// Fails if signing out would lose values, as far as that can be told without syncing.
    @BusActor
    private func checkValues(_ object: AccountObject, _ account: AccountDescription) async throws {
        if !clearValues || discardChanges { return }
        if let failure = try await object.unsaved(check: true) ?? .excluded(account.excludedChanges) { throw failure }
    }
}

extension Failure {
    /// The error if removing values would lose those of stores that are excluded from sync; `nil` if it wouldn't.
    static func excluded(_ count: Int) -> Failure? {
        if count == 0 { return nil }
        return Failure(
            .refused,
            count == 1
                ? "The remote does not have a change in a store that is excluded from sync."
                : "The remote does not have \(count) changes in stores that are excluded from sync.",
            advice: "\"ubiquitousctl stores sync IDENTIFIER on\" uploads them; --discard-changes removes them.")
    }

    /// The error if removing values may lose some, because the remote isn't the one to which they were uploaded.
    static func perhapsUnsaved(_ account: AccountDescription) -> Failure {
        let reason: Sentence = "The remote may lack values of this device; removing them may lose them."
        if account.isUnreadable {
            return Failure(
                .refused, reason, advice: "Sign in again at the same address; --discard-changes removes them.")
        }
        if account.needsKey {
            return Failure(
                .refused, reason,
                advice: "\"ubiquitousctl account unlock\" uploads them; --discard-changes removes them.")
        }
        if account.isReset || account.isFolderMissing || account.isDamaged {
            return Failure(
                .refused, reason,
                advice: """
                    "ubiquitousctl account resolve --help" says how to keep them; --discard-changes removes them.
                    """)
        }
        return Failure(
            .refused, reason,
            advice: "\"ubiquitousctl account sync\" says what is wrong; --discard-changes removes them.")
    }

    /// The error if removing values would lose changes that are pending.
    static func unsaved(_ count: Int) -> Failure {
        Failure(
            .refused,
            count == 1
                ? "The remote does not have a change of this device; removing it loses it."
                : "The remote does not have \(count) of this device's changes; removing them loses them.",
            advice: "\"ubiquitousctl account sync\" says what is wrong; --discard-changes removes them.")
    }
}
