// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop

/// A problem that remains until the user acts.
enum Trouble: Hashable, Sendable {
    case passwordRefused(account: String)
    case remoteGone(account: String)
    /// The account is encrypted, and its key is not on this device.
    case keyMissing(account: String)
    /// A store has reached a limit, so its app can't add settings.
    case storeFull(String)

    /// Returns the problems of an account.
    ///
    /// - Parameter fullStores: the stores that have reached a limit.
    static func of(_ look: Service.Look, fullStores: [String]) -> Set<Trouble> {
        var troubles = Set(fullStores.map(Trouble.storeFull))
        if look.state == "auth-failed" { troubles.insert(.passwordRefused(account: look.account)) }
        if look.state == "paused", look.errorName.hasSuffix(".RemoteReset") {
            troubles.insert(.remoteGone(account: look.account))
        }
        if look.state == "paused", look.errorName.hasSuffix(".KeyNeeded") {
            troubles.insert(.keyMissing(account: look.account))
        }
        return troubles
    }

    /// The problem's name in the file of causes, which has one on each line.
    var cause: String {
        switch self {
        case .passwordRefused(let account): "password-refused \(account)"
        case .remoteGone(let account): "remote-gone \(account)"
        case .keyMissing(let account): "key-missing \(account)"
        case .storeFull(let store): "store-full \(store)"
        }
    }

    /// The panel's page on which the user can solve the problem.
    var page: String {
        switch self {
        case .passwordRefused, .remoteGone, .keyMissing: "account"
        case .storeFull: "apps"
        }
    }

    /// The notification's title.
    var title: String {
        switch self {
        case .passwordRefused: tr("Settings Sync: Password Refused")
        case .remoteGone: tr("Settings Sync: The Account Is Gone")
        case .keyMissing: tr("Settings Sync: The Recovery Words Are Missing")
        case .storeFull: tr("Settings Sync: An App's Store Is Full")
        }
    }

    /// The notification's text, which isn't markup.
    var text: String {
        switch self {
        case .passwordRefused: tr("Enter the present password to go on syncing.")
        case .remoteGone: tr("Sync rests until you say which side is right. Nothing was deleted on this device.")
        case .keyMissing: tr("Enter the words of the encrypted account to go on syncing.")
        case .storeFull(let store):
            tr(
                "%1 can't add settings until you remove some in the app.",
                DesktopApplication.name(of: store + ".desktop") ?? store)
        }
    }
}
