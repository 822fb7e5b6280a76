// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop
internal import StoreBus

/// A problem that remains until the user acts.
enum Trouble: Hashable, Sendable {
    case passwordRefused(account: String)
    case remoteGone(account: String)
    /// The account is encrypted, and its key is not on this device.
    case keyMissing(account: String)
    /// The first download can't end, and this device uploads nothing, because parts of the account are missing.
    case partsMissing(account: String)
    /// A store has reached a limit, so its app can't add settings.
    case storeFull(String)

    /// How long parts may be missing before that is a problem: a folder's sync tool may still bring them.
    static let patience = Duration.seconds(3600)

    /// Returns the problems of an account.
    ///
    /// - Parameters:
    ///   - fullStores: the stores that have reached a limit.
    ///   - lacked: how long parts have been missing; `nil` if none are.
    static func of(_ look: Service.Look, fullStores: [String], lacked: Duration? = nil) -> Set<Trouble> {
        var troubles = Set(fullStores.map(Trouble.storeFull))
        if look.state == .authFailed { troubles.insert(.passwordRefused(account: look.account)) }
        if look.state == .paused, look.errorName.hasSuffix(".RemoteReset") {
            troubles.insert(.remoteGone(account: look.account))
        }
        if look.state == .paused, look.errorName.hasSuffix(".KeyNeeded") {
            troubles.insert(.keyMissing(account: look.account))
        }
        if let lacked, lacked >= patience { troubles.insert(.partsMissing(account: look.account)) }
        return troubles
    }

    /// The problem's name in the file of causes, which has one on each line.
    var cause: String {
        switch self {
        case .passwordRefused(let account): "password-refused \(account)"
        case .remoteGone(let account): "remote-gone \(account)"
        case .keyMissing(let account): "key-missing \(account)"
        case .partsMissing(let account): "parts-missing \(account)"
        case .storeFull(let store): "store-full \(store)"
        }
    }

    /// The panel's page on which the user can solve the problem.
    var page: String {
        switch self {
        case .passwordRefused, .remoteGone, .keyMissing, .partsMissing: "account"
        case .storeFull: "apps"
        }
    }

    /// The notification's title.
    var title: String {
        switch self {
        case .passwordRefused: tr("Settings Sync: Password Refused")
        case .remoteGone: tr("Settings Sync: The Account Is Gone")
        case .keyMissing: tr("Settings Sync: The Recovery Words Are Missing")
        case .partsMissing: tr("Settings Sync: Parts of the Account Are Missing")
        case .storeFull: tr("Settings Sync: An App's Store Is Full")
        }
    }

    /// The notification's text, which isn't markup.
    var text: String {
        switch self {
        case .passwordRefused: tr("Enter the current password to continue syncing.")
        case .remoteGone: tr("Sync is paused until you choose which side to keep. Nothing was deleted on this device.")
        case .keyMissing: tr("Enter the words of the encrypted account to continue syncing.")
        case .partsMissing:
            tr("If nobody has them any more, go on without them. Until then, this device uploads nothing.")
        case .storeFull(let store):
            tr(
                "%1 can't add settings until you remove some in the app.",
                DesktopApplication.name(of: store + ".desktop") ?? store)
        }
    }
}
