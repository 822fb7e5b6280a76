// SPDX-License-Identifier: Apache-2.0

internal import ManagedDefaults
internal import PropertyList
internal import SDBus
internal import UbiquitousStore

/// Where a write of an outbox belongs: a layer of the domain, or the store of keys that roam.
struct OutboxPlace: Hashable {
    let domain: Text
    let isHost: Bool
    /// The store of keys that roam; `nil` for the domain's layer.
    let store: Text?

    /// - Parameter roaming: which keys roam as the service says; `nil` if it doesn't. The process that wrote only had
    ///   the manifest, if it ran without the service.
    init(_ write: Outbox.Write, of domain: Text, _ roaming: RoamingKeys?) {
        self.domain = domain
        isHost = write.isHost
        store = write.isHost || write.isOwn ? write.store : roaming.map { $0.place(of: write) } ?? write.store
    }

    /// The place's name, for messages.
    var name: Text { store ?? domain }

    /// Returns the generation of this place that a write knows of; `nil` if it knows none.
    func generation(of write: Outbox.Write) -> UInt64? {
        // A generation of the domain says nothing of the store, and the other way round.
        write.store == store && write.generation > 0 ? write.generation : nil
    }
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
    /// Returns a place's generation; 1 if nothing was ever written there.
    func generation(of place: OutboxPlace) async throws -> UInt64 {
        let snapshot =
            if let store = place.store { try await opened(store).snapshot() } else {
                try await snapshot(LayerAddress(place.domain, isHost: place.isHost))
            }
        return max(1, snapshot.generation)
    }

    /// Delivers writes of an outbox to the service. What has changed there since a generation wins; of what has come
    /// from other devices since, only what is later than the write.
    func deliver(_ writes: [Outbox.Write], to place: OutboxPlace, since generation: UInt64) async throws {
        if let store = place.store {
            let object = try await opened(store)
            let groups = try await groups(writes, since: generation) { try await object.snapshot() }
            for (since, writes) in groups {
                for (time, writes) in Dictionary(grouping: writes, by: \.time) {
                    let late = (generation: since, time: UInt64(clamping: time))
                    try await object.apply(writes.changes, late: late)
                }
            }
            return try await removeSuperseded(writes, by: store, in: place.domain)
        }
        let layer = LayerAddress(place.domain, isHost: place.isHost)
        let groups = try await groups(writes, since: generation) { try await snapshot(layer) }
        for (since, writes) in groups { try await apply(writes.changes, to: layer, unlessChangedSince: since) }
    }

    /// Groups writes by the generation since which a change wins over them.
    private func groups(
        _ writes: [Outbox.Write], since generation: UInt64, _ snapshot: () async throws -> Snapshot
    ) async throws -> [UInt64: [Outbox.Write]] {
        let isUncertain = writes.contains { !$0.unanswered.isEmpty }
        let snapshot = isUncertain ? try await snapshot() : nil
        return Dictionary(grouping: writes) { write in
            snapshot.flatMap { write.follows(on: $0.values[write.key]) ? $0.generation : nil } ?? generation
        }
    }

    private func opened(_ store: Text) async throws -> StoreObject {
        try self.store(await manager.openStore(store.string).identifier)
    }

    /// Removes the domain's own values of keys that were set or removed in the store: see ``Roaming``. If the store has kept
    /// something newer, a removal leaves them.
    private func removeSuperseded(_ writes: [Outbox.Write], by store: Text, in domain: Text) async throws {
        let layer = LayerAddress(domain)
        let own = try await snapshot(layer).values
        let replaced = writes.filter { own[$0.key] != nil }
        if replaced.isEmpty { return }
        let stored = try await self.store(store.string).snapshot().values
        let settled = replaced.filter { ($0.value == nil) == (stored[$0.key] == nil) }
        let gone = Changes(settled.map { ($0.key, nil) }) { $1 }
        if !gone.isEmpty { try await apply(gone, to: layer) }
    }
}

extension Outbox.Write {
    /// Whether the process had given the service another value before, and the service still has that one.
    fileprivate func follows(on present: Value?) -> Bool { unanswered.contains(present) }
}

extension [Outbox.Write] {
    fileprivate var changes: Changes { Changes(map { ($0.key, $0.value) }) { $1 } }
}
