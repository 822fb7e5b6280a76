// SPDX-License-Identifier: Apache-2.0

internal import PropertyList

extension Join {
    /// The origins of which a state that came from elsewhere shows that two devices have written under them.
    ///
    /// It shows that of the present origin if it knows of writes that were not made here; and of any origin if it has
    /// another entry under the dot of one that is here, or claims to have seen one and holds in its place nothing,
    /// something less, or something that was seen here and gave way. Replacing a write that was seen takes a greater
    /// stamp, and removing it leaves a tombstone; so what was seen there was another write of the same dot, or this
    /// write under the dot that it had before its origin was left. See docs/decisions/0015.
    /// - Parameters:
    ///   - present: the origin under which this device writes.
    ///   - times: when an entry was written, in milliseconds since 1970, if the tombstone that replaced it is still
    ///     kept everywhere. Earlier entries tell nothing.
    ///   - isDelta: of the state only what has changed is there.
    public static func sharedOrigins(
        _ present: Origin, _ here: some Joinable, in there: StoreState, writtenIn times: Range<UInt64>,
        isDelta: Bool = false
    ) -> Set<Origin> {
        var shared: Set<Origin> = []
        if there.vector[present] > here.vector[present] { shared.insert(present) }
        // With so many removals tombstones are forgotten before their time.
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

    /// The origins of what was written here before the account's values had arrived, where a state that arrives claims
    /// to have seen it: it was never uploaded.
    public static func sharedOrigins(ofDefaults here: some Joinable, in there: StoreState) -> Set<Origin> {
        let seen = here.keys.filter { key in
            here.isProvisionalHere(key) && here.version(of: key).map { there.vector.contains($0.dot) } == true
        }
        return Set(seen.compactMap { here.version(of: $0)?.stamp.origin })
    }

    /// How many writes one version vector knows of and another does not.
    private static func unseen(_ there: VersionVector, by here: VersionVector) -> UInt64 {
        there.subtracting(here).dots.reduce(0) { $0 &+ ($1.n - here[$1.origin]) }
    }
}

extension Joinable {
    /// Whether a join would drop an entry that was seen elsewhere, with nothing in its place that was written later.
    fileprivate func wouldLose(_ mine: EntryVersion, to other: Entry?, isDelta: Bool) -> Bool {
        guard let other else { return !isDelta }
        return other.stamp < mine.stamp || Rule.seenReplacements.isOn && vector.contains(other.dot)
    }
}
