// SPDX-License-Identifier: Apache-2.0

package import PropertyList

/// A store's state in a head: the names of the segments that hold its base, and the tail, which has the changes since.
package struct StatePart: Equatable, Sendable {
    /// The digest of the state, which doesn't depend on how it is cut.
    package var digest: Bits128
    /// The dots that the state has taken in.
    package var vector: VersionVector
    /// The segment that has most of the version vector; zero for none.
    package var vectorSegment: Bits128
    /// The buckets of the base, in their order; empty if there is no base.
    package var base: [BaseSegment]
    /// The entries that the base lacks, or has in an older version.
    package var tail: [Key: Entry]
    /// The keys that have an entry in the base, but none in the state.
    package var removed: Set<Key>

    /// Makes a part from its fields.
    package init(
        digest: Bits128, vector: VersionVector, vectorSegment: Bits128 = .zero, base: [BaseSegment],
        tail: [Key: Entry], removed: Set<Key>
    ) {
        (self.digest, self.vector, self.vectorSegment) = (digest, vector, vectorSegment)
        (self.base, self.tail, self.removed) = (base, tail, removed)
    }

    /// The names of the segments that the part needs.
    package var segmentNames: [Bits128] { base.names + (vectorSegment == .zero ? [] : [vectorSegment]) }

    /// The state, given the entries of the base.
    package func state(over base: [Key: Entry]) -> StoreState {
        var entries = base
        for key in removed { entries[key] = nil }
        entries.merge(tail) { $1 }
        return StoreState(entries: entries, vector: vector)
    }

    /// Whether all devices prefer this way of cutting a state to another, so that they come to share segments.
    package func isPreferable(to other: StatePart) -> Bool {
        if tail.count != other.tail.count { return tail.count < other.tail.count }
        let (mine, others) = (segmentNames, other.segmentNames)
        return mine != others && mine.lexicographicallyPrecedes(others)
    }
}
