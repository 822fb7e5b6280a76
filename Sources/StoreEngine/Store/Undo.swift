// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication

/// A store's state before the staged writes.
struct Undo {
    let generation: UInt64
    let knownFrom: UInt64
    let previous: Replica?
    let replicas: [ReplicaUndo]
    var records: [(replica: Replica, key: Key, record: Record?)] = []

    init(_ store: Store) {
        generation = store.generation
        knownFrom = store.knownFrom
        previous = store.previous
        replicas = [ReplicaUndo(store.shared), ReplicaUndo(store.local)]
    }
}

/// The small parts of a replica's state. Its records are undone one by one.
struct ReplicaUndo {
    private let replica: Replica
    private let sequence: UInt64
    private let isDownloaded: Bool
    private let vector: VersionVector
    private let history: (rows: Int, bytes: Int)
    private let surplus: Int

    init(_ replica: Replica) {
        self.replica = replica
        sequence = replica.sequence
        isDownloaded = replica.isDownloaded
        vector = replica.vector
        history = replica.history
        surplus = replica.surplus.count
    }

    func restore() {
        replica.sequence = sequence
        replica.isDownloaded = isDownloaded
        replica.vector = vector
        replica.history = history
        replica.surplus = Array(replica.surplus.prefix(surplus))
    }
}

extension Store {
    /// Reverts the staged writes.
    func revert() {
        guard let undo else { return }
        self.undo = nil
        for (replica, key, record) in undo.records.reversed() { replica.replace(key, by: record) }
        generation = undo.generation
        knownFrom = undo.knownFrom
        previous = undo.previous
        for replica in undo.replicas { replica.restore() }
    }
}
