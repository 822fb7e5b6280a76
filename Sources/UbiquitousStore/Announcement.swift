// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import StoreBus

/// A change that the app didn't make itself, or a refused write.
struct Announcement: Sendable {
    /// A reason of the D-Bus interface, or ``ExternalChange/invalidWrite``.
    var reason: UInt32
    /// The keys, sorted.
    var changes: [KeyChange]
    /// The device that the change came from, if it is known and a single one.
    var originDevice: String?
    /// Why a write was refused.
    var error: UbiquitousStoreError?
}

extension Announcement {
    /// Merges this announcement with the next: for each key, the value before the first and after the last.
    ///
    /// - Returns: `nil` if the changes cancel out.
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

    /// Returns whether an app handles both in the same way.
    func isLike(_ other: Announcement) -> Bool {
        reason == other.reason || isOnlyAboutValues && other.isOnlyAboutValues
    }

    private var isOnlyAboutValues: Bool { ChangeReason.isOnlyAboutValues(reason) }

    /// The priority of the reason when only one can be reported: the account's, then the first download's, then a
    /// refusal, then other devices'.
    private var weight: Int {
        let reasons = [
            ChangeReason.local, ChangeReason.server, ChangeReason.invalidWrite, ChangeReason.quotaViolation,
            ChangeReason.initialSync, ChangeReason.account,
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

extension ChangeReason {
    /// No store can hold what this process wrote. Only the library uses this reason; no signal has it.
    static let invalidWrite = UInt32.max

    /// Returns the reason with which a refused write is announced.
    static func of(_ refusal: UbiquitousStoreError) -> UInt32 {
        refusal.code == .quotaExceeded ? quotaViolation : invalidWrite
    }

    /// Whether a change is worth announcing only if a value changed.
    static func isOnlyAboutValues(_ reason: UInt32) -> Bool { reason == server || reason == local }
}

extension ExternalChange {
    /// Makes the change that stands for all changes while the service wasn't running.
    init(returningTo generation: UInt64, _ keys: some Sequence<Text>) {
        self.init(reason: ChangeReason.server, keys: keys.sorted(), generation: generation)
    }

    /// Whether it is worth announcing only if a value changed.
    var isOnlyAboutValues: Bool { ChangeReason.isOnlyAboutValues(reason) }

    /// Whether it is about keys that it doesn't name, because its receiver has left too much unread.
    var leavesOutKeys: Bool { keys.isEmpty && isOnlyAboutValues }
}
