// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import SDBus
internal import UbiquitousStore

/// The target of writes in an outbox that are delivered together.
struct OutboxTarget: Hashable {
    let domain: Text
    let isHost: Bool
    /// The store of keys that roam; `nil` for the domain's layer.
    let store: Text?
    /// The generation that the writing process knew. What changed after it wins. With 0 the process knew none, and its
    /// writes count as made at their delivery.
    let generation: UInt64

    init(_ write: Outbox.Write, of domain: Text) {
        self.domain = domain
        (isHost, store, generation) = (write.isHost, write.store, write.generation)
    }

    /// The target's name, for messages.
    var name: Text { store ?? domain }

    fileprivate var since: UInt64? { generation == 0 ? nil : generation }
}

extension ServiceConnection {
    /// Delivers writes of an outbox to the service.
    func deliver(_ writes: [Outbox.Write], to target: OutboxTarget) async throws {
        if let store = target.store {
            return try await deliver(writes, to: store.string, target.since)
        }
        let place = LayerAddress(target.domain, isHost: target.isHost)
        let isUncertain = target.since != nil && writes.contains { !$0.unanswered.isEmpty }
        let snapshot = isUncertain ? try await snapshot(place) : nil
        let groups = Dictionary(grouping: writes) { write in
            snapshot.flatMap { write.follows(on: $0.values[write.key]) ? $0.generation : nil } ?? target.since
        }
        for (since, writes) in groups { try await apply(writes.changes, to: place, unlessChangedSince: since) }
    }

    /// Stores have no option for this: read what has changed, and write if nothing changes meanwhile.
    private func deliver(_ writes: [Outbox.Write], to identifier: String, _ since: UInt64?) async throws {
        let store = try store(try await manager.openStore(identifier).identifier)
        while true {
            let snapshot = try await store.snapshot(since: since ?? 0)
            let changed = Set(snapshot.values.keys).union(snapshot.removed)
            // If the store no longer knows the generation, nothing tells what was later.
            let kept = writes.filter {
                snapshot.isComplete || !changed.contains($0.key) || $0.follows(on: snapshot.values[$0.key])
            }.changes
            if kept.isEmpty { return }
            do {
                try await store.apply(kept, ifGeneration: snapshot.generation)
                return
            } catch let error as UbiquitousStoreError where error.code == .conflict {
                continue
            }
        }
    }
}

extension Outbox.Write {
    /// Whether the process had given the service another value before, and the service still has that one.
    fileprivate func follows(on present: Value?) -> Bool { unanswered.contains(present) }
}

extension [Outbox.Write] {
    fileprivate var changes: Changes { Changes(map { ($0.key, $0.value) }) { $1 } }
}
