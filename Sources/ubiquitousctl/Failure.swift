// SPDX-License-Identifier: Apache-2.0

internal import UbiquitousStore

/// How the program ends. Scripts rely on these exit codes.
enum Outcome: Int32 {
    /// What was asked for is done, or was so already.
    case done = 0
    /// There is no value, no history or no device of that name.
    case absent = 1
    /// The command line, or a file that it names, is invalid; nothing was done.
    case usage = 2
    /// The service refused, and changed nothing.
    case refused = 3
    /// The bus, the service or the account's remote doesn't answer.
    case unreachable = 4
}

/// An unsuccessful end of a command that has already printed why.
struct ReportedFailure: Error {
    let outcome: Outcome
}

/// Why a command failed.
struct Failure: Error, CustomStringConvertible {
    let outcome: Outcome
    private let sentence: Sentence
    private let next: Sentence?

    init(_ outcome: Outcome, _ message: Sentence, advice: Sentence? = nil) {
        (self.outcome, sentence, next) = (outcome, message, advice)
    }

    /// What was wrong.
    var message: String { sentence.text }
    /// What to do.
    var advice: String? { next?.text }
    /// The message, and the advice on the next line.
    var description: String { advice.map { "\(message)\n\($0)" } ?? message }

    /// The message in English, as results have it, and the advice on the next line.
    /// - Parameter advises: whether it has the advice.
    func english(advising advises: Bool = true) -> String {
        guard advises, let next else { return sentence.english }
        return "\(sentence.english)\n\(next.english)"
    }
}

extension Failure {
    /// Describes any error to the program's user.
    init(_ error: any Error) {
        switch error {
        case let failure as Failure: self = failure
        case let error as UbiquitousStoreError: self.init(error)
        case is CancellationError: self.init(.unreachable, "It was interrupted.")
        default: self.init(.refused, Sentence(service: "\(error)"))
        }
    }

    private init(_ error: UbiquitousStoreError) {
        let outcome = Self.outcomes[error.code] ?? .refused
        self.init(
            outcome, Self.sentences[error.code] ?? Sentence(service: error.message),
            advice: Self.advice(on: error.message) ?? Self.advice[error.code])
    }

    /// Returns what to do about a sentence of the service that doesn't follow from its error's code; `nil` if nothing is
    /// known.
    static func advice(on message: String) -> Sentence? {
        adviceByBeginning.first { message.hasPrefix($0.key) }?.value
    }

    static let outcomes: [UbiquitousStoreError.Code: Outcome] = [
        .noSuchKey: .absent, .serviceUnavailable: .unreachable, .timedOut: .unreachable,
        .backendUnavailable: .unreachable,
    ]

    /// Sentences that replace the bus's messages, which don't help users.
    private static let sentences: [UbiquitousStoreError.Code: Sentence] = [
        .timedOut: "The service doesn't answer.",
        .unknownObject: "The user has no data on this device, or this program may not use it.",
        .notSignedIn: "This device isn't signed in.",
    ]

    /// Advice, by the beginnings of the service's sentences.
    static let adviceByBeginning: [String: Sentence] = [
        "The account has another key than this device. ": """
        If one of your devices has replaced it, "ubiquitousctl account phrase" shows the phrase there; enter it here \
        with "ubiquitousctl account unlock". Otherwise, "ubiquitousctl account resolve local" keeps this device's key.
        """,
        "The account that is here now is not encrypted, ": """
        "ubiquitousctl account resolve local" restores this device's account there. To join the other one instead, \
        note the words of "ubiquitousctl account phrase", sign out, and sign in again.
        """,
        "There is no space left for the data of this user":
            "Make room on the disk of the service's state directory; \"ubiquitousctl doctor\" says how much is left.",
        "There is no account here yet, and this machine's administrator requires a new one to be encrypted.":
            "Add --encrypt.",
        "The remote holds the account under a former key: ": "\"ubiquitousctl account resolve local\" does that.",
        "The remote still has the account's files from before it had this key. ":
            "Use --forget-key to leave it anyway.",
        "The recovery phrase is right, but the remote has other keys too: ":
            "If none of your devices has made them, add --reject-others to \"account unlock\" or \"account sign-in\".",
    ]

    private static let advice: [UbiquitousStoreError.Code: Sentence] = [
        .serviceUnavailable: """
        Check that ubiquitous-store is installed and running (systemctl status ubiquitous-store), or name another bus \
        with --bus.
        """,
        .timedOut: "It may be busy; try again, and check its log (journalctl -u ubiquitous-store).",
        .notEntitled: "\"ubiquitousctl identify\" lists the identifiers that installed manifests declare.",
        .ambiguousIdentity: "Name the store with --store.",
        .identityUnknown: "Name the store with --store.",
        .quotaExceeded: "\"ubiquitousctl usage\" shows what takes up the space.",
        .unknownObject: "Root signs a user in with \"ubiquitousctl account sign-in --user NAME URL\".",
        .notSignedIn: "Sign in with \"ubiquitousctl account sign-in URL\".",
        .noAccount: """
        If another program copies the folder to this device, wait until it has arrived. Otherwise, leave out \
        --no-create to create one there.
        """,
        .backendAuthenticationFailed: """
        Give the right credentials, with --login NAME; where this device is signed in, "ubiquitousctl account renew" \
        stores them.
        """,
        .backendUnavailable: """
        "ubiquitousctl doctor" tries it step by step; with an address after it, also before signing in there.
        """,
        .remoteReset: "Say which side is right: \"ubiquitousctl account resolve local\", or \"remote\".",
        .keyNeeded: """
        "ubiquitousctl account phrase" shows the recovery phrase on another device. Where this device is signed in, \
        enter it with "ubiquitousctl account unlock"; otherwise sign in again with --phrase-file.
        """,
        .keyWrong: "Enter the phrase that \"ubiquitousctl account phrase\" shows on another device.",
        .notSupported: "The service is of an older version than this program.",
    ]
}
