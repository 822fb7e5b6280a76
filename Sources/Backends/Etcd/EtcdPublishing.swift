// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication

/// How much of something there is at most; a simulation makes do with less.
package struct EtcdLimits: Sendable {
    /// What a transaction of a publication does. etcd takes 128 operations at once, unless it was told otherwise.
    let operations: Int
    /// The transactions that the account's row names.
    let tokens: Int
    /// The stores of an account that are read; twice as many as a user may have.
    static let stores = 1 << 15
    /// The devices whose names are remembered; more than anybody has.
    static let devices = 4096

    package init(operations: Int = 120, tokens: Int = 128) { (self.operations, self.tokens) = (operations, tokens) }
}

/// A publication in transactions: what is to be written, and from which state of the account on.
///
/// It only decides. Of each store the entries come first, then what was taken in, then what goes: it may be cut between
/// any two of its transactions, for nobody is told that something was seen before it is there.
struct EtcdPublishing {
    static let mostAttempts = 30

    let publication: Publication
    let number: UInt64
    var formerOrigins: [Origin] = []
    private let snapshots: [String: StoreSnapshot]
    private let layout: EtcdLayout
    private let limits: EtcdLimits

    private(set) var position: EtcdPosition
    /// What the cluster has of the stores of which this device has joined everything; `nil`: others have written since.
    private var outlines: [String: EtcdOutline]?
    /// Other stores of which it has, as turned out when they were read.
    private var settled: Set<String> = []
    private var steps: [String: [Step]] = [:]
    private var queue: ArraySlice<Step> = []
    /// The device's row is written, which is the last thing.
    private(set) var isDone = false

    /// One operation for a store.
    private struct Step {
        let store: String
        let operation: EtcdOperation
        /// An entry goes and no other is put in its place.
        var removes = false
        /// Rows that have to be there already.
        var parts: [(key: [UInt8], bytes: [UInt8])] = []
    }

    /// etcd takes 1.5 MiB at once, unless it was told otherwise.
    private static let mostBytes = 1_300_000

    init(
        _ publication: Publication, _ snapshots: [StoreSnapshot], number: UInt64, _ layout: EtcdLayout,
        _ limits: EtcdLimits = EtcdLimits()
    ) {
        (self.publication, self.number, self.layout) = (publication, number, layout)
        self.limits = limits
        self.snapshots = Dictionary(snapshots.map { ($0.identifier, $0) }) { $1 }
        position = EtcdPosition(EtcdAccount([.zero], token: 0), 0)
    }

    /// Begins, again perhaps, from a state of the account.
    /// - Parameter outlines: what the cluster has of stores of which this device has joined everything.
    mutating func begin(at position: EtcdPosition, outlines: [String: EtcdOutline]? = nil) {
        (self.position, self.outlines) = (position, outlines)
        (settled, steps, queue) = ([], [:], [])
        for (store, snapshot) in snapshots {
            guard let outline = outlines?[store] else { continue }
            steps[store] = self.steps(store, joining: snapshot.state, to: outline)
        }
    }

    /// Stores whose state in the cluster has to be known first.
    var undecided: [String] { snapshots.keys.filter { steps[$0] == nil }.sorted() }

    /// Where a device has joined everything, what it has that was not seen there is newer, and what it has no more has
    /// gone since.
    private func steps(_ store: String, joining state: StoreState, to outline: EtcdOutline) -> [Step] {
        let news = state.entries.filter { !outline.vector.contains($0.value.dot) }
        let gone = outline.keys.filter { state.entries[$0] == nil }
        return puts(news, store) + raises(outline.vector, to: state.vector, store) + removals(gone, store)
    }

    /// Takes in what the cluster has of a store.
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

    /// Puts the steps of all stores into an order.
    mutating func order() {
        queue = snapshots.keys.sorted().flatMap { steps[$0] ?? [] }[...]
        if !Rule.entriesFirst.isOn { queue.reverse() }
    }

    /// The parts of large values, which are written before everything else.
    var parts: [EtcdOperation] { queue.flatMap(\.parts).map { .put($0.key, $0.bytes) } }

    // MARK: Transactions

    /// The next transaction, what it makes of the account's row, and how many steps it takes.
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

    /// As many steps as fit, and the rows that say of which stores they are.
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

    /// The row that says who has published.
    var device: EtcdDevice {
        EtcdDevice(publication.device, publication: number, count: publication.counts[publication.origin, default: 0])
    }

    /// Who has published, and under which names it does no more.
    private var ending: [EtcdOperation] {
        [.put(layout.device(publication.origin), device.encoded)]
            + formerOrigins.map { .delete(layout.device($0)) }
    }

    /// A transaction was made.
    mutating func advance(_ count: Int, to position: EtcdPosition) {
        isDone = count == queue.count
        queue = queue.dropFirst(count)
        self.position = position
    }

    /// What the cluster has now of the stores of which this device has joined everything; `nil` if others have written
    /// something that it has not.
    var publishedOutlines: [String: EtcdOutline]? {
        guard isDone, let outlines else { return nil }
        return snapshots.filter { outlines[$0.key] != nil || settled.contains($0.key) }.mapValues { snapshot in
            var outline = EtcdOutline(of: snapshot.state)
            if let former = outlines[snapshot.identifier] { outline.vector.formUnion(former.vector) }
            return outline
        }
    }
}
