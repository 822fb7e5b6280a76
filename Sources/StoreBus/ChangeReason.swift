// SPDX-License-Identifier: Apache-2.0

/// Why values changed: the numbers in the signals of stores and domains. The first four are Apple's. A later service
/// may send others.
package enum ChangeReason {
    /// Another device has changed values.
    package static let server: UInt32 = 0
    /// The account's values have arrived for the first time.
    package static let initialSync: UInt32 = 1
    /// A write was refused and reverted, or what several devices wrote no longer fits.
    package static let quotaViolation: UInt32 = 2
    /// The user has signed in, signed out or switched accounts.
    package static let account: UInt32 = 3
    /// Another process of this device has written.
    package static let local: UInt32 = 16
    /// An administrator has changed managed settings.
    package static let managed: UInt32 = 32

    /// Returns the word for a reason, or its number if this version knows none.
    package static func word(for reason: UInt32) -> String {
        switch reason {
        case server: "server-change"
        case initialSync: "initial-sync-change"
        case quotaViolation: "quota-violation"
        case account: "account-change"
        case local: "local-change"
        case managed: "managed-change"
        default: "\(reason)"
        }
    }
}
