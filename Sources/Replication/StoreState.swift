// SPDX-License-Identifier: Apache-2.0

public import PropertyList

/// A key's value or tombstone, with its stamp and its dot.
public struct Entry: Equatable, Sendable {
    /// The write's stamp, which decides between concurrent writes.
    public let stamp: Stamp
    /// The number of the write among its origin's in this store, from 1.
    public let n: UInt64
    /// The value's bytes as they were received, normally its canonical encoding; `nil` is a tombstone.
    ///
    /// Bytes that break the rules for values are joined and passed on, but never shown.
    public let value: [UInt8]?

    /// Makes an entry from its parts.
    public init(stamp: Stamp, n: UInt64, value: [UInt8]?) {
        self.stamp = stamp
        self.n = n
        self.value = value
    }

    /// The write's dot.
    public var dot: Dot { Dot(origin: stamp.origin, n: n) }
}

/// A store's state, as devices exchange it.
public struct StoreState: Equatable, Sendable {
    /// The entries, including tombstones and entries that are never shown.
    public var entries: [Key: Entry]
    /// The dots that the state has taken in.
    public var vector: VersionVector

    /// Makes a state from its parts; by default that of a store that was never written to.
    public init(entries: [Key: Entry] = [:], vector: VersionVector = VersionVector()) {
        self.entries = entries
        self.vector = vector
    }
}

/// What a join is to change in a replica.
public struct JoinPlan: Equatable, Sendable {
    /// Entries to put in place of those here.
    public var taken: [Key: Entry]
    /// Keys whose entry to drop: the other side has seen it and no longer holds it.
    public var dropped: [Key]
    /// Keys with concurrent entries on both sides, of which the greater wins.
    public var contested: [Key] = []
    /// The version vector after the join.
    public var vector: VersionVector

    /// Makes a plan from its parts.
    public init(taken: [Key: Entry] = [:], dropped: [Key] = [], vector: VersionVector) {
        self.taken = taken
        self.dropped = dropped
        self.vector = vector
    }
}
