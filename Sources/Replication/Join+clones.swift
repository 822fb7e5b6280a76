// SPDX-License-Identifier: Apache-2.0

internal import PropertyList

extension Join {
    /// The origins under which two devices have written, as a state from elsewhere reveals (docs/decisions/0015).
    ///
    /// Such a state covers more of the present origin's writes than were made here. Or it has another entry under the
    /// dot of an entry that is here. Or it has seen an entry that is here, and holds in its place nothing, a lesser
    /// entry, or one that lost here. A device that replaces a write gives a greater stamp, and one that removes it
    /// leaves a tombstone; so what that state has seen was another write with the same dot, or this write under the dot
    /// that it had before its device left the origin.
    /// - Parameters:
    ///   - present: the origin under which this device writes.
    ///   - times: the range of times of entries, in milliseconds since 1970, whose tombstones all devices still keep.
    ///     Earlier entries prove nothing.
    ///   - isDelta: whether `there` holds only what has changed.
    public static func sharedOrigins(
        _ present: Origin, _ here: some Joinable, in there: StoreState, writtenIn times: Range<UInt64>,
        isDelta: Bool = false
    ) -> Set<Origin> {
        var shared: Set<Origin> = []
        if there.vector[present] > here.vector[present] { shared.insert(present) }
        // With that many writes, a store may have forgotten tombstones early.
        let times = unseen(there.vector, by: here.vector) < Retention.tombstones ? times : 0..<0
        for key in here.keys {
            guard let mine = here.version(of: key), there.vector.contains(mine.dot) else { continue }
            if let other = there.entries[key], other.dot == mine.dot {
                if other.stamp != mine.stamp { shared.insert(mine.stamp.origin) }
            } else if times.contains(mine.stamp.wall), here.wouldLose(mine, to: there.entries[key], isDelta: isDelta) {
                shared.insert(mine.stamp.origin)
            }
        }
        return shared
    }

    /// The origins of entries that this device wrote before the account's values had arrived, if an arriving state has
    /// seen them. They were never uploaded, so a clone wrote under these origins.
    public static func sharedOrigins(ofDefaults here: some Joinable, in there: StoreState) -> Set<Origin> {
        let seen = here.keys.filter { key in
            here.isProvisionalHere(key) && here.version(of: key).map { there.vector.contains($0.dot) } == true
        }
        return Set(seen.compactMap { here.version(of: $0)?.stamp.origin })
    }

    /// The number of writes that one version vector covers and another doesn't.
    private static func unseen(_ there: VersionVector, by here: VersionVector) -> UInt64 {
        there.subtracting(here).dots.reduce(0) { $0 &+ ($1.n - here[$1.origin]) }
    }
}

extension Joinable {
    /// Whether a join would drop an entry that the other state has seen, without putting a later write in its place.
    fileprivate func wouldLose(_ mine: EntryVersion, to other: Entry?, isDelta: Bool) -> Bool {
        guard let other else { return !isDelta }
        return other.stamp < mine.stamp || Rule.seenReplacements.isOn && vector.contains(other.dot)
    }
}
