// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop
internal import RemoteAddress
internal import StoreBus
package import UbiquitousStore

/// What the account page shows.
package struct AccountPage: Equatable, Sendable {
    /// What the button beside the state does.
    package enum Step: Equatable, Sendable {
        case signIn, syncNow, tryNow, newPassword, resume, resolve, goOn, enterWords

        /// The button's label.
        package var label: String {
            switch self {
            case .signIn: tr("_Sign In…")
            case .syncNow: tr("Sync _Now")
            case .tryNow: tr("_Try Now")
            case .newPassword: tr("_New Password…")
            case .resume: tr("_Resume")
            case .resolve: tr("What _Now…")
            case .goOn: tr("_Go On Without…")
            case .enterWords: tr("E_nter Words…")
            }
        }
    }

    /// How urgent the state is.
    package enum Tone: Sendable { case good, busy, waiting, bad }

    /// Whether there is an account to show.
    package var isSignedIn: Bool
    package var tone: Tone
    /// The state in a few words.
    package var title: String
    /// What the state means, or what to do.
    package var explanation: String
    package var step: Step
    /// The account's address as the service has it, without secrets.
    package var url: String
    /// The address for users.
    package var address: String
    package var lastExchange: String
    package var pending: String
    /// The text of the question before signing out.
    package var signingOut: String
    package var isPaused: Bool
    /// Whether others can read the account, in words.
    package var encryption: String
    /// Whether this device has words to show.
    package var hasRecoveryWords: Bool
    /// Whether nobody has confirmed the words of the encrypted account.
    package var isPhraseUnconfirmed: Bool
    /// The move to a new key that is possible; `nil` if there is none.
    package var keyMove: KeyMove?
    /// Whether the move is possible now.
    package var canMove: Bool
    /// The service's message about an error, with times, for the clipboard; empty if there is no error.
    package var details: String

    /// The name of the symbolic icon that goes with the tone.
    package var icon: String {
        switch tone {
        case .good: "emblem-ok-symbolic"
        case .busy: "emblem-synchronizing-symbolic"
        case .waiting: isPaused ? "media-playback-pause-symbolic" : "network-offline-symbolic"
        case .bad: "dialog-warning-symbolic"
        }
    }

    /// - Parameters:
    ///   - features: the service's property `Features`.
    ///   - now: microseconds since 1970-01-01T00:00:00Z.
    package init(_ account: AccountDescription, features: [String], now: UInt64) {
        let sentence = AccountSentence(account, now: now)
        isSignedIn = account.isSignedIn
        (tone, title, explanation, step) = (sentence.tone, sentence.title, sentence.explanation, sentence.step)
        url = account.backend
        let text = PercentCoding.decode(url) ?? url
        address = (text.hasPrefix("folder://") ? String(text.dropFirst("folder://".count)) : text).shown
        lastExchange = Age.text(of: max(account.lastPull, account.lastPush), at: now)
        pending =
            account.pendingChanges == 0
            ? tr("None") : trn("%1 change", "%1 changes", account.pendingChanges)
        signingOut = Self.signingOut(account)
        isPaused = account.isPausedByUser
        encryption = Self.encryption(account)
        hasRecoveryWords = account.isEncrypted && sentence.step != .enterWords
        isPhraseUnconfirmed = account.isPhraseUnconfirmed
        if isSignedIn, !account.isUnreadable, features.contains("encryption"), sentence.step != .enterWords {
            keyMove = account.isEncrypted ? .replaceWords : .encrypt
        }
        // Data that can't be read also stops a move, which can then continue without it.
        canMove = sentence.step == .syncNow || (account.state == .error && account.lastError?.code == .corrupt)
        details = Self.details(account)
    }

    private static func encryption(_ account: AccountDescription) -> String {
        if account.isUnreadable, !account.isEncrypted { return tr("Unknown until you have signed in again") }
        if !account.isEncrypted { return tr("Not encrypted: those who have access to the location can read it") }
        guard account.isPhraseUnconfirmed else { return tr("Only your devices can read the account") }
        return tr(
            "Only your devices can read the account. Nobody has confirmed its words yet: show them, and write them down"
        )
    }

    /// Whether signing out loses changes if the values are removed.
    package static func losesChanges(_ account: AccountDescription) -> Bool {
        account.pendingChanges + account.excludedChanges > 0 || account.mayLackChanges
    }

    /// Returns what signing out means.
    package static func signingOut(_ account: AccountDescription) -> String {
        let sentence = tr("Your apps keep their settings on this device, unless you have them removed here as well.")
        let changes = account.pendingChanges + account.excludedChanges
        guard changes > 0 else {
            guard account.mayLackChanges else { return sentence }
            return sentence + " "
                + tr("The account may lack settings of this device. They are lost if you have the settings removed.")
        }
        return sentence + " "
            + trn(
                "%1 change was not uploaded yet. It is lost if you have the settings removed; otherwise it is uploaded once you sign in to this account again.",
                "%1 changes were not uploaded yet. They are lost if you have the settings removed; otherwise they are uploaded once you sign in to this account again.",
                changes)
    }

    /// Returns the page during a move to a new key.
    package func during(_ move: KeyMove) -> AccountPage {
        var page = self
        (page.tone, page.title, page.canMove) = (.busy, move.title, false)
        page.explanation = tr(
            "All settings are uploaded again. This continues by itself, even when the window is closed.")
        return page
    }

    /// Whether the switch for the pause has an effect. It hasn't if sync is stopped for another reason.
    package var canPause: Bool { step != .resolve && step != .enterWords }

    private static func details(_ account: AccountDescription) -> String {
        guard let error = account.lastError else { return "" }
        func time(_ time: UInt64) -> String { time == 0 ? "never" : logTime(time) ?? "unknown" }
        // In English, like the service's log, because it is for problem reports.
        return """
            \(error.code): \(error.message)
            Last download: \(time(account.lastPull))
            Last upload: \(time(account.lastPush))
            """
    }
}

/// The state of an account, in words.
private struct AccountSentence {
    var tone: AccountPage.Tone
    var title: String
    var explanation: String
    var step: AccountPage.Step

    init(_ tone: AccountPage.Tone, _ title: String, _ explanation: String, _ step: AccountPage.Step) {
        (self.tone, self.title, self.explanation, self.step) = (tone, title, explanation, step)
    }

    init(_ account: AccountDescription, now: UInt64) {
        let remote = RemoteName(account.backend).text
        switch account.state {
        case .signedOut:
            self.init(
                .waiting, tr("Not Signed In"),
                tr("Sign in to have the settings of your apps on all of your devices."), .signIn)
        case .idle where account.pendingChanges > 0:
            self.init(.busy, tr("Changes Wait to Be Uploaded"), tr("They are uploaded automatically."), .syncNow)
        case .idle where account.lastError?.code == .backendUnavailable:
            self.init(
                .bad, tr("Not Everything Is Up to Date"),
                tr(
                    "Parts of the account have not arrived. All the rest is up to date. If the device that has them is lost, forget it under Devices."
                ), .syncNow)
        case .idle where account.lastError != nil:
            let error = account.lastError.map { ErrorSentence.text($0) } ?? ""
            self.init(
                .bad, tr("Not Everything Is Up to Date"), tr("%1 All the rest is up to date.", error), .syncNow)
        case .idle:
            self.init(.good, tr("Up to Date"), tr("Your devices have the same settings."), .syncNow)
        case .syncing:
            self.init(.busy, tr("Exchanging Changes…"), tr("You can go on working."), .syncNow)
        case .initialSync where account.lastError != nil:
            self.init(
                .waiting, tr("Parts of the Account Are Missing"),
                tr("They may still be on their way. If nobody has them any more, you can go on without them."), .goOn)
        case .initialSync:
            self.init(
                .busy, tr("Fetching the Account for the First Time…"),
                tr("Settings that the account already has replace those of this device."), .syncNow)
        case .offline: self = .offline(account, remote, now)
        case .authFailed:
            self.init(
                .bad, tr("The Password Is Refused"),
                tr("%1 refuses the password. Enter the current one to continue syncing.", remote), .newPassword)
        case .paused where account.lastError?.code == .remoteReset:
            self.init(
                .bad, tr("The Account Is Gone"),
                tr("Sync is paused until you choose which side to keep. Nothing was deleted on this device."), .resolve)
        case .paused where account.lastError?.code == .keyNeeded:
            self.init(
                .bad, tr("The Recovery Words Are Missing"),
                tr(
                    "The account is encrypted, and this device doesn't have its key. Sync is paused until you enter the words."
                ),
                .enterWords)
        case .paused:
            self.init(
                .waiting, tr("Paused on This Device"),
                tr("What you change here is uploaded when you resume."), .resume)
        default: self = .failed(account, remote)
        }
    }

    private static func offline(_ account: AccountDescription, _ remote: String, _ now: UInt64) -> Self {
        // The service has one name for this and for a server that is away, because either may pass.
        if account.isFolderMissing {
            return Self(
                .waiting, tr("The Folder Is Missing"),
                tr(
                    "%1 responds, but the account's folder is missing. If its disk is offline, wait. If the folder was deleted, create it again.",
                    remote), .tryNow)
        }
        let next = Age.text(until: account.nextAttempt, at: now)
        let explanation =
            next.map { tr("%1 can't be reached; next attempt %2. Changes are kept and sent later.", remote, $0) }
            ?? tr("%1 can't be reached. Changes are kept and sent later.", remote)
        return Self(.waiting, tr("Offline"), explanation, .tryNow)
    }

    private static func failed(_ account: AccountDescription, _ remote: String) -> Self {
        guard let error = account.lastError else {
            return Self(.bad, tr("Sync Has Failed"), tr("The service gave no reason."), .tryNow)
        }
        if error.code == .backendFull {
            return Self(
                .bad, tr("No Space Is Left"), tr("Make room at %1, then try again. Nothing is lost.", remote), .tryNow)
        }
        if account.isUnreadable {
            return Self(
                .bad, tr("Sync Has Failed"),
                tr("This device no longer knows where the account is. Sign in there again; nothing is lost."), .signIn)
        }
        return Self(.bad, tr("Sync Has Failed"), ErrorSentence.text(error), .tryNow)
    }
}
