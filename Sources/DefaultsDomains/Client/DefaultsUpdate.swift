// SPDX-License-Identifier: Apache-2.0

internal import ManagedDefaults
internal import PropertyList
internal import Synchronization

/// Applies one event to the search lists, and collects the notifications that result.
struct DefaultsUpdate {
    private let reason: UInt32
    private let error: (any Error)?
    private var changes: [(box: SearchBox, changes: [SearchList.Change])] = []
    private var finished: [(Waiters.Action, (any Error)?)] = []
    /// Kept until the lock is released, because releasing the last reference to a box takes the lock.
    private var held: [SearchBox] = []

    /// - Parameter error: why a write was refused.
    init(reason: UInt32, error: (any Error)? = nil) {
        (self.reason, self.error) = (reason, error)
    }

    /// Updates keys of a layer whose visible values may have changed.
    mutating func layer(_ layer: SearchList.Layer, _ keys: some Sequence<Text>, _ state: borrowing DefaultsState) {
        let visible = state.layers[layer]?.visible ?? [:]
        let changes = Changes(keys.map { ($0, visible[$0]) }) { $1 }
        if changes.isEmpty { return }
        each(state) { $0.change(layer, changes) }
    }

    /// Replaces all values of a layer.
    mutating func replace(_ layer: SearchList.Layer, _ values: [Text: Value], _ state: borrowing DefaultsState) {
        each(state) { $0.replace(layer, by: values) }
    }

    /// Takes over what an administrator decides about a domain.
    mutating func managed(_ domain: Text, _ managed: ManagedDomain, _ state: inout DefaultsState) {
        if state.managed[domain] == managed { return }
        state.managed[domain] = managed
        each(state) { list in
            list.replace(.forced(domain), by: managed.forced)
                + list.replace(.recommended(domain), by: managed.recommended) + list.lock(domain, managed.locked)
        }
    }

    /// Takes over the store's values of the keys that roam.
    ///
    /// - Parameters:
    ///   - keys: the keys that have changed; `nil` if any may have.
    ///   - isTold: whether to notify observers now; false if the store will announce the change, with its reason.
    mutating func roaming(_ domain: Text, _ state: inout DefaultsState, _ keys: [Text]? = nil, isTold: Bool = true) {
        guard let roaming = state.roaming[domain] else { return }
        for box in boxes(state) where box.own == domain {
            let changes = box.list.withLock { list in
                keys.map { list.change(.ubiquitous, roaming.values(of: $0)) }
                    ?? list.replace(.ubiquitous, by: roaming.values)
            }
            if isTold {
                for change in changes { _ = state.boxes.announced(change.key, in: box) }
                note(box, changes)
            } else {
                state.boxes.keep(changes, in: box)
            }
        }
    }

    /// Notifies observers of changes that the store announces.
    mutating func announce(_ keys: [Text], isRefusal: Bool, of domain: Text, _ state: inout DefaultsState) {
        for box in boxes(state) where box.own == domain {
            let changes = keys.compactMap { key -> SearchList.Change? in
                let new = box.list.withLock { $0[key] }
                let former = state.boxes.announced(key, in: box)
                if former == nil && !isRefusal { return nil }
                let change = SearchList.Change(key: key, old: former ?? new, new: new)
                return change.old != change.new || isRefusal ? change : nil
            }
            note(box, changes)
        }
    }

    /// Collects the result for callers that wait for writes.
    mutating func finish(_ tickets: [Ticket], _ error: (any Error)?, _ state: inout DefaultsState) {
        for ticket in tickets {
            if let done = state.waiters.remove(ticket) { finished.append((done, error)) }
        }
    }

    /// Queues the notifications, while the lock is held, so that observers see changes in their order.
    func tell() {
        for (box, changes) in changes { box.tell(DefaultsChange(reason: reason, changes: changes, error: error)) }
    }

    /// Calls those that wait for writes, once the lock is released.
    func callWaiters() {
        for (done, error) in finished { done(error) }
        withExtendedLifetime(held) {}
    }

    private mutating func note(_ box: SearchBox, _ changes: [SearchList.Change]) {
        if !changes.isEmpty { self.changes.append((box, changes)) }
    }

    private mutating func each(
        _ state: borrowing DefaultsState, _ body: (inout SearchList) -> [SearchList.Change]
    ) {
        for box in boxes(state) { note(box, box.list.withLock { body(&$0) }) }
    }

    private mutating func boxes(_ state: borrowing DefaultsState) -> [SearchBox] {
        let boxes = state.boxes.present
        held += boxes
        return boxes
    }
}
