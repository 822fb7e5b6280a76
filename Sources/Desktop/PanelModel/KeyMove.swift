// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop
internal import UbiquitousStore

/// A move of the account to a new key, with its texts.
package enum KeyMove: Equatable, Sendable {
    /// From an unencrypted account.
    case encrypt
    /// From the present key.
    case replaceWords

    /// Makes the move that the service calls by a name; `nil` if it is none.
    init?(called name: String) {
        switch name {
        case "encrypt": self = .encrypt
        case "replace-key": self = .replaceWords
        default: return nil
        }
    }

    /// The question before the move.
    package var question: String {
        switch self {
        case .encrypt: tr("Encrypt This Account?")
        case .replaceWords: tr("Replace the Recovery Words?")
        }
    }

    /// What the move does, and what the user has to do afterwards.
    package var explanation: String {
        switch self {
        case .encrypt:
            tr(
                "Only your devices can read it then. You get twelve words, which your other devices ask for before they go on syncing. Once you have noted the words, what is there unencrypted is removed."
            )
        case .replaceWords:
            tr(
                "Do this if a device was lost, or if others have seen the words. You get twelve new words, which your other devices ask for before they go on syncing; the present words no longer let a device in. Change the password of the location as well."
            )
        }
    }

    /// The label of the answer that begins the move.
    package var answer: String {
        switch self {
        case .encrypt: tr("_Encrypt")
        case .replaceWords: tr("_Replace")
        }
    }

    /// The account's state during the move.
    var title: String {
        switch self {
        case .encrypt: tr("Encrypting the Account…")
        case .replaceWords: tr("Replacing the Recovery Words…")
        }
    }

    /// The question whether to leave out what can't be read, if that stops the move.
    package static var passingOver: (question: String, explanation: String, answer: String) {
        (
            tr("Go On Without What Can't Be Read?"),
            tr(
                "Something in the account has not arrived on this device, or can't be read. It may still be arriving, so it is safe to wait and to try again. If you go on, it is left where it is. A device that wrote it uploads it again once it has the new words."
            ),
            tr("_Go On")
        )
    }

    /// Whether a move that failed with an error can continue without what can't be read.
    package static func mayPassOver(_ error: any Error) -> Bool {
        (error as? UbiquitousStoreError)?.code == .conflict
    }

    /// Returns why the move failed.
    package func sentence(_ error: any Error) -> String {
        switch (error as? UbiquitousStoreError)?.code {
        case .conflict:
            tr("Something in the account has not arrived on this device, or can't be read. Try again in a while.")
        case .keyNeeded: tr("Another device has given the account a new key at the same time. Enter its words here.")
        case .backendUnsupported: tr("Accounts at this kind of location can't be encrypted.")
        case .backendUnavailable, .timedOut:
            tr("The location can't be reached. Nothing is lost, and what has begun continues by itself.")
        default: ErrorSentence.text(error)
        }
    }
}
