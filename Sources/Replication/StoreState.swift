// SPDX-License-Identifier: Apache-2.0

public import PropertyList

/// One key's part of a store's state: who wrote it when, and what.
public struct Entry: Equatable, Sendable {
    /// Decides against a write that did not know of this one, and says who wrote.
    public let stamp: Stamp
    /// Which of its origin's writes in this store it is.
    public let n: UInt64
    /// The value in its canonical encoding, as it came; `nil` is a tombstone.
    ///
    /// It may break the rules of values: such an entry is passed on, and never shown.
    public let value: [UInt8]?

    /// An entry of its parts.
    public init(stamp: Stamp, n: UInt64, value: [UInt8]?) {
        self.stamp = stamp
        self.n = n
        self.value = value
    }

    /// Names this write.
    public var dot: Dot { Dot(origin: stamp.origin, n: n) }
}

/// A store's state as devices exchange it: an element of a join-semilattice.
public struct StoreState: Equatable, Sendable {
    /// The entries, with tombstones and entries that are never shown.
    public var entries: [Key: Entry]
    /// What the state has taken in.
    public var vector: VersionVector

    /// A state of its parts; without any, that of a store that was never written to.
    public init(entries: [Key: Entry] = [:], vector: VersionVector = VersionVector()) {
        self.entries = entries
        self.vector = vector
    }
}

/// What a join does to a replica, as the pure rule decided it.
public struct JoinPlan: Equatable, Sendable {
    /// Entries that come in, in place of what is there.
    public var taken: [Key: Entry]
    /// Keys whose entry goes: the other side has seen it and no longer holds it.
    public var dropped: [Key]
    /// Keys of which the entries on both sides live, neither of which knew of the other: the greater one is there now.
    public var contested: [Key] = []
    /// The version vector afterwards.
    public var vector: VersionVector

    /// A plan of its parts.
    public init(taken: [Key: Entry] = [:], dropped: [Key] = [], vector: VersionVector) {
        self.taken = taken
        self.dropped = dropped
        self.vector = vector
    }
}
