// SPDX-License-Identifier: Apache-2.0

// The rule of sync for more than two states: an entry lives if every state that has seen it holds it, and of those
// under one key that live the greatest one stays.

internal import PropertyList

/// States that are new together, joined with each other and not yet with the one here.
///
/// Joined one after the other, states can take an entry away that none of them removed: it gives way to a greater one,
/// of which a state that comes later knows that it was removed long ago. So what gave way is kept until all are joined.
public struct JoinedStates: Equatable, Sendable {
    /// The states, joined.
    public private(set) var state: StoreState
    /// Under each key what gave way to the entry there, and lives as well.
    private var others: [Key: [Entry]] = [:]

    /// One state; without any, that of a store that was never written to.
    public init(_ state: StoreState = StoreState()) { self.state = state }

    /// Takes in another state.
    public mutating func join(_ other: StoreState) {
        // The first one is taken as it is: most stores have no other.
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

    /// The joined states for who has the state `here`: without what was seen there and is gone, so that this takes
    /// nothing else along.
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
            // What is gone with nothing in its place the join itself removes.
            guard let greatest = living.popLast() else { continue }
            state.entries[key] = greatest
            if !living.isEmpty { others[key] = living }
        }
    }
}

extension Joinable {
    /// Whether a write was seen and is not there any more.
    fileprivate func isGone(_ dot: Dot, under key: Key) -> Bool {
        vector.contains(dot) && version(of: key)?.dot != dot
    }
}
