// SPDX-License-Identifier: Apache-2.0

/// The device for which sync cycles run: what it holds, and what a cycle changes. When a method returns, its changes
/// are committed.
package protocol SyncDevice: AnyObject {
    /// The device's copy of a store.
    associatedtype Replica: Joinable

    /// The cycles of the device's account.
    var cycle: SyncCycle { get set }
    /// The facts that a cycle's decisions depend on. They must not depend on ``cycle``, which reads them.
    var facts: SyncCycle.Facts { get }
    /// The origin under which the device writes.
    var origin: Origin { get }
    /// The times, in milliseconds since 1970, of writes whose removal this device would know of.
    var rememberedTimes: Range<UInt64> { get }

    /// Continues under another origin, if one of these, under which another device writes, is or was the device's own.
    /// - Returns: whether one is or was.
    func leave(_ shared: Set<Origin>) throws -> Bool
    /// The copy of a store, and whether the account's values have yet to arrive in it; `nil` if the store isn't synced.
    func replica(of store: String) throws -> (Replica, isArriving: Bool)?
    /// Carries out a join's plan, and signals the changes.
    /// - Returns: false if the store would be too large; then nothing has changed.
    func carryOut(_ plan: JoinPlan, in replica: Replica, of store: String, isArriving: Bool) throws -> Bool
}

extension SyncDevice {
    /// Joins what is new of a store.
    package func join(_ change: RemoteChange, to store: String) throws -> SyncCycle.Joining {
        guard let (former, isArriving) = try replica(of: store) else { return .unchanged }
        // Writes after the arrival are ordinary, so they must know everything that the account has.
        if isArriving, !change.isComplete && !cycle.acceptsGaps || change.isDelta { return .notWhole }
        let hasLeft = try leaveSharedOrigins(former, change, isArriving: isArriving)
        let here = hasLeft ? try replica(of: store)?.0 ?? former : former
        let plan = Join.plan(
            here, taking: change.states.state(over: here), isFirstDownload: isArriving, isDelta: change.isDelta)
        if !isArriving, plan.changesNothing(in: here.vector) { return .unchanged }
        return try carryOut(plan, in: here, of: store, isArriving: isArriving) ? .changed : .tooLarge
    }

    /// Takes another origin if the change reveals that another device writes under one of this device's origins. This
    /// must happen before the change is joined.
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
