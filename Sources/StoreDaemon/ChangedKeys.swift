// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import SDBus

/// The keys of a change.
///
/// A user may have a thousand subscriptions, and each change may name thousands of keys. So subscribers share what they
/// are still to be told, also after changes were merged. What is kept for those that don't read is counted.
@BusActor
final class ChangedKeys {
    let keys: Set<Key>
    /// About how many bytes they take in a signal.
    let weight: Int
    /// The user for whom they are counted; `nil` while no subscriber keeps them.
    private var keeper: UserShare?
    /// The last merges with earlier keys: most subscribers wait with the same few ones.
    private var merges: [Merge] = []

    private struct Merge {
        weak var former: ChangedKeys?
        weak var merged: ChangedKeys?
    }

    /// How many merges are remembered.
    private static let mostMerges = 8

    init(_ keys: Set<Key>) {
        self.keys = keys
        weight = keys.reduce(0) { $0 + 8 + $1.text.utf8Count }
    }

    isolated deinit { keeper?.countChanges(-memory) }

    private var memory: Int { weight + Self.overhead * keys.count }
    /// About what a key takes in a set, besides its text.
    private static let overhead = 56

    private static let none = ChangedKeys([])

    /// Returns what a user's subscriber keeps that doesn't read: these keys, or none if there is no room for them.
    func kept(for share: UserShare) -> ChangedKeys {
        if keeper != nil || keys.isEmpty { return self }
        guard share.mayKeepChanges(memory) else { return .none }
        keeper = share
        share.countChanges(memory)
        return self
    }

    /// Returns these keys and later ones. If these are too many, only the later ones.
    func merged(with later: ChangedKeys) -> ChangedKeys {
        if self === later { return self }
        if let merged = later.merges.first(where: { $0.former === self && $0.merged != nil })?.merged { return merged }
        let result = union(later)
        later.merges.removeAll { $0.former == nil || $0.merged == nil }
        if later.merges.count == Self.mostMerges { later.merges.removeFirst() }
        later.merges.append(Merge(former: self, merged: result))
        return result
    }

    private func union(_ later: ChangedKeys) -> ChangedKeys {
        if keys.count + later.keys.count > 2 * StoreChange.mostKeys { return later }
        let union = keys.union(later.keys)
        if union.count > StoreChange.mostKeys || union.count == later.keys.count { return later }
        return union.count == keys.count ? self : ChangedKeys(union)
    }
}

extension ChangedKeys: Equatable {
    nonisolated static func == (left: ChangedKeys, right: ChangedKeys) -> Bool { left.keys == right.keys }
}
