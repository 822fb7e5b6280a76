// SPDX-License-Identifier: Apache-2.0

// The rule of sync. Everything else moves states to where this can be applied to them.
//
// A state is a map of entries and a version vector, the dots it has taken in. Causality decides first: what a version vector
// has seen, and its state no longer holds, is gone. Between writes that did not know of each other the greater
// stamp decides. Joining a state twice, late or in any order is harmless.

public import PropertyList

/// What can be joined with a state that came from elsewhere.
public protocol Joinable {
    /// The dots that were taken in.
    var vector: VersionVector { get }
    /// The keys that have an entry.
    var keys: [Key] { get }
    /// The entry under a key, without its value.
    func version(of key: Key) -> EntryVersion?
    /// The entry under a key.
    func entry(for key: Key) -> Entry?
    /// Whether the entry was written here before the account's values had arrived.
    func isProvisionalHere(_ key: Key) -> Bool
}

/// An entry without its value: what nearly every decision is made on.
public struct EntryVersion: Equatable, Sendable {
    /// Decides between writes that did not know of each other.
    public let stamp: Stamp
    /// Which of its origin's writes it is.
    public let n: UInt64
    /// Names the write.
    public var dot: Dot { Dot(origin: stamp.origin, n: n) }

    /// A version of its parts.
    public init(stamp: Stamp, n: UInt64) {
        self.stamp = stamp
        self.n = n
    }
}

/// How a device's state takes in another one.
public enum Join {
    /// What becomes of a key.
    public enum Outcome: Equatable, Sendable {
        /// It stays as it is here.
        case keep
        /// It becomes what it is there.
        case take
        /// It has no entry any more.
        case drop
        /// One dot names two values, or one stamp two dots: a device wrote under another's origin.
        /// The greater value decides, the same one on every device.
        case compareValues
    }

    /// Decides about one key.
    /// - Parameters:
    ///   - here, there: the entries.
    ///   - isSeenHere: the version vector here has the dot of the entry there.
    ///   - isSeenThere: the version vector there has the dot of the entry here.
    public static func outcome(
        here: EntryVersion?, there: EntryVersion?, isSeenHere: Bool, isSeenThere: Bool
    ) -> Outcome {
        switch (here, there) {
        case (nil, nil):
            return .keep
        case (.some, nil):
            // They have seen it and no longer hold it; or they never saw it, and it lives.
            return isSeenThere ? .drop : .keep
        case (nil, .some):
            // We have seen it and no longer hold it; or it is new.
            return isSeenHere ? .keep : .take
        case (let here?, let there?) where here.dot == there.dot:
            return .compareValues
        case (let here?, let there?):
            if !Rule.causalityFirst.isOn { return here.stamp < there.stamp ? .take : .keep }
            switch (isSeenThere, isSeenHere) {
            case (true, false): return .take  // theirs was written in knowledge of ours
            case (false, true): return .keep  // ours was written in knowledge of theirs
            case (true, true): return .drop  // each has seen and replaced the other's
            case (false, false):
                if here.stamp == there.stamp { return .compareValues }
                return here.stamp < there.stamp ? .take : .keep
            }
        }
    }

    /// Decides what a complete state that came from elsewhere does to the one here.
    /// - Parameters:
    ///   - isFirstDownload: the account's values arrive for the first time: what was written here
    ///     before gives way wherever the account has the key, or has deleted it, whatever the stamps say.
    ///   - isDelta: of the state only what has changed is there, since all of it was joined here: that a key is
    ///     missing says nothing.
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
            // Most entries are the same on both sides, and need no look at the vectors.
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
    /// Whether it would leave a state with this version vector as it is.
    public func changesNothing(in vector: VersionVector) -> Bool {
        taken.isEmpty && dropped.isEmpty && self.vector == vector
    }
}

extension Entry {
    /// The entry without its value.
    public var version: EntryVersion { EntryVersion(stamp: stamp, n: n) }

    /// An order among entries that nothing else tells apart: tombstones first, then by the value's bytes.
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
    /// Never: that is known of a device's own copy, and not of a state.
    public func isProvisionalHere(_ key: Key) -> Bool { false }

    /// Takes in another state, or what has changed in it since it was taken in.
    public mutating func join(_ other: StoreState, isDelta: Bool = false) {
        carryOut(Join.plan(self, taking: other, isDelta: isDelta))
    }

    /// Does what a join decided.
    package mutating func carryOut(_ plan: JoinPlan) {
        for (key, entry) in plan.taken { entries[key] = entry }
        for key in plan.dropped { entries[key] = nil }
        vector = plan.vector
    }
}
