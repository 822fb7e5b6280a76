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

    /// Why a store changed. The first four are Apple's.
    public enum Reason: Sendable {
        case serverChange, initialSyncChange, quotaViolationChange, accountChange
        case localChange
        /// An administrator changed a defaults domain.
        case managedChange
    }

    /// A notice of its parts.
    public init(store: Store, reason: Reason, keys: [Key], device: String?) {
        self.store = store
        self.reason = reason
        self.keys = keys
        self.device = device
    }
}
