// SPDX-License-Identifier: Apache-2.0

internal import PropertyList

/// What the app is told: that something changed, or was refused, which it didn't do itself.
struct Announcement: Sendable {
    /// In the numbers of the interface, or ``ExternalChange/invalidWrite``.
    var reason: UInt32
    /// The keys, sorted.
    var changes: [KeyChange]
    /// The device that the change came from, where it is known and one.
    var originDevice: String?
    /// Why a write was refused.
    var error: UbiquitousStoreError?
}

extension Announcement {
    /// What this one and the next are together: of each key the value before the first and the one after the last.
    ///
    /// - Returns: `nil` if nothing is left to tell.
    func joined(with next: Announcement) -> Announcement? {
        var changes: [Text: KeyChange] = [:]
        for change in self.changes + next.changes {
            changes[change.key] = KeyChange(key: change.key, old: (changes[change.key] ?? change).old, new: change.new)
        }
        let weightier = next.weight >= weight ? next : self
        if weightier.isOnlyAboutValues { changes = changes.filter { $0.value.old != $0.value.new } }
        if weightier.isOnlyAboutValues && changes.isEmpty { return nil }
        return Announcement(
            reason: weightier.reason, changes: changes.values.sorted { $0.key < $1.key },
            originDevice: originDevice == next.originDevice ? originDevice : nil, error: next.error ?? error)
    }

    /// Whether an app does the same on both.
    func isLike(_ other: Announcement) -> Bool {
        reason == other.reason || isOnlyAboutValues && other.isOnlyAboutValues
    }

    private var isOnlyAboutValues: Bool { ExternalChange.isOnlyAboutValues(reason) }

    /// Which reason an app has to know of if it can know of one only: the account's, then the first download's, then a
    /// refusal, then other devices'.
    private var weight: Int {
        let reasons = [
            ExternalChange.localChange, ExternalChange.serverChange, ExternalChange.invalidWrite,
            ExternalChange.quotaViolation, 1, 3,
        ]
        return reasons.firstIndex(of: reason) ?? reasons.count
    }
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
    /// A write of this process is none that a store can hold. The library's own: no signal has this reason.
    static let invalidWrite = UInt32.max

    /// Why a write is announced that was refused.
    static func reason(of refusal: UbiquitousStoreError) -> UInt32 {
        refusal.code == .quotaExceeded ? quotaViolation : invalidWrite
    }

    /// What changed while the service couldn't tell.
    init(returningTo generation: UInt64, _ keys: some Sequence<Text>) {
        self.init(reason: Self.serverChange, keys: keys.sorted(), generation: generation)
    }

    /// Whether it is no news where no value changed.
    var isOnlyAboutValues: Bool { Self.isOnlyAboutValues(reason) }

    static func isOnlyAboutValues(_ reason: UInt32) -> Bool { reason == serverChange || reason == localChange }
}
