// SPDX-License-Identifier: Apache-2.0

// One app's store of one user, in memory.
//
// Memory answers all reads. A staged write changes memory and queues a row. The database's `commit()` then writes the
// queued rows in one transaction, or reverts the changes. Code that stages writes commits them before anything is read,
// so that no reader sees a write that could still be lost.
//
// Not Sendable: a store, its database and their owner share one isolation.

internal import GRDB
package import PropertyList
package import Replication

/// One app's key-value store.
package final class Store {
    /// The identifier that the app's manifest declares.
    package let identifier: String
    let database: UserDatabase
    /// The limits of what the store may hold.
    package let limits: Limits
    /// Keys that never leave the device.
    package private(set) var localKeys: LocalKeys

    var id: Int64
    /// Whether the store has a row in the database.
    package internal(set) var isStored: Bool
    /// Whether the user has removed the store from this device, and no app has opened it since.
    package internal(set) var isForgotten: Bool
    /// Whether the store takes part in the account's sync. Otherwise it stays as it is on this device.
    package internal(set) var isSynchronized: Bool
    /// Grows by one with each writing call, and each remote change, that alters visible values.
    package internal(set) var generation: UInt64
    /// The generation since which every visible change is known.
    var knownFrom: UInt64

    /// The state that is joined with the other devices of the current account.
    var shared: Replica
    /// The values that never leave the device.
    var local: Replica
    /// The previous account's values, shown until those of the current one have arrived.
    var previous: Replica?

    /// The state to restore if the staged writes can't be committed.
    var undo: Undo?

    init(_ identifier: String, in database: UserDatabase, localKeys: LocalKeys, db: Database) throws {
        self.identifier = identifier
        self.database = database
        limits = database.limits(of: identifier)
        self.localKeys = Self.isLayer(identifier) ? .all : localKeys
        let row = try Row.fetchOne(
            db.cachedStatement(sql: "SELECT * FROM store WHERE identifier = ?"), arguments: [identifier])
        isStored = row != nil
        id = try row?.decode(forColumn: "id") ?? database.allocateStoreID()
        isForgotten = try row?.decode(forColumn: "forgotten") ?? false
        isSynchronized = try row?.decode(forColumn: "synchronized") ?? true
        generation = try row?.counter("generation") ?? database.generationBase
        knownFrom = try row?.counter("known_from") ?? database.generationBase
        shared = try database.replica(of: id, account: database.account.id, limits: limits, db)
        local = try database.replica(of: id, account: Account.device, limits: limits, db)
        if isForgotten || (!isSynchronized && !shared.isStored) { shared.isDownloaded = false }
        previous = try database.previousReplica(of: id, unless: shared.isDownloaded, db)
        generation = max(generation, shared.generation, local.generation)
    }

    deinit {
        database.unload(self)
    }

    // MARK: Reading

    /// Returns the value under a key; `nil` if the key has no visible value.
    package func value(for key: Key) -> Value? {
        if localKeys.contains(key) { return local.records[key]?.value }
        if let record = shared.records[key] { return record.value }
        return previous?.records[key]?.value
    }

    /// Calls `body` with each visible key and value, in no order.
    package func forEachValue(_ body: (Key, Value) throws -> Void) rethrows {
        for (key, record) in shared.records {
            if let value = record.value, !localKeys.contains(key) { try body(key, value) }
        }
        for (key, record) in local.records {
            if let value = record.value, localKeys.contains(key) { try body(key, value) }
        }
        for (key, record) in previous?.records ?? [:] where shared.records[key] == nil {
            if let value = record.value, !localKeys.contains(key) { try body(key, value) }
        }
    }

    /// Adds up what all entries take in memory, shown or not.
    /// - Parameter cost: returns what an entry takes. Removed ones have no value.
    package func memory(_ cost: (Key, Value?) -> Int) -> Int {
        [shared, local, previous].compactMap(\.self).reduce(0) { sum, replica in
            replica.records.reduce(sum + replica.vector.dots.count * MemoryLayout<Dot>.stride) { sum, record in
                sum + cost(record.key, record.value.value) + record.value.content.hiddenBytes
            }
        }
    }

    /// The visible keys and values.
    package var values: [Key: Value] {
        var values: [Key: Value] = [:]
        forEachValue { values[$0] = $1 }
        return values
    }

    /// Returns whether `changes(since:)` can tell exactly what changed since a generation.
    package func knowsChanges(since generation: UInt64) -> Bool {
        generation != 0 && generation >= knownFrom && generation <= self.generation
    }

    /// Returns the keys whose visible value changed after a generation that is known, with their values; `nil` for a
    /// key that no longer has one.
    package func changes(since generation: UInt64) -> [Key: Value?] {
        var changes: [Key: Value?] = [:]
        for (key, record) in shared.records where record.generation > generation && !localKeys.contains(key) {
            changes[key] = .some(record.value)
        }
        for (key, record) in local.records where record.generation > generation && localKeys.contains(key) {
            changes[key] = .some(record.value)
        }
        return changes
    }

    /// What counts against the limits: the shared state without device-local keys. For a layer, its own values.
    package var usage: Usage { isLayer ? local.usage : shared.usage }

    /// The number of keys with a pending change.
    package var pendingChanges: Int { shared.pendingKeys }

    /// Whether the account's values have arrived; false without an account.
    package var isDownloaded: Bool { shared.isDownloaded && database.account.id != Account.none }

    /// The keys that have a value on this device only, sorted. They may have been local and be local no longer.
    package var localValues: [Key] { local.records.filter { $0.value.value != nil }.keys.sorted() }

    /// Makes a copy of the shared state that another thread may use, without copying the values.
    package func snapshot() -> StoreSnapshot {
        let (records, vector) = (shared.records, shared.vector)
        return StoreSnapshot(identifier: identifier, sequence: shared.sequence) {
            StoreState(entries: records.compactMapValues(\.entry), vector: vector)
        }
    }

    // MARK: Changing what is local

    /// Replaces the local keys after a manifest has changed, and commits the resulting changes.
    ///
    /// Values of keys that are no longer local move into the shared state: see ``releaseLocalValues()``. So call this
    /// only for what a manifest says, and not when a manifest is missing.
    /// - Returns: the keys whose visible value has changed.
    package func replaceLocalKeys(_ localKeys: LocalKeys) throws(EngineError) -> [Key] {
        if localKeys == self.localKeys { return [] }
        let former = self.localKeys
        let before = values
        self.localKeys = localKeys
        do { return try renewView(since: before) } catch {
            self.localKeys = former
            throw error
        }
    }

    /// Moves the values of keys that are no longer local into the shared state, and commits that.
    ///
    /// They are ordinary writes there. If the shared state already has an entry, that entry stays, and the local value
    /// becomes part of the key's history.
    /// - Returns: the keys whose visible value has changed.
    package func releaseLocalValues() throws(EngineError) -> [Key] {
        if local.records.allSatisfy({ $0.value.value == nil || localKeys.contains($0.key) }) { return [] }
        return try renewView(since: values)
    }

    /// Whether a key that is no longer local has a value that could not be moved yet.
    package func hasUnreleasedValue(for key: Key) -> Bool {
        !localKeys.contains(key) && local.records[key]?.value != nil
    }

    /// Commits the released values, and makes the present generation the first from which changes are known.
    /// - Returns: the keys whose visible value differs from what it was before.
    private func renewView(since before: [Key: Value]) throws(EngineError) -> [Key] {
        try database.commit()
        guard isStored else { return [] }
        database.willStage(self)
        stageReleased()
        let after = values
        let changed = Set(before.keys).union(after.keys).filter { before[$0] != after[$0] }
        // If nothing changed, a reader at the present generation has missed nothing.
        if !changed.isEmpty { generation += 1 }
        knownFrom = generation
        database.enqueueGeneration(of: self)
        try database.commit()
        return changed.sorted()
    }
}

// MARK: - Beyond the limits

extension Store {
    /// The largest state that joins may produce. A store that would become larger is not joined.
    private static let largestState = (
        keys: StoreBounds.entries, entries: 4 * StoreBounds.entries, bytes: StoreBounds.bytes, origins: 65536
    )

    /// Whether the previous account's values are shown, because those of the current one have not arrived.
    package var hasPreviousValues: Bool { previous != nil }

    /// Whether joins made the store exceed its limits. It may shrink then, but not grow.
    package var isOverQuota: Bool { usage.keys > limits.keys || usage.bytes > limits.totalBytes }

    /// The keys that don't fit when values are added up by stamp, oldest first. Sorted, and the same on every device.
    package var overflow: [Key] {
        var sum = Usage()
        let values = shared.records.filter { $0.value.value != nil }
        let oldestFirst = values.sorted {
            ($0.value.stamp, $0.key) < ($1.value.stamp, $1.key)
        }
        return oldestFirst.filter { _, record in
            sum.replace(nil, by: record.content)
            return sum.keys > limits.keys || sum.bytes > limits.totalBytes
        }.map(\.key).sorted()
    }

    /// Returns whether the state that a plan leads to is within the largest size of a store.
    package func canHold(_ plan: JoinPlan) -> Bool {
        if plan.vector.dots.count > max(Self.largestState.origins, vector.dots.count) { return false }
        if plan.taken.isEmpty { return true }
        let kept = shared.records.filter { plan.taken[$0.key] == nil && !$0.value.isDropped }
        let bytes =
            kept.values.reduce(0) { $0 + $1.size + $1.content.hiddenBytes }
            + plan.taken.values.reduce(0) { $0 + ($1.value?.count ?? 0) }
        let keys = kept.values.count { $0.value != nil } + plan.taken.values.count { $0.value != nil }
        return keys <= Self.largestState.keys && kept.count + plan.taken.count <= Self.largestState.entries
            && bytes <= Self.largestState.bytes
    }
}
