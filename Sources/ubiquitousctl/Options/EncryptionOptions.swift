// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import SDBus
internal import UbiquitousStore

/// Whether an account is encrypted, and the phrase that unlocks it.
struct EncryptionOptions: ParsableArguments {
    @Flag(
        inversion: .prefixedNo, exclusivity: .exclusive,
        help: "Encrypt a new account, or don't (default: ask at a terminal; elsewhere, don't).")
    var encrypt: Bool?

    @Option(
        help: ArgumentHelp(
            "Read the recovery phrase of an encrypted account from a file; - is standard input.", valueName: "file"),
        completion: .file())
    var phraseFile: String?

    @Flag(help: "Ignore all other keys in the remote. Use it only if none of your devices has made them.")
    var rejectOthers = false

    func validate() throws {
        if encrypt != nil && phraseFile != nil {
            throw ValidationError(
                localized("--phrase-file is for an existing account; --encrypt and --no-encrypt are for a new one."))
        }
    }

    /// Whether any of these options is given.
    var hasAny: Bool { encrypt != nil || phraseFile != nil || rejectOthers }

    /// Signs in, and asks the user for what is missing.
    /// - Parameters:
    ///   - asks: whether to ask questions, if there is a terminal.
    ///   - mayLeaveValues: whether a new account would hide the values that are shown.
    ///   - leavesEncrypted: whether this leaves an encrypted account for another remote.
    ///   - attempt: signs in with options.
    @BusActor
    func signIn(
        _ url: String, _ request: SignInOptions, to account: AccountObject, asks: Bool, mayLeaveValues: Bool,
        leavesEncrypted: Bool, _ attempt: @BusActor (SignInOptions) async throws -> Void
    ) async throws {
        var request = request
        request.encrypts = encrypt
        request.recoveryPhrase = try phraseFile.map { try Phrase.read(from: $0) }
        if rejectOthers, phraseFile != nil { request.rejectsOthers = true }
        let (signsIn, asks) = (asks, asks && isatty(STDIN_FILENO) == 1)
        do {
            if asks, encrypt == nil, phraseFile == nil {
                guard try await ask(&request, mayLeaveValues: mayLeaveValues, attempt) else { return }
            } else if leavesEncrypted, encrypt == nil, phraseFile == nil, request.createsAccount == true {
                return try await join(request, attempt)
            }
            try await attempt(request)
            if request.encrypts == true, signsIn { asks ? try await Phrase.show(account) : Phrase.remark() }
        } catch let error as UbiquitousStoreError where error.code == .noAccount && phraseFile != nil {
            throw Failure(
                .refused, Sentence(service: error.message),
                advice: "--phrase-file is for an existing account, and --encrypt for a new one.")
        } catch let error as UbiquitousStoreError where error.code == .keyNeeded && asks && phraseFile == nil {
            request.encrypts = nil
            if rejectOthers { request.rejectsOthers = true }
            try await Phrase.ask(url) {
                request.recoveryPhrase = $0
                try await attempt(request)
            }
        }
    }

    /// Signs in to an account that is there already. Makes none: whoever leaves an encrypted account says whether a new
    /// one is to be encrypted.
    @BusActor
    private func join(
        _ request: SignInOptions, _ attempt: @BusActor (SignInOptions) async throws -> Void
    ) async throws {
        var request = request
        request.createsAccount = false
        do { try await attempt(request) } catch let error as UbiquitousStoreError where error.code == .noAccount {
            throw Failure(
                .refused, "There is no account yet, and the one that this device would leave is encrypted.",
                advice: "Use --encrypt or --no-encrypt.")
        }
    }

    /// Finds out what the remote holds by joining it as an encrypted account, and asks the user if it isn't one.
    /// - Returns: whether the caller still has to sign in.
    @BusActor
    private func ask(
        _ request: inout SignInOptions, mayLeaveValues: Bool,
        _ attempt: @BusActor (SignInOptions) async throws -> Void
    ) async throws -> Bool {
        var joining = request
        (joining.createsAccount, joining.encrypts, joining.bringsValues) = (false, true, nil)
        do { try await attempt(joining) } catch let error as UbiquitousStoreError
            where error.code == .noAccount && request.createsAccount == true
        {
            request.encrypts = try Question(
                "There is no account yet. Encrypt it, so that only your devices can read it? [Y/n]", default: true,
                advice: "Use --encrypt or --no-encrypt."
            ).isYes()
            guard mayLeaveValues else { return true }
            request.bringsValues = try Question(
                "This device shows the values of the account from before. Copy them into the new one? [Y/n]",
                default: true, advice: "Use --bring-values."
            ).isYes()
            return true
        } catch let error as UbiquitousStoreError where error.code == .conflict {
            let question = Question(
                """
                This account is not encrypted: anyone with access to the remote can read it. Sign in anyway? [y/N]
                """,
                default: false, advice: "Use --encrypt or --no-encrypt.")
            guard try question.isYes() else { throw Failure(.refused, "Nothing was changed.") }
            return true
        }
        return false
    }
}
