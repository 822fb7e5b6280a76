// SPDX-License-Identifier: Apache-2.0

internal import PropertyList

/// What the app is told: that something changed, or was refused, which it didn't do itself.
struct Announcement: Sendable {
    /// In the numbers of the interface.
    var reason: UInt32
    /// The keys, sorted.
    var changes: [KeyChange]
    /// The device that the change came from, where it is known and one.
    var originDevice: String?
    /// Why a write was refused.
    var error: UbiquitousStoreError?
}

/// A key's value before and after, as the app sees it.
struct KeyChange: Sendable, Equatable {
    var key: Text
    var old: Value?
    var new: Value?
}

extension ExternalChange {
    /// Changes of another device; Apple's `NSUbiquitousKeyValueStoreServerChange`.
    static let serverChange: UInt32 = 0
    /// A write was refused, or what several devices wrote no longer fits.
    static let quotaViolation: UInt32 = 2
    /// Another process of this device wrote.
    static let localChange: UInt32 = 16

    /// What changed while the service couldn't tell.
    init(returningTo generation: UInt64, _ keys: some Sequence<Text>) {
        self.init(reason: Self.serverChange, keys: keys.sorted(), generation: generation)
    }

    /// Whether it is no news where no value changed.
    var isOnlyAboutValues: Bool { reason == Self.serverChange || reason == Self.localChange }
}
