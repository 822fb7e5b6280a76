// SPDX-License-Identifier: Apache-2.0

internal import GRDB
package import PropertyList
package import Replication

/// What a remote change did to a store's visible values.
package struct VisibleChange: Equatable, Sendable {
    /// The keys whose visible value has changed, sorted.
    package var keys: [Key]
    /// The origins of the entries that these keys now have. Keys that were dropped have none.
    package var origins: Set<Origin>
}

extension Store {
    /// Whether the store is synced: an app's store that takes part in the account's sync and was not forgotten.
    package var isReplicated: Bool { isSynchronized && !isForgotten && !isLayer }
}

extension Store: Joinable {
    /// The dots that the shared state has taken in.
    package var vector: VersionVector { shared.vector }

    /// The keys that have an entry in the shared state, including tombstones and hidden entries.
    package var keys: [Key] {
        shared.records.filter { !$0.value.isDropped }.map(\.key)
    }

    /// The entry under a key, without its value.
    package func version(of key: Key) -> EntryVersion? {
        guard let record = shared.records[key], !record.isDropped else { return nil }
        return EntryVersion(stamp: record.stamp, n: record.n)
    }

    /// The entry under a key.
    package func entry(for key: Key) -> Entry? { shared.records[key]?.entry }

    /// Whether this device wrote the entry under a key before the account's values arrived.
    package func isProvisionalHere(_ key: Key) -> Bool {
        guard let record = shared.records[key] else { return false }
        return record.stamp.isProvisional && record.cause.isOwn && !record.isDropped
    }
}

extension Store {
    /// Stages what a join decided, to be committed with ``UserDatabase/commit()``.
    /// - Parameter cause: `.joined`, or `.downloaded` for the account's first complete download, after which writes are
    ///   ordinary and the previous account's values are no longer shown.
    package func stage(_ plan: JoinPlan, cause: Cause) -> VisibleChange {
        let contents = plan.taken.map { key, entry in
            (key, entry, Record.Content(encoded: entry.value, key: key, limits: limits))
        }
        let arrives = cause == .downloaded && !shared.isDownloaded
        var changed = Set(contents.filter { changesView($0.0, to: $0.2) }.map(\.0))
        changed.formUnion(plan.dropped.filter { changesView($0, to: .dropped) })
        if arrives { changed.formUnion(keysOnlyInPreviousValues(besides: plan)) }

        database.willStage(self)
        if !changed.isEmpty { generation += 1 }
        let time = database.environment.time()
        for (key, entry, content) in contents {
            append(
                key, to: shared, stamp: entry.stamp, n: entry.n, content: content,
                generation: generationOf(key, changed), cause: cause, time: time)
        }
        for key in plan.dropped {
            guard let record = shared.records[key] else { continue }
            append(
                key, to: shared, stamp: record.stamp, n: record.n, content: .dropped,
                generation: generationOf(key, changed), cause: .dropped, time: time)
        }
        stageVector(plan.vector, isAlone: plan.taken.isEmpty && plan.dropped.isEmpty)
        if arrives { stageArrival() }
        return VisibleChange(keys: changed.sorted(), origins: Set(changed.compactMap { plan.taken[$0]?.stamp.origin }))
    }

    private func changesView(_ key: Key, to content: Record.Content) -> Bool {
        if localKeys.contains(key) { return false }
        if case .value(let new, _) = content { return value(for: key) != new }
        return value(for: key) != nil
    }

    /// The store's generation if the key's visible value changes; otherwise the generation in which it last changed.
    private func generationOf(_ key: Key, _ changed: Set<Key>) -> UInt64 {
        changed.contains(key) ? generation : shared.records[key]?.generation ?? 0
    }

    private func keysOnlyInPreviousValues(besides plan: JoinPlan) -> [Key] {
        guard let previous else { return [] }
        return previous.records.keys.filter {
            plan.taken[$0] == nil && shared.records[$0] == nil && changesView($0, to: .dropped)
        }
    }

    private func stageVector(_ vector: VersionVector, isAlone: Bool) {
        let (id, old) = (shared.id, shared.vector)
        shared.vector.formUnion(vector)
        let news = vector.subtracting(old).dots
        if news.isEmpty { return }
        // The version vector alone needs a sequence too, because what was published is no longer everything.
        if isAlone { shared.sequence += 1 }
        let sequence = isAlone ? shared.sequence : nil
        database.enqueue(replica: shared, in: self) { db in
            for dot in news { try db.saveVector(of: id, dot) }
            if let sequence { try db.saveSequence(sequence, of: id) }
        }
    }

    /// Records in the database that the account's values have not arrived, so that this is known after a restart too.
    package func noteWaiting() throws(EngineError) {
        if shared.isStored { return }
        database.willStage(self)
        database.enqueue(replica: shared, in: self) { _ in }
        try database.commit()
    }

    private func stageArrival() {
        shared.isDownloaded = true
        let id = shared.id
        database.enqueue(replica: shared, in: self) { db in
            try db.run(sql: "UPDATE replica SET downloaded = 1 WHERE id = ?", arguments: [id])
        }
        guard previous != nil else { return }
        previous = nil
        // Keys that disappear with the previous account's values have no row that records it.
        knownFrom = generation
        database.enqueueGeneration(of: self)
    }
}

extension Database {
    /// Raises the greatest n that a replica has taken in of a dot's origin.
    func saveVector(of replica: Int64, _ dot: Dot) throws {
        try run(
            sql: """
                INSERT INTO context (replica, origin, n) VALUES (?, ?, ?)
                ON CONFLICT (replica, origin) DO UPDATE SET n = max(n, excluded.n)
                """,
            arguments: [replica, Int64(bitPattern: dot.origin.bits), Int64(bitPattern: dot.n)])
    }

    /// Sets a store's least generation, and the generation from which its changes are known.
    func saveGeneration(_ generation: UInt64, knownFrom: UInt64, of store: Int64) throws {
        try run(
            sql: "UPDATE store SET generation = ?, known_from = ? WHERE id = ?",
            arguments: [Int64(bitPattern: generation), Int64(bitPattern: knownFrom), store])
    }
}
