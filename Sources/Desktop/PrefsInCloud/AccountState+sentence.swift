// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop
internal import UbiquitousStore

extension UbiquitousStore.AccountState {
    /// The text of the account's row.
    @MainActor var sentence: String {
        switch status {
        case .unavailable: tr("The settings service is not running")
        case .signedOut: tr("Not signed in: the color stays on this device")
        case .initialSync where lastError != nil: tr("Parts of the account are missing")
        case .initialSync: tr("Fetching the account; its color will win")
        case .idle where pendingChanges > 0: tr("Changes wait to be uploaded")
        case .idle: tr("Up to date")
        case .syncing: tr("Exchanging changes…")
        case .offline: tr("Offline: changes will be sent later")
        case .authenticationFailed: tr("The server refuses the password")
        case .paused where lastError?.code == .keyNeeded: tr("Paused: the account asks for its recovery words")
        case .paused where lastError?.code == .remoteReset: tr("Paused: the account is gone")
        case .paused: tr("Paused on this device")
        default: tr("Sync has failed")
        }
    }
}
