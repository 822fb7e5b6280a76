// SPDX-License-Identifier: Apache-2.0

/// The device that sync cycles are made for: what it holds, and what a cycle does to that. What it has done is committed
/// when it returns.
package protocol SyncDevice: AnyObject {
    /// What it holds of a store.
    associatedtype Replica: Joinable

    /// The cycles of its account.
    var cycle: SyncCycle { get set }
    /// What a cycle's decisions depend on. They must not depend on ``cycle``, which asks for them.
    var facts: SyncCycle.Facts { get }
    /// Under which it writes.
    var origin: Origin { get }
    /// The milliseconds since 1970 of which it would have heard of each removal.
    var rememberedTimes: Range<UInt64> { get }

    /// Goes on under another origin, if one of these is, or was, its own: another device writes under them.
    /// - Returns: whether one is.
    func leave(_ shared: Set<Origin>) throws -> Bool
    /// What it holds of a store, and whether the account's values are still to arrive there; `nil` if it takes no part in
    /// the sync.
    func replica(of store: String) throws -> (Replica, isArriving: Bool)?
    /// Does what a join decided, and tells of it.
    /// - Returns: `false` if the store would be too large.
    func carryOut(_ plan: JoinPlan, in replica: Replica, of store: String, isArriving: Bool) throws -> Bool
}

extension SyncDevice {
    /// Joins what is new of a store.
    package func join(_ change: RemoteChange, to store: String) throws -> SyncCycle.Joining {
        guard let (former, isArriving) = try replica(of: store) else { return .unchanged }
        // What is written after the arrival is ordinary, and must know all that the account has.
        if isArriving, !change.isComplete || change.isDelta { return .notWhole }
        let hasLeft = try leaveSharedOrigins(former, change, isArriving: isArriving)
        let here = hasLeft ? try replica(of: store)?.0 ?? former : former
        let plan = Join.plan(
            here, taking: change.states.state(over: here), isFirstDownload: isArriving, isDelta: change.isDelta)
        if !isArriving, plan.changesNothing(in: here.vector) { return .unchanged }
        return try carryOut(plan, in: here, of: store, isArriving: isArriving) ? .changed : .tooLarge
    }

    /// Takes another origin before anything is joined that was said of another device's writes under one of this
    /// device's.
    private func leaveSharedOrigins(_ here: Replica, _ change: RemoteChange, isArriving: Bool) throws -> Bool {
        guard Rule.leaveClones.isOn else { return false }
        var shared = Join.sharedOrigins(
            origin, here, in: change.states.state, writtenIn: isArriving ? 0..<0 : rememberedTimes,
            isDelta: change.isDelta)
        if isArriving { shared.formUnion(Join.sharedOrigins(ofDefaults: here, in: change.states.state)) }
        guard !shared.isEmpty, try leave(shared) else { return false }
        cycle.noteLeftOrigin()
        return true
    }
}
