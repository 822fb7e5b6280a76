// SPDX-License-Identifier: Apache-2.0

package import PropertyList
internal import Replication

extension Store {
    /// Stages setting and removing keys as one change, to be committed with ``UserDatabase/commit()``.
    ///
    /// Setting a key to its present value (type included) is no change, unless that value is shown of the account that
    /// was left. A call without changes takes no generation.
    /// - Parameters:
    ///   - values: the keys to set. None may occur twice, or be in `removed`.
    ///   - removed: the keys to remove; absent ones are ignored.
    ///   - expected: the generation that the store must be at, if given.
    ///   - past: when the change was made, in microseconds since 1970, if that isn't now.
    /// - Returns: the keys whose visible value has changed.
    /// - Throws: `EngineError.key`, `.value`, `.quota` or `.conflict`; then nothing has been staged.
    @discardableResult
    package func stage(
        setting values: [(Key, Value)], removing removed: [Key], ifGeneration expected: UInt64? = nil,
        setAt past: UInt64? = nil
    ) throws(EngineError) -> [Key] {
        if let expected, expected != generation { throw .conflict(generation: generation) }
        var writes: [Write] = []
        writes.reserveCapacity(values.count + removed.count)
        var changed: [Key] = []
        for (key, value) in values {
            let write = write(key)
            if write.old?.value == value { continue }
            writes.append(write.setting(value, size: try validate(value, for: key, among: values)))
            // What is still shown of another account isn't this one's until it is written.
            if visibleValue(before: write) != value { changed.append(key) }
        }
        for key in removed {
            let write = write(key)
            guard visibleValue(before: write) != nil else { continue }
            writes.append(write)
            changed.append(key)
        }
        if writes.isEmpty { return [] }
        try checkLimits(writes)

        database.willStage(self)
        generation += 1
        let time = database.environment.time()
        for write in writes { stage(write, time: time, setAt: min(past ?? time, time)) }
        return changed
    }

    /// Whether setting a key to a value is no change.
    package func holds(_ value: Value, for key: Key) -> Bool {
        (localKeys.contains(key) ? local : shared).records[key]?.value == value
    }

    /// Checks the rules for one key and its value, and returns the value's size. Too large a value is a quota error.
    func validate(_ value: Value, for key: Key, among values: [(Key, Value)]) throws(EngineError) -> Int {
        if let violation = key.violation(limit: limits.keyLength) { throw .key(violation) }
        do { return try value.validate(limits) } catch {
            guard case .tooLarge(let size, let limit) = error else { throw .value(key, error) }
            let keys = values.map(\.0).sorted()
            throw .quota(QuotaViolation(limit: .valueBytes, maximum: limit, used: 0, needed: size, keys: keys))
        }
    }

    /// A change of a key, with the record that it replaces, because looking that up costs as much as all the rest.
    private struct Write {
        let key: Key
        let isLocal: Bool
        let old: Record?
        var content = Record.Content.tombstone

        func setting(_ value: Value, size: Int) -> Write {
            Write(key: key, isLocal: isLocal, old: old, content: .value(value, size: size))
        }
    }

    /// Makes the removal of a key.
    private func write(_ key: Key) -> Write {
        let isLocal = localKeys.contains(key)
        return Write(key: key, isLocal: isLocal, old: (isLocal ? local : shared).records[key])
    }

    /// Returns what ``value(for:)`` has for the key of a write that is not staged yet.
    private func visibleValue(before write: Write) -> Value? {
        if let old = write.old { return old.value }
        return write.isLocal ? nil : previous?.records[write.key]?.value
    }

    private func stage(_ write: Write, time: UInt64, setAt past: UInt64) {
        let replica = write.isLocal ? local : shared
        let stamp = Stamp(
            after: write.old?.stamp, wall: past / 1000, origin: database.origin,
            isProvisional: !replica.isDownloaded)
        append(
            write.key, to: replica, replacing: write.old, stamp: stamp, n: nil, content: write.content,
            generation: generation, cause: .written, time: time)
    }

    /// Moves device-local values whose keys are no longer local into the shared state.
    ///
    /// If the shared state already has an entry, the value only leaves the device-local ones, and becomes history there.
    func stageReleased() {
        let released = local.records.compactMap { key, record in
            record.value.flatMap { localKeys.contains(key) ? nil : (key, $0, record.size) }
        }
        let time = database.environment.time()
        for (key, value, size) in released {
            if shared.records[key]?.isDropped != false {
                stage(write(key).setting(value, size: size), time: time, setAt: time)
            }
            let stamp = Stamp(
                after: local.records[key]?.stamp, wall: time / 1000, origin: database.origin, isProvisional: false)
            append(
                key, to: local, stamp: stamp, n: nil, content: .tombstone, generation: generation, cause: .migrated,
                time: time)
        }
    }

    /// Changes a record of a replica in memory, and queues its row for the database.
    /// - Parameter n: the dot's n; `nil` for a write of this device, whose n is the row's sequence.
    func append(
        _ key: Key, to replica: Replica, stamp: Stamp, n: UInt64?, content: Record.Content, generation: UInt64,
        cause: Cause, time: UInt64
    ) {
        append(
            key, to: replica, replacing: replica.records[key], stamp: stamp, n: n, content: content,
            generation: generation, cause: cause, time: time)
    }

    private func append(
        _ key: Key, to replica: Replica, replacing old: Record?, stamp: Stamp, n: UInt64?, content: Record.Content,
        generation: UInt64, cause: Cause, time: UInt64
    ) {
        replica.sequence += 1
        var record = Record(
            stamp: stamp, n: n ?? replica.sequence, content: content, generation: generation,
            sequence: replica.sequence, cause: cause)
        undo?.records.append((replica, key, old))
        if let old {
            replica.retire(old, before: &record)
            database.space.noteRetired(old.size)
        }
        replica.oldestLoss = min(replica.oldestLoss, time)
        if cause.isOwn { replica.vector.insert(Dot(origin: stamp.origin, n: record.n)) }
        replica.replace(key, old, by: record)
        database.enqueue(
            ChangeRow(
                replica: replica.id, sequence: replica.sequence, generation: generation, stamp: stamp, n: n,
                cause: cause, time: time),
            key: key, content: content, of: replica, in: self)
    }

    // MARK: Limits

    /// Refuses writes that would make the shared or the device-local part exceed a limit, or exceed it further.
    private func checkLimits(_ writes: [Write]) throws(EngineError) {
        try checkLimits(writes, ofLocal: false, shared.usage)
        try checkLimits(writes, ofLocal: true, local.usage)
    }

    private func checkLimits(_ writes: [Write], ofLocal isLocal: Bool, _ used: Usage) throws(EngineError) {
        var after = used
        for write in writes where write.isLocal == isLocal { after.replace(write.old?.content, by: write.content) }
        if after.keys > max(limits.keys, used.keys) {
            throw quota(
                .keys, maximum: limits.keys, used: used.keys, needed: after.keys,
                writes.filter { $0.isLocal == isLocal })
        }
        if after.bytes > max(limits.totalBytes, used.bytes) {
            throw quota(
                .totalBytes, maximum: limits.totalBytes, used: used.bytes, needed: after.bytes,
                writes.filter { $0.isLocal == isLocal })
        }
    }

    private func quota(
        _ limit: QuotaViolation.Limit, maximum: Int, used: Int, needed: Int, _ writes: [Write]
    ) -> EngineError {
        let keys = writes.filter { $0.content.value != nil }.map(\.key).sorted()
        return .quota(QuotaViolation(limit: limit, maximum: maximum, used: used, needed: needed, keys: keys))
    }
}
