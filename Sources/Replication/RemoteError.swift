// SPDX-License-Identifier: Apache-2.0

internal import PlainText

/// Why a remote could not do what was asked. Nothing is lost: every call may be repeated.
public struct RemoteError: Error, Equatable, CustomStringConvertible {
    /// What kind of failure it is.
    public let code: Code
    /// A sentence for users, without secrets: 1000 bytes at most, without control characters.
    public let message: String
    /// When the remote asks to be left alone until: seconds from now.
    public let retryAfter: Int?

    /// Whether a server answered that there is nothing at the address. A disk of its may not be mounted, so that is no
    /// reason to believe that an account is gone; nothing is in the way of a new one, though.
    public let lacksPlace: Bool

    /// Of `keyNeeded`, where the account is in plain on the device: the identifier of the encrypted one that is there.
    package var encryptedAccount: String?

    /// An error of its parts.
    public init(_ code: Code, _ message: String, retryAfter: Int? = nil, lacksPlace: Bool = false) {
        self.code = code
        self.lacksPlace = lacksPlace
        // Much of it may be what a server answered.
        self.message = message.cleaned(atMost: 1000)
        self.retryAfter = retryAfter
    }

    /// For how many seconds nothing is tried by itself after it; `nil`: as a ``SyncSchedule`` has it.
    ///
    /// Servers and their fail2ban shut out addresses that come with a wrong password several times.
    public var leastRest: Int? {
        code == .unauthorized ? max(retryAfter ?? 0, Self.restAfterRefusal) : retryAfter
    }

    private static let restAfterRefusal = 3600

    /// The sentence.
    public var description: String { message }

    /// The kinds of failure.
    public enum Code: String, Sendable {
        /// The server or the folder is not there, or did not answer.
        case unavailable
        /// The credentials are wrong.
        case unauthorized
        /// The place is there and may not be used.
        case denied
        /// There is no space left.
        case full
        /// The remote is there, without an account.
        case noAccount
        /// The account that was there is gone, or is another one.
        case reset
        /// It was written by a newer version of this service.
        case tooNew
        /// It holds what makes no sense.
        case damaged
        /// There is no backend for this address.
        case unsupported
        /// The account is encrypted, and this device does not have its key.
        case keyNeeded
        /// The recovery phrase is not the account's.
        case keyWrong
        /// The recovery phrase is right, and markers of other keys are in the way.
        case otherKeys
        /// The account was to be encrypted, and the one that is there is not.
        case inPlain
        /// This device can't write, or read, what it has of the account: its disk may be full.
        case device
    }
}
