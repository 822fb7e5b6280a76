// SPDX-License-Identifier: Apache-2.0

/// What an account is doing: the property `State` of its interface. A later service may send other words.
package struct AccountStatus: RawRepresentable, Hashable, Sendable {
    /// The word for it.
    package let rawValue: String

    /// Makes a status from its word.
    package init(rawValue: String) { self.rawValue = rawValue }

    package static let signedOut = AccountStatus(rawValue: "signed-out")
    package static let initialSync = AccountStatus(rawValue: "initial-sync")
    package static let idle = AccountStatus(rawValue: "idle")
    package static let syncing = AccountStatus(rawValue: "syncing")
    package static let offline = AccountStatus(rawValue: "offline")
    package static let authFailed = AccountStatus(rawValue: "auth-failed")
    package static let paused = AccountStatus(rawValue: "paused")
    package static let error = AccountStatus(rawValue: "error")

    /// All that this version knows.
    package static let all = [signedOut, initialSync, idle, syncing, offline, authFailed, paused, error]
}
