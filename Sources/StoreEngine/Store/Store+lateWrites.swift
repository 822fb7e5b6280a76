// SPDX-License-Identifier: Apache-2.0

// Writes that a program made while it could not reach the service. What changed since then stays, and the value that
// loses goes into the key's history: docs/decisions/0025 and 0154.

package import PropertyList
internal import Replication

extension Store {
    /// Stages setting and removing keys, as ``stage(setting:removing:ifGeneration:)`` does, except for keys that changed
    /// later. These stay as they are, and the value that loses goes into the key's history.
    /// - Parameters:
    ///   - base: what changed after this generation is later.
    ///   - time: when the keys were set or removed, in microseconds since 1970. Of another device's change that arrived
    ///     since, its own time tells whether it is later; `nil` if it is in any case.
    /// - Returns: the keys whose visible value has changed.
    package func stage(
        setting values: [(Key, Value)], removing removed: [Key], unlessChangedSince base: UInt64,
        setAt time: UInt64? = nil
    ) throws(EngineError) -> [Key] {
        var later: Set<Key> = []
        for key in values.map(\.0) + removed where try hasChanged(key, since: base, setAt: time) { later.insert(key) }
        let losers = values.filter { later.contains($0.0) && value(for: $0.0) != $0.1 }
        // An invalid value is refused before anything is staged, even if it would lose.
        let sizes = try losers.map { (key, value) throws(EngineError) in try validate(value, for: key, among: values) }
        let keys = try stage(
            setting: values.filter { !later.contains($0.0) }, removing: removed.filter { !later.contains($0) },
            setAt: time)
        for (loser, size) in zip(losers, sizes) { stage(loser: loser.1, size: size, of: loser.0, setAt: time) }
        return keys
    }

    /// Returns whether a key certainly changed later.
    private func hasChanged(_ key: Key, since base: UInt64, setAt time: UInt64?) throws(EngineError) -> Bool {
        let isLocal = localKeys.contains(key)
        guard let record = (isLocal ? local : shared).records[key] else { return false }
        let isKnown = knowsChanges(since: base)
        // A later generation than the present one is another database's, as is an earlier one than this begins with.
        let isOfThis = base != 0 && base <= generation
        if isKnown || isOfThis && base >= database.generationBase, record.generation <= base { return false }
        if !isLocal, let time, !(try database.origins.isOwn(record.stamp.origin)) {
            return record.stamp.wall >= min(time, database.environment.time()) / 1000
        }
        guard isOfThis else { return false }
        // A salvage gives everything the generation at which its database begins, whatever is older in truth.
        return record.generation > base && (isKnown || record.generation != database.generationBase)
    }

    /// Puts a value into a key's history, as a change after which the key gets its present content back.
    ///
    /// The loser was never in the store, so it takes no dot. What was pending before is pending afterwards.
    private func stage(loser value: Value, size: Int, of key: Key, setAt time: UInt64?) {
        let isLocal = localKeys.contains(key)
        let replica = isLocal ? local : shared
        guard let present = replica.records[key] else { return }
        database.willStage(self)
        let now = database.environment.time()
        let stamp = Stamp(
            after: nil, wall: min(time ?? now, now) / 1000, origin: database.origin,
            isProvisional: !replica.isDownloaded)
        append(
            key, to: replica, stamp: stamp, n: present.n, content: .value(value, size: size),
            generation: present.generation, cause: .joined, time: now)
        append(
            key, to: replica, stamp: present.stamp, n: present.n, content: present.content,
            generation: present.generation, cause: isLocal ? .joined : present.cause, time: now)
    }
}
