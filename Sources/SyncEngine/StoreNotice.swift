// SPDX-License-Identifier: Apache-2.0

public import PropertyList
public import StoreEngine

/// A change of a store, as its subscribers are told of it.
public struct StoreNotice {
    /// The store, after the change.
    public let store: Store
    /// Why the store changed.
    public let reason: Reason
    /// The keys whose visible value has changed. For a quota violation, the keys that don't fit.
    public let keys: [Key]
    /// The identifier of the device that wrote; `nil` if there were several, or if it is unknown.
    public let device: String?

    /// Why a store changed. The first four are those of Apple's `NSUbiquitousKeyValueStore`.
    public enum Reason: Sendable {
        case serverChange, initialSyncChange, quotaViolationChange, accountChange
        case localChange
        /// An administrator changed a defaults domain.
        case managedChange
    }

    /// Makes a notice from its parts.
    public init(store: Store, reason: Reason, keys: [Key], device: String?) {
        self.store = store
        self.reason = reason
        self.keys = keys
        self.device = device
    }
}
