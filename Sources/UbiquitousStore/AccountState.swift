// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import StoreBus

extension UbiquitousStore {
    /// The state of the user's account and its sync.
    public struct AccountState: Sendable {
        /// What the account is doing.
        public let status: Status
        /// Whether the first download of the account is complete.
        public let isInitialSyncDone: Bool
        /// The number of pending changes in all of the user's stores.
        public let pendingChanges: Int
        /// When the service last polled the remote successfully; `nil` if never.
        public let lastDownload: Date?
        /// When the remote last acknowledged an upload; `nil` if never.
        public let lastUpload: Date?
        /// The current error of sync; `nil` if there is none.
        public let lastError: UbiquitousStoreError?

        init(_ account: AccountDescription) {
            status = Status(account.state)
            isInitialSyncDone = account.isInitialSyncDone
            pendingChanges = account.pendingChanges
            lastDownload = Self.date(account.lastPull)
            lastUpload = Self.date(account.lastPush)
            lastError = account.lastError
        }

        /// Makes the state of an account that nothing is known of, because the service can't be reached.
        init(unavailable error: UbiquitousStoreError) {
            (status, lastError) = (.unavailable, error)
            (isInitialSyncDone, pendingChanges, lastDownload, lastUpload) = (false, 0, nil, nil)
        }

        private static func date(_ microseconds: UInt64) -> Date? {
            microseconds == 0 ? nil : Date(timeIntervalSince1970: Double(microseconds) / 1_000_000)
        }
    }
}

extension UbiquitousStore.AccountState {
    /// What an account is doing. Later versions may add more.
    public struct Status: RawRepresentable, Sendable, Hashable {
        /// The word for it in the D-Bus interface; ``unavailable`` is the library's own.
        public let rawValue: String

        /// Makes a status from its word.
        public init(rawValue: String) { self.rawValue = rawValue }

        init(_ status: AccountStatus) { rawValue = status.rawValue }

        /// No account: values stay on this device.
        public static let signedOut = Status(AccountStatus.signedOut)
        /// The first download is under way.
        public static let initialSync = Status(AccountStatus.initialSync)
        /// Nothing is left to do.
        public static let idle = Status(AccountStatus.idle)
        /// An upload or download is under way.
        public static let syncing = Status(AccountStatus.syncing)
        /// The remote can't be reached; the service retries.
        public static let offline = Status(AccountStatus.offline)
        /// The remote refuses the credentials. The service retries once an hour.
        public static let authenticationFailed = Status(AccountStatus.authFailed)
        /// The user has paused sync; or the remote was reset, or the account's key is missing, and the user has to act.
        /// ``UbiquitousStore/AccountState/lastError`` tells which.
        public static let paused = Status(AccountStatus.paused)
        /// Another error; see ``UbiquitousStore/AccountState/lastError``.
        public static let error = Status(AccountStatus.error)
        /// The service can't be reached or refuses this app, so nothing is known. What is set now is lost if the
        /// app ends before the service runs again. ``UbiquitousStore/AccountState/lastError`` has the reason.
        public static let unavailable = Status(rawValue: "unavailable")
    }
}
