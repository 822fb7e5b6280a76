// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import SDBus

/// The keys of a change, counted as memory that waits for a user's subscribers.
///
/// A user may have a thousand subscriptions, and each change may name thousands of keys. So subscribers share what they
/// are still to be told, also after changes were merged.
@BusActor
final class ChangedKeys {
    /// Empty if there was no room for them.
    let keys: Set<Key>
    /// About how many bytes they take in a signal.
    let weight: Int
    private let share: UserShare
    /// The last merge with earlier keys: most subscribers wait with the same ones.
    private weak var former: ChangedKeys?
    private weak var merged: ChangedKeys?

    /// - Parameter share: the user whose subscribers wait.
    init(_ keys: Set<Key>, for share: UserShare) {
        let weight = keys.reduce(0) { $0 + 8 + $1.text.utf8Count }
        let hasRoom = share.mayKeepChanges(weight + Self.overhead * keys.count)
        (self.keys, self.weight, self.share) = (hasRoom ? keys : [], hasRoom ? weight : 0, share)
        share.countChanges(memory)
    }

    isolated deinit { share.countChanges(-memory) }

    private var memory: Int { weight + Self.overhead * keys.count }
    /// About what a key takes in a set, besides its text.
    private static let overhead = 56
    /// The most keys that are kept for one reason. A single change may have more.
    nonisolated static var most: Int { 8192 }

    /// Returns these keys and later ones. If these are too many, or there is no room for both, only the later ones.
    func merged(with later: ChangedKeys) -> ChangedKeys {
        if self === later { return self }
        if later.former === self, let merged = later.merged { return merged }
        let result = union(later)
        (later.former, later.merged) = (self, result)
        return result
    }

    private func union(_ later: ChangedKeys) -> ChangedKeys {
        guard keys.count + later.keys.count <= 2 * Self.most, share.mayKeepChanges(memory + later.memory) else {
            return later
        }
        let union = keys.union(later.keys)
        if union.count > Self.most || union.count == later.keys.count { return later }
        return union.count == keys.count ? self : ChangedKeys(union, for: share)
    }
}

extension ChangedKeys: Equatable {
    nonisolated static func == (left: ChangedKeys, right: ChangedKeys) -> Bool { left.keys == right.keys }
}
