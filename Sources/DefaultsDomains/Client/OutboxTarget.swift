// SPDX-License-Identifier: Apache-2.0

internal import ManagedDefaults
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

    /// - Parameter roaming: which keys roam as the service says; `nil` if it doesn't. The process that wrote only had
    ///   the manifest, if it ran without the service.
    init(_ write: Outbox.Write, of domain: Text, _ roaming: RoamingKeys?) {
        self.domain = domain
        isHost = write.isHost
        let place = write.isHost ? write.store : roaming.map { $0.place(of: write) } ?? write.store
        // A generation of the domain says nothing of the store, and the other way round.
        (store, generation) = (place, place == write.store ? write.generation : 0)
    }

    /// The target's name, for messages.
    var name: Text { store ?? domain }

    fileprivate var since: UInt64? { generation == 0 ? nil : generation }
}

/// The keys of a domain that roam, as the service says.
struct RoamingKeys {
    private let keys: KeyPatterns
    /// Their store; `nil` if the service says it only to the domain's own program.
    private let store: Text?

    /// - Returns: `nil` if the service doesn't say which keys roam.
    init?(_ domain: OpenedDomain) {
        guard let keys = domain.managed?.ubiquitous else { return nil }
        self.keys = keys
        store = domain.store.flatMap { $0.isEmpty ? nil : Text($0) }
    }

    /// Returns the store to which a write belongs; `nil` if it belongs to the domain.
    fileprivate func place(of write: Outbox.Write) -> Text? {
        keys.contains(write.key) ? store ?? write.store : nil
    }
}

extension ServiceConnection {
    /// Delivers writes of an outbox to the service.
    func deliver(_ writes: [Outbox.Write], to target: OutboxTarget) async throws {
        if let store = target.store {
            try await deliver(writes, to: store.string, target.since)
            return try await removeSuperseded(writes, by: store.string, in: target.domain)
        }
        let place = LayerAddress(target.domain, isHost: target.isHost)
        let isUncertain = target.since != nil && writes.contains { !$0.unanswered.isEmpty }
        let snapshot = isUncertain ? try await snapshot(place) : nil
        let groups = Dictionary(grouping: writes) { write in
            snapshot.flatMap { write.follows(on: $0.values[write.key]) ? $0.generation : nil } ?? target.since
        }
        for (since, writes) in groups { try await apply(writes.changes, to: place, unlessChangedSince: since) }
    }

    /// Removes the domain's own values of keys of which the store has values now: see ``Roaming``.
    private func removeSuperseded(_ writes: [Outbox.Write], by identifier: String, in domain: Text) async throws {
        let place = LayerAddress(domain)
        let own = try await snapshot(place).values
        let keys = writes.filter { $0.value != nil && own[$0.key] != nil }.map(\.key)
        if keys.isEmpty { return }
        let stored = try await store(identifier).snapshot().values
        let gone = Changes(keys.filter { stored[$0] != nil }.map { ($0, nil) }) { $1 }
        if !gone.isEmpty { try await apply(gone, to: place) }
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
