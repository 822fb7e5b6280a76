// SPDX-License-Identifier: Apache-2.0

internal import PlainText

/// Why a call to a remote failed. Every call may be repeated, so nothing is lost.
public struct RemoteError: Error, Equatable, CustomStringConvertible {
    /// The kind of failure.
    public let code: Code
    /// A sentence for users, without secrets: at most 1000 bytes, without control characters.
    public let message: String
    /// For how many seconds the remote asks not to be called, as by HTTP's `Retry-After`; `nil` if it doesn't ask.
    public let retryAfter: Int?

    /// What is known beyond the kind; `nil` if nothing is. Programs give advice by it.
    public let reason: Reason?

    /// Whether a server answered that there is nothing at the address.
    public var isFolderMissing: Bool { reason == .folderMissing }

    /// With `keyNeeded`, if this device has the account unencrypted: the identifier of the encrypted one in the remote.
    package var encryptedAccount: String?

    /// Makes an error from its parts; the message is truncated and cleaned.
    public init(_ code: Code, _ message: String, retryAfter: Int? = nil, reason: Reason? = nil) {
        self.code = code
        self.reason = reason
        // It may quote a server.
        self.message = message.cleaned(atMost: 1000)
        self.retryAfter = retryAfter
    }

    /// The least number of seconds until the service retries by itself; `nil` leaves it to ``SyncSchedule``.
    ///
    /// It is an hour for refused credentials, because servers (fail2ban, for example) lock out addresses that repeat a
    /// wrong password.
    public var leastRest: Int? {
        code == .unauthorized ? max(retryAfter ?? 0, Self.restAfterRefusal) : retryAfter
    }

    private static let restAfterRefusal = 3600

    /// The sentence.
    public var description: String { message }

    /// Particular failures.
    public enum Reason: Sendable {
        /// A server answered that there is nothing at the address. A new account may be created there. It doesn't prove
        /// that an account is gone: the server's disk may not be mounted.
        case folderMissing
        /// Parts of the account have not arrived in the remote, and the first download waits for them.
        case firstPartsMissing
        /// Parts that another device has uploaded have not arrived in the remote.
        case partsMissing
        /// The remote was emptied, or holds another account.
        case accountReplaced
        /// The file that says which account is in the remote is damaged, or has not arrived.
        case markerDamaged
        /// A server lists no folders, and no account can be found there without. It doesn't prove that there is none:
        /// the server may have listed them when the account was made.
        case listsNothing
        /// A device that has this device's key of the account has replaced it.
        case keyReplaced
        /// No authority that this device trusts has signed the server's certificate.
        case authorityUnknown
    }

    /// The kinds of failure.
    public enum Code: String, Sendable {
        /// The server or folder is missing, or didn't answer.
        case unavailable
        /// The server refuses the credentials.
        case unauthorized
        /// The remote exists, but the user or the service may not use it.
        case denied
        /// The remote has no space left.
        case full
        /// The remote exists, but has no account.
        case noAccount
        /// The account is gone, or the remote holds another one.
        case reset
        /// A newer version of the service wrote the remote.
        case tooNew
        /// The account's data is corrupt.
        case damaged
        /// There is no backend for this address.
        case unsupported
        /// The account is encrypted, and this device doesn't have its key.
        case keyNeeded
        /// The recovery phrase is another account's.
        case keyWrong
        /// The recovery phrase is right, but the remote also has markers of other keys.
        case otherKeys
        /// The caller wants an encrypted account, and the one in the remote is not.
        case unencrypted
        /// This device can't read or write its own copy of the account; its disk may be full.
        case device
    }
}

extension RemoteError {
    /// The error for an account that is no longer in the remote, which has none, or another.
    package static let accountGone = RemoteError(.reset, "The account that was here is gone.")
}
