// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import SDBus
internal import UbiquitousStore

/// What writes of an outbox go to, together.
struct OutboxTarget: Hashable {
    let domain: Text
    let isHost: Bool
    /// The store of keys that roam; `nil`: the domain's layer.
    let store: Text?
    /// What the process knew that made the writes. What changed after it wins. With 0 the process knew nothing: its
    /// writes are as late as their delivery.
    let generation: UInt64

    init(_ write: Outbox.Write, of domain: Text) {
        self.domain = domain
        (isHost, store, generation) = (write.isHost, write.store, write.generation)
    }

    /// For a person.
    var name: Text { store ?? domain }

    fileprivate var since: UInt64? { generation == 0 ? nil : generation }
}

extension ServiceConnection {
    /// Gives the service writes of an outbox.
    func deliver(_ writes: [Outbox.Write], to target: OutboxTarget) async throws {
        if let store = target.store {
            return try await deliver(writes, to: store.string, target.since)
        }
        let place = LayerPlace(target.domain, isHost: target.isHost)
        let isUncertain = target.since != nil && writes.contains { !$0.unanswered.isEmpty }
        let snapshot = isUncertain ? try await snapshot(place) : nil
        let groups = Dictionary(grouping: writes) { write in
            snapshot.flatMap { write.follows(on: $0.values[write.key]) ? $0.generation : nil } ?? target.since
        }
        for (since, writes) in groups { try await apply(writes.changes, to: place, unlessChangedSince: since) }
    }

    /// Stores have no option for this: what has changed is looked up, and the write made if nothing changes meanwhile.
    private func deliver(_ writes: [Outbox.Write], to identifier: String, _ since: UInt64?) async throws {
        let store = try store(try await manager.openStore(identifier).identifier)
        while true {
            let snapshot = try await store.snapshot(since: since ?? 0)
            let changed = Set(snapshot.values.keys).union(snapshot.removed)
            // Where the generation is known no longer, nobody knows what was later.
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
    /// Whether its process had given the service another value before, and that is the one that the service has.
    fileprivate func follows(on present: Value?) -> Bool { unanswered.contains(present) }
}

extension [Outbox.Write] {
    fileprivate var changes: Changes { Changes(map { ($0.key, $0.value) }) { $1 } }
}
