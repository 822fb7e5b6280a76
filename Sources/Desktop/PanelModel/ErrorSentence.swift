// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop
internal import ServiceMessages
internal import UbiquitousStore

/// Describes errors to users, in their language. The service's own message is shown under Details.
package enum ErrorSentence {
    /// Returns the sentence for any error.
    package static func text(_ error: any Error) -> String {
        guard let error = error as? UbiquitousStoreError else { return "\(error)".shown }
        return text(error.code) ?? ServiceMessages.localized(error.message).shown
    }

    /// Returns the sentence for a kind of error; `nil` if only the service's message describes it.
    static func text(_ code: UbiquitousStoreError.Code) -> String? {
        switch code {
        case .backendUnavailable: tr("It can't be reached.")
        case .backendAuthenticationFailed: tr("The user name or password is refused.")
        case .backendFull: tr("No space is left there.")
        case .backendUnsupported: tr("This kind of account is not supported by the service.")
        case .noAccount: tr("There is no account at this location.")
        case .remoteFormatTooNew: tr("A newer version of the service uses this account. Update this device.")
        case .remoteReset: tr("The account is gone.")
        case .keyNeeded: tr("The account is encrypted, and its key is not on this device.")
        case .keyWrong: tr("The recovery phrase is another account's.")
        case .corrupt: tr("The data stored there is damaged.")
        case .accessDenied: tr("The service isn't allowed to use this location.")
        case .quotaExceeded: tr("The app's store is full.")
        case .storageFailed: tr("This device can't write: its disk may be full.")
        case .busy: tr("Another attempt is still under way. Try again in a moment.")
        case .timedOut: tr("There was no answer in time.")
        case .serviceUnavailable: tr("The settings service is not running.")
        case .notSignedIn: tr("This device is not signed in any more.")
        case .limitsExceeded: tr("Too many windows or programs use the service.")
        case .notSupported: tr("The service is of an older version than this program.")
        default: nil
        }
    }
}
