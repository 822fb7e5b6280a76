// SPDX-License-Identifier: Apache-2.0

// One app's store of one user, in memory.
//
// Reads are answered from here. A write is staged: it changes the memory and queues its row, and the database's
// `commit()` writes what is queued in one transaction, or takes it all back. Whoever stages commits before
// anybody reads, so nobody sees a write that could still be lost.
//
// Not Sendable: a store, its database and their owner share one isolation.

internal import GRDB
public import PropertyList
public import Replication

/// One app's key-value store.
public final class Store {
    /// The identifier that the app's manifest declares.
    public let identifier: String
    let database: UserDatabase
    /// What it may hold.
    public let limits: Limits
    /// Keys that never leave the device.
    public private(set) var localKeys: LocalKeys

    var id: Int64
    /// Whether the database has something of the store.
    public internal(set) var isStored: Bool
    /// The user removed it from this device, and nobody has opened it since.
    public internal(set) var isForgotten: Bool
    /// The store takes part in the account's sync; otherwise it stays as it is on this device.
    public internal(set) var isSynchronized: Bool
    /// Counts visible changes: one step for each writing call and for each remote change that is applied.
    public internal(set) var generation: UInt64
    /// From here on every visible change is known.
    var knownFrom: UInt64

    /// What is joined with the other devices of the current account.
    var shared: Replica
    /// What stays on the device, beside it.
    var overlay: Replica
    /// The values of the account before, shown until those of the current one have arrived.
    var previous: Replica?

    /// What has to be put back if the staged writes can't be committed.
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
        overlay = try database.replica(of: id, account: Account.device, limits: limits, db)
        if isForgotten || (!isSynchronized && !shared.isStored) { shared.isDownloaded = false }
        previous = try database.previousReplica(of: id, unless: shared.isDownloaded, db)
        generation = max(generation, shared.generation, overlay.generation)
    }

    deinit {
        database.unload(self)
    }

    // MARK: Reading

    /// The value under a key; `nil` when there is none to show.
    public func value(for key: Key) -> Value? {
        if localKeys.contains(key) { return overlay.records[key]?.value }
        if let record = shared.records[key] { return record.value }
        return previous?.records[key]?.value
    }

    /// The keys and values that are visible, in no order.
    public func forEachValue(_ body: (Key, Value) throws -> Void) rethrows {
        for (key, record) in shared.records {
            if let value = record.value, !localKeys.contains(key) { try body(key, value) }
        }
        for (key, record) in overlay.records {
            if let value = record.value, localKeys.contains(key) { try body(key, value) }
        }
        for (key, record) in previous?.records ?? [:] where shared.records[key] == nil {
            if let value = record.value, !localKeys.contains(key) { try body(key, value) }
        }
    }

    /// Every visible key with its value.
    public var values: [Key: Value] {
        var values: [Key: Value] = [:]
        forEachValue { values[$0] = $1 }
        return values
    }

    /// Whether `changes(since:)` can tell exactly what changed since a generation.
    public func knowsChanges(since generation: UInt64) -> Bool {
        generation != 0 && generation >= knownFrom && generation <= self.generation
    }

    /// The keys whose visible value changed after a generation that is known, with their values; `nil` where
    /// there is none any more.
    public func changes(since generation: UInt64) -> [Key: Value?] {
        var changes: [Key: Value?] = [:]
        for (key, record) in shared.records where record.generation > generation && !localKeys.contains(key) {
            changes[key] = .some(record.value)
        }
        for (key, record) in overlay.records where record.generation > generation && localKeys.contains(key) {
            changes[key] = .some(record.value)
        }
        return changes
    }

    /// What counts against the limits: the state that devices share, without keys that stay here; of a layer what it has.
    public var usage: Usage { isLayer ? overlay.usage : shared.usage }

    /// How many keys have a change that the remote does not have.
    public var pendingChanges: Int { shared.pendingKeys }

    /// Whether the account's values have arrived; false without an account.
    public var isDownloaded: Bool { shared.isDownloaded && database.account.id != Account.none }

    /// A copy of the shared state that can be handed to another thread; made without copying the values.
    public func snapshot() -> StoreSnapshot {
        let (records, vector) = (shared.records, shared.vector)
        return StoreSnapshot(identifier: identifier, sequence: shared.sequence) {
            StoreState(entries: records.compactMapValues(\.entry), vector: vector)
        }
    }

    // MARK: Changing what is local

    /// Takes on the local keys of a manifest that changed, and commits what follows from it.
    ///
    /// The values of keys that are not local any more go into the shared state: see ``releaseLocalValues()``.
    /// So it is for what a manifest says, not for the lack of one.
    /// - Returns: the keys whose visible value is another one now.
    public func replaceLocalKeys(_ localKeys: LocalKeys) throws(EngineError) -> [Key] {
        if localKeys == self.localKeys { return [] }
        let former = self.localKeys
        let before = values
        self.localKeys = localKeys
        do { return try renewView(since: before) } catch {
            self.localKeys = former
            throw error
        }
    }

    /// Moves the values of keys that are not local any more into the shared state, and commits that.
    ///
    /// They are ordinary writes there. Where the shared state has an entry already, the entry stays, and the
    /// local value is in the key's history.
    /// - Returns: the keys whose visible value is another one now.
    public func releaseLocalValues() throws(EngineError) -> [Key] {
        if overlay.records.allSatisfy({ $0.value.value == nil || localKeys.contains($0.key) }) { return [] }
        return try renewView(since: values)
    }

    /// Gives the store a generation from which alone changes are known, after the view became another one.
    /// - Returns: the keys whose visible value differs from what it was before.
    private func renewView(since before: [Key: Value]) throws(EngineError) -> [Key] {
        try database.commit()
        guard isStored else { return [] }
        database.willStage(self)
        stageReleased()
        let after = values
        let changed = Set(before.keys).union(after.keys).filter { before[$0] != after[$0] }
        // A reader at the present generation has missed nothing where nothing changed.
        if !changed.isEmpty { generation += 1 }
        knownFrom = generation
        database.enqueueGeneration(of: self)
        try database.commit()
        return changed.sorted()
    }
}

// MARK: - Beyond the limits

extension Store {
    /// What one store may grow to by joining: beyond that it is not joined further.
    private static let largestState = (keys: 8192, entries: 32768, bytes: 8 << 20, origins: 65536)

    /// Whether the values of the account before are shown, as those of the current one have not arrived.
    public var hasPreviousValues: Bool { previous != nil }

    /// Whether joining made the store larger than its limits allow; it may shrink, and not grow.
    public var isOverQuota: Bool { usage.keys > limits.keys || usage.bytes > limits.totalBytes }

    /// The keys that do not fit when all entries are added up by stamp, oldest first; the same on every device.
    public var overflow: [Key] {
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

    /// Whether the store may become what a join makes of it.
    public func canHold(_ plan: JoinPlan) -> Bool {
        if plan.vector.dots.count > max(Self.largestState.origins, vector.dots.count) { return false }
        if plan.taken.isEmpty { return true }
        let kept = shared.records.filter { plan.taken[$0.key] == nil && !$0.value.isDropped }
        let bytes = kept.values.reduce(0) { $0 + $1.size } + plan.taken.values.reduce(0) { $0 + ($1.value?.count ?? 0) }
        let keys = kept.values.count { $0.value != nil } + plan.taken.values.count { $0.value != nil }
        return keys <= Self.largestState.keys && kept.count + plan.taken.count <= Self.largestState.entries
            && bytes <= Self.largestState.bytes
    }
}
