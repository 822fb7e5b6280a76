// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication

/// The limits of an account. A simulation lowers them.
package struct EtcdLimits: Sendable {
    /// The most operations in a transaction of a publication. etcd's default limit is 128.
    let operations: Int
    /// The number of transactions that the account's row names.
    let tokens: Int
    /// The most bytes of values that an upload holds before it writes them.
    let heldBytes: Int
    /// The most stores of an account that are read: twice as many as a user may have.
    static let stores = 1 << 15
    /// The most devices whose names are remembered: more than any user has.
    static let devices = 4096

    package init(operations: Int = 120, tokens: Int = 128, heldBytes: Int = 8 << 20) {
        (self.operations, self.tokens, self.heldBytes) = (operations, tokens, heldBytes)
    }
}

/// Splits a publication into transactions, from a given state of the account on.
///
/// It only decides. For each store, entries come first, then version vectors, then removals. So a publication may be
/// interrupted between any two transactions: no version vector ever covers an entry that is not there yet.
struct EtcdPublishing {
    static let mostAttempts = 30

    let publication: Publication
    let number: UInt64
    var formerOrigins: [Origin] = []
    /// Whether these stores are the publication's last, so that the device's row follows.
    private let isLast: Bool
    private let snapshots: [String: StoreSnapshot]
    private let layout: EtcdLayout
    private let limits: EtcdLimits

    private(set) var position: EtcdPosition
    /// The stores of which this device has joined everything; `nil` if others may have written since.
    private var outlines: [String: EtcdOutline]?
    /// Other stores of which this device has everything, as reading them has shown.
    private var settled: Set<String> = []
    private var steps: [String: [Step]] = [:]
    private var queue: ArraySlice<Step> = []
    /// Whether everything is written, at last the device's row.
    private(set) var isDone = false

    /// One operation for a store.
    private struct Step {
        let store: String
        let operation: EtcdOperation
        /// Whether the operation deletes an entry's row.
        var removes = false
        /// The rows of the value's parts, which must exist when the operation is done.
        var parts: [(key: [UInt8], bytes: [UInt8])] = []
    }

    /// etcd's default limit for a request is 1.5 MiB.
    private static let mostBytes = 1_300_000

    init(
        _ publication: Publication, _ snapshots: [StoreSnapshot], isLast: Bool, number: UInt64, _ layout: EtcdLayout,
        _ limits: EtcdLimits = EtcdLimits()
    ) {
        (self.publication, self.number, self.layout) = (publication, number, layout)
        (self.isLast, self.limits) = (isLast, limits)
        self.snapshots = Dictionary(snapshots.map { ($0.identifier, $0) }) { $1 }
        position = EtcdPosition(EtcdAccount([.zero], token: 0), 0)
    }

    /// Begins, or begins again, from a position of the account.
    /// - Parameter outlines: the cluster's state of stores of which this device has joined everything.
    mutating func begin(at position: EtcdPosition, outlines: [String: EtcdOutline]? = nil) {
        (self.position, self.outlines) = (position, outlines)
        (settled, steps, queue) = ([], [:], [])
        for (store, snapshot) in snapshots {
            guard let outline = outlines?[store] else { continue }
            steps[store] = self.steps(store, joining: snapshot.state, to: outline)
        }
    }

    /// The stores whose state in the cluster has to be read first.
    var undecided: [String] { snapshots.keys.filter { steps[$0] == nil }.sorted() }

    /// Returns the steps for a store of which this device has joined everything. So whatever the device has that the
    /// cluster lacks is newer, and whatever only the cluster has was removed since.
    private func steps(_ store: String, joining state: StoreState, to outline: EtcdOutline) -> [Step] {
        let news = state.entries.filter { !outline.vector.contains($0.value.dot) }
        let gone = outline.keys.filter { state.entries[$0] == nil }
        return puts(news, store) + raises(outline.vector, to: state.vector, store) + removals(gone, store)
    }

    /// Decides on the steps for a store from its state in the cluster.
    mutating func take(_ there: StoreState, of store: String) {
        guard let state = snapshots[store]?.state else { return }
        let plan = Join.plan(there, taking: state)
        let news = Join.plan(state, taking: there)
        if news.taken.isEmpty, news.dropped.isEmpty { settled.insert(store) }
        steps[store] =
            puts(plan.taken, store) + raises(there.vector, to: plan.vector, store) + removals(plan.dropped, store)
    }

    private func removals(_ keys: some Sequence<Key>, _ store: String) -> [Step] {
        keys.sorted().map { Step(store: store, operation: .delete(layout.entry(store, $0)), removes: true) }
    }

    private func puts(_ entries: [Key: Entry], _ store: String) -> [Step] {
        entries.sorted { $0.key < $1.key }.map { key, entry in
            let row = EtcdEntry(entry)
            let parts = row.parts.enumerated().map { (layout.part(store, entry.dot, $0), $1) }
            return Step(store: store, operation: .put(layout.entry(store, key), row.encoded), parts: parts)
        }
    }

    private func raises(_ vector: VersionVector, to next: VersionVector, _ store: String) -> [Step] {
        next.subtracting(vector).dots.map {
            Step(store: store, operation: .put(layout.vector(store, $0.origin), Array(String($0.n).utf8)))
        }
    }

    /// Puts the steps of all stores in order.
    mutating func order() {
        queue = snapshots.keys.sorted().flatMap { steps[$0] ?? [] }[...]
        if !Rule.entriesFirst.isOn { queue.reverse() }
        isDone = queue.isEmpty && !isLast
    }

    /// The operations that write the parts of large values. They come before everything else.
    var parts: [EtcdOperation] { queue.flatMap(\.parts).map { .put($0.key, $0.bytes) } }

    // MARK: Transactions

    /// Returns the next transaction, the account's row after it, and the number of its steps.
    func next(
        token: UInt64, otherwise: [EtcdOperation]
    ) -> (transaction: EtcdTransaction, account: EtcdAccount, count: Int) {
        var account = position.account
        account.add(token, keeping: limits.tokens)
        var conditions = Rule.oneOrder.isOn ? [EtcdCondition.value(layout.account, is: position.row)] : []
        var operations = [EtcdOperation.put(layout.account, account.encoded)]
        let (steps, touches) = nextSteps
        operations += steps.map(\.operation) + touches
        conditions += steps.flatMap(\.parts).map { .exists($0.key) }
        if steps.count == queue.count { operations += ending }
        return (
            EtcdTransaction(conditions: conditions, operations: operations, otherwise: otherwise), account, steps.count
        )
    }

    /// As many steps as fit into a transaction, and the rows that mark their stores as changed.
    private var nextSteps: (steps: [Step], touches: [EtcdOperation]) {
        var (steps, touched, gone): ([Step], Set<String>, Set<String>) = ([], [], [])
        var bytes = 0
        for step in queue {
            bytes += step.operation.size
            touched.insert(step.store)
            if step.removes { gone.insert(step.store) }
            let count = steps.count + 1 + touched.count + gone.count + ending.count + step.parts.count
            if !steps.isEmpty, count > limits.operations || bytes > Self.mostBytes {
                touched.formIntersection(steps.map(\.store))
                gone.formIntersection(steps.filter(\.removes).map(\.store))
                break
            }
            steps.append(step)
        }
        let touches: [EtcdOperation] =
            touched.sorted().map { .put(layout.store($0), []) } + gone.sorted().map { .put(layout.gone($0), []) }
        return (steps, touches)
    }

    /// This device's row.
    var device: EtcdDevice {
        EtcdDevice(publication.device, publication: number, count: publication.counts[publication.origin, default: 0])
    }

    /// The operations that end a publication: they write this device's row, and delete those under its former origins.
    private var ending: [EtcdOperation] {
        if !isLast { return [] }
        return [.put(layout.device(publication.origin), device.encoded)]
            + formerOrigins.map { .delete(layout.device($0)) }
    }

    /// Notes that a transaction was applied.
    mutating func advance(_ count: Int, to position: EtcdPosition) {
        isDone = count == queue.count
        queue = queue.dropFirst(count)
        self.position = position
    }

    /// The cluster's present state of the stores of which this device has joined everything; `nil` if others have
    /// written something that it has not joined.
    var publishedOutlines: [String: EtcdOutline]? {
        guard isDone, let outlines else { return nil }
        return snapshots.filter { outlines[$0.key] != nil || settled.contains($0.key) }.mapValues { snapshot in
            var outline = EtcdOutline(of: snapshot.state)
            if let former = outlines[snapshot.identifier] { outline.vector.formUnion(former.vector) }
            return outline
        }
    }
}
