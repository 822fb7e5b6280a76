// SPDX-License-Identifier: Apache-2.0

public import Foundation

extension UbiquitousStore {
    /// How the person's account and its sync are.
    public struct AccountState: Sendable {
        /// In a word.
        public let status: Status
        /// Whether the account's values are here: the first download is complete.
        public let isInitialSyncDone: Bool
        /// Changes of all of the person's stores that wait for their upload.
        public let pendingChanges: Int
        /// When something was last downloaded; `nil`: never.
        public let lastDownload: Date?
        /// When something was last uploaded; `nil`: never.
        public let lastUpload: Date?
        /// The error that sync has.
        public let lastError: UbiquitousStoreError?

        init(_ account: AccountDescription) {
            status = Status(rawValue: account.state)
            isInitialSyncDone = account.isInitialSyncDone
            pendingChanges = account.pendingChanges
            lastDownload = Self.date(account.lastPull)
            lastUpload = Self.date(account.lastPush)
            lastError = account.lastError
        }

        private static func date(_ microseconds: UInt64) -> Date? {
            microseconds == 0 ? nil : Date(timeIntervalSince1970: Double(microseconds) / 1_000_000)
        }
    }
}

extension UbiquitousStore.AccountState {
    /// What an account is at. There may be more of them in later versions.
    public struct Status: RawRepresentable, Sendable, Hashable {
        /// The word that it has on the bus.
        public let rawValue: String

        /// A status by its word.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// Nobody has signed in: values stay on this device.
        public static let signedOut = Status(rawValue: "signed-out")
        /// The first download is under way.
        public static let initialSync = Status(rawValue: "initial-sync")
        /// Everything is done.
        public static let idle = Status(rawValue: "idle")
        /// Something is uploaded or downloaded.
        public static let syncing = Status(rawValue: "syncing")
        /// The remote can't be reached; it is tried again.
        public static let offline = Status(rawValue: "offline")
        /// The remote refuses the credentials.
        public static let authenticationFailed = Status(rawValue: "auth-failed")
        /// Sync rests until somebody says so.
        public static let paused = Status(rawValue: "paused")
        /// Something else is wrong; see ``UbiquitousStore/AccountState/lastError``.
        public static let error = Status(rawValue: "error")
    }
}
