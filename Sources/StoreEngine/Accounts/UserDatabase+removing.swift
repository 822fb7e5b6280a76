// SPDX-License-Identifier: Apache-2.0

internal import GRDB
package import PropertyList
internal import Replication

extension UserDatabase {
    /// Removes everything that a store holds in the current account, on all devices. This includes hidden entries,
    /// device-local values, and the store's history on this device.
    ///
    /// Each entry becomes a tombstone, which is uploaded like any other write. What another device writes concurrently
    /// stays.
    /// - Returns: the keys that were visible; `nil` if the store held nothing.
    package func removeEverything(in identifier: String) throws(EngineError) -> [Key]? {
        try commit()
        let store = try store(identifier)
        let visible = store.values.keys.sorted()
        guard store.stageRemovals() else { return nil }
        let replicas = [store.shared, store.local].filter(\.isStored)
        for replica in replicas { enqueue(replica: replica, in: store) { try $0.clearHistory(of: replica) } }
        enqueueGeneration(of: store)
        try commit()
        for replica in replicas { replica.forgetHistory() }
        return visible
    }
}

extension Store {
    /// Stages a tombstone for each entry with a value.
    /// - Returns: whether there was one.
    fileprivate func stageRemovals() -> Bool {
        let entries = [shared, local].map { replica in
            (replica, replica.records.filter { $0.value.holdsBytes }.map(\.key))
        }
        if entries.allSatisfy(\.1.isEmpty) { return false }
        database.willStage(self)
        generation += 1
        let time = database.environment.time()
        for (replica, keys) in entries {
            for key in keys {
                let stamp = Stamp(
                    after: replica.records[key]?.stamp, wall: time / 1000, origin: database.origin,
                    isProvisional: !replica.isDownloaded)
                append(
                    key, to: replica, stamp: stamp, n: nil, content: .tombstone,
                    generation: generation, cause: .written, time: time)
            }
        }
        return true
    }
}

extension Database {
    /// Removes a replica's changes, except for the tombstones that are there already. Tombstones for the other keys
    /// follow.
    fileprivate func clearHistory(of replica: Replica) throws {
        try saveProgress(of: replica)
        try run(
            sql: """
                DELETE FROM change WHERE \(ChangeID.isOf(":replica")) AND (value IS NOT NULL OR id NOT IN
                    (SELECT max(id) FROM change WHERE \(ChangeID.isOf(":replica")) GROUP BY key))
                """,
            arguments: ["replica": replica.id])
    }

    /// Saves what a replica's changes may be the only record of, before some of them are removed: the greatest n of
    /// each origin, and the last sequence.
    func saveProgress(of replica: Replica) throws {
        for dot in replica.vector.dots { try saveVector(of: replica.id, dot) }
        try saveSequence(replica.sequence, of: replica.id)
    }

    /// Saves the last sequence of a replica, which no change may have.
    func saveSequence(_ sequence: UInt64, of replica: Int64) throws {
        try run(
            sql: "UPDATE replica SET sequence = ?, counted = NULL WHERE id = ?",
            arguments: [Int64(bitPattern: sequence), replica])
    }
}
