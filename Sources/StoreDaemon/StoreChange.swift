// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import SDBus
internal import SyncEngine

/// A change of a store, as a signal reports it.
struct StoreChange: Equatable {
    let reason: StoreNotice.Reason
    var keys: ChangedKeys
    var generation: UInt64
    var info: [String: Value]

    /// The most keys that a signal names. A single change may have more, in several signals.
    static let mostKeys = 8192

    /// Merges a later change of the same reason. Of the infos, only what both agree on stays.
    ///
    /// Keys can come and go for as long as a subscriber doesn't read. If there are too many, the earlier ones are left
    /// out, and the generation shows that there were more changes.
    @BusActor
    mutating func merge(_ later: StoreChange) {
        keys = keys.merged(with: later.keys)
        generation = later.generation
        info = info.filter { later.info[$0.key] == $0.value }
    }
}

extension [StoreChange] {
    /// Merges a later change, so that there is one change per reason. The merged change moves to the end, because
    /// generations must not go back.
    @BusActor
    mutating func merge(_ later: StoreChange) {
        guard let index = firstIndex(where: { $0.reason == later.reason }) else { return append(later) }
        var change = remove(at: index)
        change.merge(later)
        append(change)
    }
}
