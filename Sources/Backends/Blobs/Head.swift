// SPDX-License-Identifier: Apache-2.0

// A head is what one device publishes: of each store the state that it holds, in one blob that it replaces as a
// whole. Nobody else writes it, so nothing has to be locked, compared or retried; readers join the heads of all.
//
// Of a store a head has a part: the segments that hold the base, and what has changed since, the tail, with which
// a small change costs a small head. The part's digest is that of the whole state, however it is cut: who has
// joined a state with that digest need not read it again, wherever it turns up.
//
// All parts together may be long, and few of them change from one head to the next. So a head names an index, a
// segment with the parts of all stores as they once were, and has itself only what is another way now (WrittenHead).
//
// The last 32 bytes are the sum of all others; a head that was torn, cut or mixed with another is no head. A head
// never has the length of the one before it, because there are servers that take two versions of one length and
// one second for the same.
//
// docs/remote-format.md has the bytes.

internal import PropertyList
internal import Replication

/// One device's publication.
struct Head: Equatable, Sendable {
    /// The account as the writer knew it; another identifier of the same account may have turned up since.
    var account: Bits128
    /// Under which the writer writes.
    var origin: Origin
    /// Which of the writer's publications it is.
    var sequence: UInt64
    /// When it was written, in microseconds since 1970 by the writer's clock; for people.
    var time: UInt64
    /// What the writer calls itself.
    var device: RemoteDevice
    /// The index that the parts were written over; zero for none.
    var index = Bits128.zero
    /// What it holds, by the stores' identifiers.
    var parts: [String: Part]

    /// No head is longer.
    static let limit = 4 << 20
    /// The stores that it may name; twice as many as a user may have.
    static let mostStores = 1 << 15

    /// About how many bytes it takes in memory.
    var footprint: Int {
        parts.reduce(0) { sum, part in
            let (name, part) = part
            let entries = part.tail.reduce(0) { $0 + 160 + $1.key.string.utf8.count + ($1.value.value?.count ?? 0) }
            return sum + 256 + name.utf8.count + entries + part.vector.dots.count * 16 + part.base.count * 48
                + part.removed.count * 64
        }
    }

    /// The names of everything that has to be there.
    var segmentNames: Set<Bits128> {
        var names = Set(parts.values.flatMap(\.segmentNames))
        if index != .zero { names.insert(index) }
        return names
    }

    /// Its states, by the stores' identifiers.
    var states: [String: HeadState] {
        parts.mapValues { HeadState(digest: $0.digest, vector: $0.vector) }
    }

    /// Whether everything that another head has seen was taken in here.
    func dominates(_ other: Head) -> Bool { states.dominate(other.states) }

    /// One store's state.
    typealias Part = StatePart
}
