// SPDX-License-Identifier: Apache-2.0

// The join of more than two states: an entry lives if every state that has seen it holds it, and of the living entries
// of a key the greatest wins.

internal import PropertyList

/// States that are new together, joined with each other and not yet with this device's.
///
/// Joining them one after the other can lose an entry that nobody removed: the entry loses to a greater one, and then a
/// later state knows that the greater one was removed long ago. So this keeps entries that have lost until all states
/// are joined (docs/decisions/0020).
public struct JoinedStates: Equatable, Sendable {
    /// The joined state.
    public private(set) var state: StoreState
    /// For each key, the other living entries, which lost to the one in ``state``.
    private var others: [Key: [Entry]] = [:]

    /// Begins with one state; by default that of a store that was never written to.
    public init(_ state: StoreState = StoreState()) { self.state = state }

    /// Joins another state.
    public mutating func join(_ other: StoreState) {
        // Take the first state as it is: most stores have no other.
        if state == StoreState() {
            state = other
            return
        }
        leaveOut(goneIn: other)
        let plan = Join.plan(state, taking: other)
        for key in plan.contested where Rule.allAtOnce.isOn {
            let lost = plan.taken[key] == nil ? other.entries[key] : state.entries[key]
            if let lost { others[key, default: []].append(lost) }
        }
        state.carryOut(plan)
    }

    /// The joined state, to be joined with `here`: for each key the greatest entry that `here` has not seen go.
    public func state(over here: some Joinable) -> StoreState {
        if others.isEmpty { return state }
        var joined = self
        joined.leaveOut(goneIn: here)
        return joined.state
    }

    private mutating func leaveOut(goneIn other: some Joinable) {
        for (key, entries) in others {
            var living = (entries + (state.entries[key].map { [$0] } ?? []))
                .filter { !other.isGone($0.dot, under: key) }
                .sorted { $0.precedes($1) }
            others[key] = nil
            // If nothing is left for the key, the join itself removes the entry.
            guard let greatest = living.popLast() else { continue }
            state.entries[key] = greatest
            if !living.isEmpty { others[key] = living }
        }
    }
}

extension Joinable {
    /// Whether this state has seen a write and no longer holds it.
    fileprivate func isGone(_ dot: Dot, under key: Key) -> Bool {
        vector.contains(dot) && version(of: key)?.dot != dot
    }
}
