// SPDX-License-Identifier: Apache-2.0

// A head is what one device publishes: its state of each store, in one blob that it replaces as a whole. No other
// device writes it, so nothing has to be locked, compared or retried. Readers join the heads of all devices.
//
// A head has a part for each store: the names of the segments that hold the base, and the tail, which has the changes
// since. So a small change costs a small head. The part's digest is that of the whole state, however it is cut: a
// device that has joined a state with that digest need not read it again in another head.
//
// All parts together may be long, and few of them change from one head to the next. So a head names an index, which is
// a segment with earlier parts of all stores, and contains only what has changed since (WrittenHead).
//
// The last 32 bytes are the SHA-256 of all others, so readers notice a head that was torn, truncated or mixed with
// another. A head never has the length of the one before it, because some servers take two versions of the same length
// and second for the same.
//
// docs/remote-format.md specifies the bytes.

internal import BackendSupport
internal import PropertyList
internal import Replication

/// One device's publication.
struct Head: Equatable, Sendable {
    /// The account's identifier, as the writer knew it. The account may have gained others since.
    var account: Bits128
    /// The writer's origin.
    var origin: Origin
    /// The number of the publication among the writer's.
    var sequence: UInt64
    /// When it was written, in microseconds since 1970 by the writer's clock. Other devices only display it.
    var time: UInt64
    /// The device that wrote it.
    var device: RemoteDevice
    /// The name of the index over which the parts were written; zero if there is none.
    var index = Bits128.zero
    /// The parts, by the stores' identifiers.
    var parts: [String: Part]

    /// The maximum length, in bytes.
    static let limit = 4 << 20
    /// The maximum number of stores in a head: twice as many as a user may have.
    static let mostStores = 1 << 15

    /// The names of all segments that the head needs.
    var segmentNames: Set<Bits128> {
        var names = Set(parts.values.flatMap(\.segmentNames))
        if index != .zero { names.insert(index) }
        return names
    }

    /// The states, by the stores' identifiers.
    var states: [String: HeadState] {
        parts.mapValues { HeadState(digest: $0.digest, vector: $0.vector) }
    }

    /// Whether this head covers everything that another head has seen.
    func dominates(_ other: Head) -> Bool { states.dominate(other.states) }

    /// One store's state.
    typealias Part = StatePart
}

extension [String: Head.Part] {
    /// The approximate size in memory, in bytes.
    var footprint: Int {
        reduce(0) { sum, part in
            let (name, part) = part
            return sum + 256 + name.utf8.count + part.tail.footprint + part.vector.dots.count * 16
                + part.base.count * 48 + part.removed.count * 64
        }
    }
}

extension [Key: Entry] {
    /// The approximate size in memory, in bytes.
    var footprint: Int {
        reduce(0) { $0 + EntryLimits.memory + $1.key.string.utf8.count + ($1.value.value?.count ?? 0) }
    }
}
