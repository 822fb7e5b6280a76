// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import StoreEngine
internal import SyncEngine

/// An app that believes what it is told: what it takes a store to hold has to be what the store holds.
final class Subscriber {
    private let store: Store
    private let ledger: () -> Ledger
    private let report: (String) -> Void
    private var shown: [Key: Value]
    private var generation: UInt64
    private var hasArrived: Bool

    /// - Parameters:
    ///   - ledger: who wrote what until now.
    ///   - report: takes a sentence for each rule that is seen broken.
    init(_ store: Store, ledger: @escaping () -> Ledger, report: @escaping (String) -> Void) {
        (self.store, self.ledger) = (store, ledger)
        self.report = { report("\(store.identifier): \($0)") }
        shown = store.values
        generation = store.generation
        hasArrived = store.isDownloaded
    }

    /// The app has written something itself.
    func refresh() {
        shown = store.values
        generation = store.generation
    }

    /// The account is another one, or none.
    func noteAccount() { hasArrived = store.isDownloaded }

    func hear(_ notice: StoreNotice) {
        if notice.reason == .quotaViolationChange {
            if notice.keys != store.overflow { report("I13: told of other keys than those that do not fit") }
            return
        }
        if store.generation < generation { report("I14: a generation went back") }
        if store.generation == generation, !notice.keys.isEmpty { report("I14: keys changed without a generation") }
        if notice.reason == .initialSyncChange {
            if hasArrived { report("I14: the account's values arrived twice") }
            hasArrived = true
        }
        if notice.reason == .accountChange { noteAccount() }
        if notice.reason == .serverChange, !store.isDownloaded { report("I14: a change before the first download") }
        generation = store.generation
        for key in notice.keys { change(key) }
    }

    private func change(_ key: Key) {
        let new = store.value(for: key)
        if shown[key] == new { return report("I14: told of \(key), which has not changed") }
        if let old = shown[key], let new { checkMonotonic(key, old, new) }
        shown[key] = new
    }

    /// Never back to what the writer of the present value had seen.
    private func checkMonotonic(_ key: Key, _ old: Value, _ new: Value) {
        let ledger = ledger()
        guard case .integer(let old) = old, case .integer(let new) = new, let cell = ledger.cell(of: old),
            cell == ledger.cell(of: new), let former = ledger.write(old, in: cell),
            let later = ledger.write(new, in: cell)
        else { return }
        // A dot alone may be a twin's as well; but what was seen has a lesser stamp.
        let isSeen = former.known.contains(later.dot) && later.stamp < former.stamp
        if !former.isProvisional, !later.isProvisional, isSeen, former.dot != later.dot {
            report("I6: \(key) went back from \(old) to \(new)")
        }
    }

    func verify() {
        if store.values == shown { return }
        let keys = Set(shown.keys).union(store.values.keys).filter { shown[$0] != store.values[$0] }.sorted()
        report("I14: \(keys) changed and nobody was told")
        shown = store.values
    }
}
