// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import SDBus
internal import UbiquitousStore

/// Whether an account is encrypted, and what opens it.
struct EncryptionOptions: ParsableArguments {
    @Flag(
        inversion: .prefixedNo,
        help: "Encrypt a new account, or leave it in plain (default: asked at a terminal, and plain elsewhere).")
    var encrypt: Bool?

    @Option(
        help: ArgumentHelp(
            "Read the recovery phrase of an encrypted account from a file; - is standard input.", valueName: "file"),
        completion: .file())
    var phraseFile: String?

    func validate() throws {
        if encrypt != nil && phraseFile != nil {
            throw ValidationError(
                localized("--phrase-file is for an account that is there, and --encrypt for a new one."))
        }
    }

    /// Whether anything is said.
    var areGiven: Bool { encrypt != nil || phraseFile != nil }

    /// Signs in, and asks what has to be known.
    /// - Parameters:
    ///   - asks: whether there may be somebody to ask.
    ///   - attempt: signs in with options.
    @BusActor
    func signIn(
        _ url: String, _ request: SignInOptions, to account: AccountObject, asks: Bool,
        _ attempt: @BusActor (SignInOptions) async throws -> Void
    ) async throws {
        var request = request
        request.encrypts = encrypt
        request.recoveryPhrase = try phraseFile.map { try Password.read(from: $0) }
        let asks = asks && isatty(STDIN_FILENO) == 1
        do {
            if asks, !areGiven, request.createsAccount == true, Self.canBeEncrypted(url) {
                // Whether there is an account to be made is found out by joining the one that is there.
                var joining = request
                joining.createsAccount = false
                do { return try await attempt(joining) } catch let error as UbiquitousStoreError
                    where error.code == .noAccount
                {
                    request.encrypts = try Question.isYes(
                        "There is no account yet. Encrypt it, so that only your devices can read it?")
                }
            }
            try await attempt(request)
            if request.encrypts == true, asks { try await Phrase.show(account) }
        } catch let error as UbiquitousStoreError where error.code == .keyNeeded && asks && phraseFile == nil {
            request.recoveryPhrase = try await Phrase.ask(url)
            request.encrypts = nil
            try await attempt(request)
        }
    }

    private static func canBeEncrypted(_ url: String) -> Bool {
        ["folder:", "webdav:", "webdavs:"].contains { url.lowercased().hasPrefix($0) }
    }
}
