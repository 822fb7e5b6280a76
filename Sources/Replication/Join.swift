// SPDX-License-Identifier: Apache-2.0

// The join of two states; docs/remote-format.md specifies it under "The join".
//
// A state is a map of entries and a version vector, the dots it has taken in. Causality decides first: an entry that a
// version vector covers and its state no longer holds is gone. Of concurrent writes the greater stamp wins. Joining a
// state twice, late or in any order does no harm.

public import PropertyList

/// A store's state on this device, as a join needs it.
public protocol Joinable {
    /// The dots that the state has taken in.
    var vector: VersionVector { get }
    /// The keys that have an entry.
    var keys: [Key] { get }
    /// The entry under a key, without its value.
    func version(of key: Key) -> EntryVersion?
    /// The entry under a key.
    func entry(for key: Key) -> Entry?
    /// Whether this device wrote the entry before the account's values had arrived.
    func isProvisionalHere(_ key: Key) -> Bool
}

/// An entry without its value, which nearly every decision can do without.
public struct EntryVersion: Equatable, Sendable {
    /// The write's stamp, which decides between concurrent writes.
    public let stamp: Stamp
    /// The number of the write among its origin's, from 1.
    public let n: UInt64
    /// The write's dot.
    public var dot: Dot { Dot(origin: stamp.origin, n: n) }

    /// Makes a version from its parts.
    public init(stamp: Stamp, n: UInt64) {
        self.stamp = stamp
        self.n = n
    }
}

/// Joins a state from elsewhere into this device's.
public enum Join {
    /// What the join does with a key.
    public enum Outcome: Equatable, Sendable {
        /// Keep the entry here, or none.
        case keep
        /// Take the entry from there.
        case take
        /// Drop the entry, leaving none.
        case drop
        /// Compare the values: one dot names two values, or one stamp two dots, because two devices wrote under one
        /// origin. Every device chooses the greater value.
        case compareValues
    }

    /// Decides about one key.
    /// - Parameters:
    ///   - here: the entry on this device, if any.
    ///   - there: the entry in the other state, if any.
    ///   - isSeenHere: whether this device's version vector covers the entry there.
    ///   - isSeenThere: whether the other state's version vector covers the entry here.
    public static func outcome(
        here: EntryVersion?, there: EntryVersion?, isSeenHere: Bool, isSeenThere: Bool
    ) -> Outcome {
        switch (here, there) {
        case (nil, nil):
            return .keep
        case (.some, nil):
            // The other state has seen it and no longer holds it, or has never seen it.
            return isSeenThere ? .drop : .keep
        case (nil, .some):
            // This device has seen it and no longer holds it, or it is new.
            return isSeenHere ? .keep : .take
        case (let here?, let there?) where here.dot == there.dot:
            return .compareValues
        case (let here?, let there?):
            if !Rule.causalityFirst.isOn { return here.stamp < there.stamp ? .take : .keep }
            switch (isSeenThere, isSeenHere) {
            case (true, false): return .take  // the writer there knew the entry here
            case (false, true): return .keep  // the writer here knew the entry there
            case (true, true): return .drop  // each side has seen the other's entry go
            case (false, false):
                if here.stamp == there.stamp { return .compareValues }
                return here.stamp < there.stamp ? .take : .keep
            }
        }
    }

    /// Decides how to join a complete state from elsewhere.
    /// - Parameters:
    ///   - isFirstDownload: whether the account's values arrive for the first time. Then an entry of the account,
    ///     tombstones included, wins over what this device wrote before, whatever the stamps say.
    ///   - isDelta: whether `there` holds only what has changed since all of it was joined here. Then a missing key
    ///     means nothing.
    public static func plan(
        _ here: some Joinable, taking there: StoreState, isFirstDownload: Bool = false, isDelta: Bool = false
    ) -> JoinPlan {
        var plan = JoinPlan(vector: here.vector)
        plan.vector.formUnion(there.vector)
        for (key, entry) in there.entries {
            let version = here.version(of: key)
            if isFirstDownload, Rule.provisional.isOn, version != nil, here.isProvisionalHere(key) {
                plan.taken[key] = entry
                continue
            }
            // Most entries are the same on both sides; skip the vectors for these.
            let asks = Rule.vectors.isOn && version?.dot != entry.dot
            let isSeenHere = asks && here.vector.contains(entry.dot)
            let isSeenThere = asks && version.map { there.vector.contains($0.dot) } ?? false
            if asks, version != nil, !isSeenHere, !isSeenThere { plan.contested.append(key) }
            switch outcome(
                here: version, there: entry.version, isSeenHere: isSeenHere, isSeenThere: isSeenThere)
            {
            case .keep: break
            case .take: plan.taken[key] = entry
            case .drop: plan.dropped.append(key)
            case .compareValues:
                if let mine = here.entry(for: key), mine.precedes(entry) { plan.taken[key] = entry }
            }
        }
        if isDelta { return plan }
        for key in here.keys where there.entries[key] == nil && Rule.vectors.isOn {
            if let version = here.version(of: key), there.vector.contains(version.dot) { plan.dropped.append(key) }
        }
        return plan
    }
}

extension JoinPlan {
    /// Whether the plan changes nothing in a state with this version vector.
    public func changesNothing(in vector: VersionVector) -> Bool {
        taken.isEmpty && dropped.isEmpty && self.vector == vector
    }
}

extension Entry {
    /// The entry without its value.
    public var version: EntryVersion { EntryVersion(stamp: stamp, n: n) }

    /// An order of entries by the stamp, then tombstones first, then the value's bytes, then n.
    func precedes(_ other: Entry) -> Bool {
        if stamp != other.stamp { return stamp < other.stamp }
        guard let mine = value else { return other.value != nil || n < other.n }
        guard let theirs = other.value else { return false }
        if mine != theirs { return mine.lexicographicallyPrecedes(theirs) }
        return n < other.n
    }
}

extension StoreState: Joinable {
    /// The keys that have an entry.
    public var keys: [Key] { Array(entries.keys) }
    /// The entry under a key, without its value.
    public func version(of key: Key) -> EntryVersion? { entries[key]?.version }
    /// The entry under a key.
    public func entry(for key: Key) -> Entry? { entries[key] }
    /// False: only a device's own copy records that.
    public func isProvisionalHere(_ key: Key) -> Bool { false }

    /// Joins another state, or with `isDelta` what has changed in it since it was joined.
    public mutating func join(_ other: StoreState, isDelta: Bool = false) {
        carryOut(Join.plan(self, taking: other, isDelta: isDelta))
    }

    /// Carries out a plan.
    package mutating func carryOut(_ plan: JoinPlan) {
        for (key, entry) in plan.taken { entries[key] = entry }
        for key in plan.dropped { entries[key] = nil }
        vector = plan.vector
    }
}
