// SPDX-License-Identifier: Apache-2.0

public import PropertyList
public import StoreEngine

/// What a store's subscribers are told.
public struct StoreNotice {
    /// The store, after the change.
    public let store: Store
    /// Why it changed.
    public let reason: Reason
    /// The keys whose visible value is another one; with a quota violation, those that do not fit.
    public let keys: [Key]
    /// The identifier of the device that wrote, where it was one and is known.
    public let device: String?

    /// Why a store changed, by the numbers of the bus. The first four are Apple's.
    public enum Reason: UInt32, Sendable {
        case serverChange = 0
        case initialSyncChange = 1
        case quotaViolationChange = 2
        case accountChange = 3
        case localChange = 16
        /// What an administrator says about a defaults domain changed.
        case managedChange = 32
    }

    /// A notice of its parts.
    public init(store: Store, reason: Reason, keys: [Key], device: String?) {
        self.store = store
        self.reason = reason
        self.keys = keys
        self.device = device
    }
}
