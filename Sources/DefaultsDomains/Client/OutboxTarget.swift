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
    func deliver(_ changes: Changes, to target: OutboxTarget) async throws {
        if let store = target.store {
            try await deliver(changes, to: store.string, target.since)
        } else {
            let place = LayerPlace(target.domain, isHost: target.isHost)
            try await apply(changes, to: place, unlessChangedSince: target.since)
        }
    }

    /// Stores have no option for this: what has changed is looked up, and the write made if nothing changes meanwhile.
    private func deliver(_ changes: Changes, to identifier: String, _ since: UInt64?) async throws {
        let store = try store(try await manager.openStore(identifier).identifier)
        while true {
            let snapshot = try await store.snapshot(since: since ?? 0)
            let changed = Set(snapshot.values.keys).union(snapshot.removed)
            // Where the generation is known no longer, nobody knows what was later.
            let kept = snapshot.isComplete ? changes : changes.filter { !changed.contains($0.key) }
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
