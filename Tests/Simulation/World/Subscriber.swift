// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication
internal import StoreEngine
internal import SyncEngine

/// An app that believes its signals. The values that it derives from them must be the store's, and it must be told
/// every change.
final class Subscriber {
    private let store: Store
    private let account: () -> String
    private let ledger: () -> Ledger
    private let report: (String) -> Void
    private let excuse: () -> Void
    private var shown: [Key: Value]
    private var generation: UInt64
    private var standing: Standing
    /// Whether it was told that the store is over its limits; `nil` if a new account's store already was.
    private var knowsOfOverflow: Bool?

    /// Which values a store shows.
    private struct Standing {
        let account: String
        let hasArrived: Bool
        /// Whether they are the previous account's, because this one's have not arrived.
        let hasPreviousValues: Bool
    }

    /// - Parameters:
    ///   - account: the identifier of the device's account.
    ///   - ledger: all writes until now.
    ///   - report: called with a sentence for each broken rule.
    ///   - excuse: called when a key goes back to an older value for a reason that no rule can prevent.
    init(
        _ store: Store, account: @escaping () -> String, ledger: @escaping () -> Ledger,
        report: @escaping (String) -> Void, excuse: @escaping () -> Void = {}
    ) {
        self.excuse = excuse
        (self.store, self.account, self.ledger) = (store, account, ledger)
        self.report = { report("\(store.identifier): \($0)") }
        shown = store.values
        generation = store.generation
        standing = Standing(
            account: account(), hasArrived: store.isDownloaded, hasPreviousValues: store.hasPreviousValues)
        knowsOfOverflow = store.isOverQuota ? nil : false
    }

    /// Takes in a write of the app itself.
    func refresh() {
        shown = store.values
        generation = store.generation
        if !store.isOverQuota { knowsOfOverflow = false }
    }

    /// Takes in a change of the account, or of whether the store is synced.
    func noteAccount() {
        standing = Standing(
            account: account(), hasArrived: store.isDownloaded, hasPreviousValues: store.hasPreviousValues)
        knowsOfOverflow = store.isOverQuota ? nil : false
    }

    func hear(_ notice: StoreNotice) {
        if notice.reason == .quotaViolationChange { return hearOfOverflow(notice.keys) }
        if store.generation < generation { report("I14: a generation went back") }
        if store.generation == generation, !notice.keys.isEmpty { report("I14: keys changed without a generation") }
        check(notice.reason)
        let (isOtherAccount, knew) = (account() != standing.account, knowsOfOverflow)
        noteAccount()
        // If a join takes the store over its limits, the signal comes next.
        if !isOtherAccount { knowsOfOverflow = store.isOverQuota ? knew : false }
        generation = store.generation
        for key in notice.keys { change(key) }
    }

    /// Checks that the reason fits what has happened.
    private func check(_ reason: StoreNotice.Reason) {
        switch reason {
        case .initialSyncChange:
            if standing.hasArrived { report("I14: the account's values arrived twice") }
            if standing.hasPreviousValues { report("I14: another account's values arrived, told as a first one's") }
            if !store.isDownloaded { report("I14: told of an arrival that was none") }
        case .serverChange:
            if !store.isDownloaded { report("I14: a change before the first download") }
            if !standing.hasArrived { report("I14: a change that is the arrival of the account's values") }
        case .accountChange:
            if standing.hasArrived, !standing.hasPreviousValues, account() == standing.account {
                report("I14: told of another account, which is the same")
            }
        case .localChange: report("I14: told of a write of this device")
        case .managedChange: report("I14: a store is told of managed settings")
        case .quotaViolationChange: break
        }
    }

    private func hearOfOverflow(_ keys: [Key]) {
        if keys != store.overflow || keys.isEmpty { report("I13: told of other keys than those that do not fit") }
        if knowsOfOverflow == true { report("I13: told twice of what does not fit") }
        knowsOfOverflow = true
    }

    private func change(_ key: Key) {
        let new = store.value(for: key)
        if shown[key] == new { return report("I14: told of \(key), which has not changed") }
        if let old = shown[key], let new { checkMonotonic(key, old, new) }
        shown[key] = new
    }

    /// Checks that the key does not go back to a value that the writer of its present value had seen.
    private func checkMonotonic(_ key: Key, _ old: Value, _ new: Value) {
        let ledger = ledger()
        guard let old = Names.number(of: old), let new = Names.number(of: new), let cell = ledger.cell(of: old),
            cell == ledger.cell(of: new), let former = ledger.write(old, in: cell),
            let later = ledger.write(new, in: cell)
        else { return }
        // A dot alone may be a clone's as well, but a write that was seen has a lesser stamp.
        let isSeen = former.known.contains(later.dot) && later.stamp < former.stamp
        guard !former.isProvisional, !later.isProvisional, isSeen, former.dot != later.dot else { return }
        // Whoever joins another state that covers the dot takes its write for one that was replaced.
        if ledger.sharesDot(former, in: cell) { return excuse() }
        report("I6: \(key) went back from \(old) to \(new)")
    }

    /// Checks that nothing was left untold.
    func verify() {
        if account() != standing.account { noteAccount() }
        if store.isDownloaded, !standing.hasArrived {
            report("I14: the account's values have arrived and nobody was told")
            noteAccount()
        }
        if store.isOverQuota, knowsOfOverflow == false {
            report("I13: the store is over its limits and nobody was told")
        }
        knowsOfOverflow = store.isOverQuota
        if store.values == shown { return }
        let keys = Set(shown.keys).union(store.values.keys).filter { shown[$0] != store.values[$0] }.sorted()
        report("I14: \(keys) changed and nobody was told")
        shown = store.values
    }
}
