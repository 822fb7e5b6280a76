// SPDX-License-Identifier: Apache-2.0

package import PropertyList
package import StoreEngine

/// A change of a store, as its subscribers see it.
package struct StoreNotice {
    /// The store, after the change.
    package let store: Store
    /// Why the store changed.
    package let reason: Reason
    /// The keys whose visible value has changed. For a quota violation, the keys that don't fit.
    package let keys: [Key]
    /// The identifier of the device that wrote; `nil` if there were several, or if it is unknown.
    package let device: String?

    /// Why a store changed. The first four are those of Apple's `NSUbiquitousKeyValueStore`.
    package enum Reason: Sendable {
        case serverChange, initialSyncChange, quotaViolationChange, accountChange
        case localChange
        /// An administrator changed a defaults domain.
        case managedChange
    }

    /// Makes a notice from its parts.
    package init(store: Store, reason: Reason, keys: [Key], device: String?) {
        self.store = store
        self.reason = reason
        self.keys = keys
        self.device = device
    }
}
