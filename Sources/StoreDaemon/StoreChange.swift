// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import SyncEngine

/// A change of a store as a signal tells of it.
struct StoreChange: Equatable {
    let reason: StoreNotice.Reason
    var keys: Set<Key>
    var generation: UInt64
    var info: [String: Value]

    /// So many keys are named in one signal, unless a single change has more: no store holds more by itself.
    static let mostKeys = 8192

    /// Takes in a later change of the same reason. Of what is known about them only what both agree on stays.
    ///
    /// A store's keys can come and go for as long as a subscriber doesn't read. Of too many the earlier ones are left
    /// out, and the generation tells that there is more.
    mutating func merge(_ later: StoreChange) {
        keys.formUnion(later.keys)
        if keys.count > Self.mostKeys { keys = later.keys }
        generation = later.generation
        info = info.filter { later.info[$0.key] == $0.value }
    }
}

extension [StoreChange] {
    /// Takes in a later change, so that there is one for each reason.
    ///
    /// It is where the last of that reason belongs: generations don't go back.
    mutating func merge(_ later: StoreChange) {
        guard let index = firstIndex(where: { $0.reason == later.reason }) else { return append(later) }
        var change = remove(at: index)
        change.merge(later)
        append(change)
    }
}
