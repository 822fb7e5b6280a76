// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication
internal import StoreEngine
internal import SyncEngine

extension WholeDevice {
    func write(store index: Int, key: Int, number: Int64, removes: Bool) {
        write(store: index, key: key, number: number, removes: removes, isRoomless: false)
    }

    /// - Parameter isRoomless: whether the disk is full, so that the write may be refused.
    func write(store index: Int, key: Int, number: Int64, removes: Bool, isRoomless: Bool) {
        guard let process else { return }
        let (store, name) = (process.store(index), world.names.keys[key])
        let (known, usage, generation) = (store.vector, store.usage, store.generation)
        process.verify()
        do throws(EngineError) {
            let value = world.names.value(of: number)
            let changed = try store.stage(setting: removes ? [] : [(name, value)], removing: removes ? [name] : [])
            if changed.isEmpty { return }
            try process.database.commit()
        } catch {
            if case .quota = error { return }
            // A refused write must not change anything.
            if !isRoomless { world.report("device \(self.number) can't write: \(error)") }
            return process.verify()
        }
        let shown = removes ? nil : world.names.value(of: number)
        if store.value(for: name) != shown { world.report("I7: a write is not there") }
        if store.generation <= generation { world.report("I14: a write without a generation") }
        checkQuota(store, before: usage)
        world.acknowledge(
            self, store: index, key: key, number: number, removes: removes, store.version(of: name), knowing: known)
        process.noteOwnWrite(index)
    }

    private func checkQuota(_ store: Store, before: Usage) {
        let (usage, limits) = (store.usage, world.conditions.limits)
        if usage.keys > limits.keys && usage.keys > before.keys { world.report("I13: too many keys were accepted") }
        if usage.bytes > limits.totalBytes && usage.bytes > before.bytes {
            world.report("I13: too many bytes were accepted")
        }
    }

    /// Writes a key that is local on every second device, and a record that no device may show.
    func writeLocal(number: Int64) {
        guard let process else { return }
        let store = process.store(0)
        do throws(EngineError) {
            if world.conditions.hazards.contains(.localKeys) {
                try store.stage(setting: [(Key(unchecked: "local"), .integer(number))], removing: [])
                try process.database.commit()
                process.noteOwnWrite(0)
            }
            let hazards = world.conditions.hazards
            if hazards.contains(.hiddenRecords), !hazards.contains(.quota), store.isDownloaded {
                try joinHiddenRecord(number, to: store)
                process.sync.noteLocalChange()
            }
        } catch {
            if case .quota = error { return }
            world.report("device \(self.number) can't write: \(error)")
        }
    }

    /// Joins a record that breaks the rules, as another program may have made it, so that this device publishes it. No
    /// device may show the record, and none may lose it.
    private func joinHiddenRecord(_ number: Int64, to store: Store) throws(EngineError) {
        guard let process else { return }
        let stamp = Stamp(
            isProvisional: false, wall: 1, counter: 0, origin: Origin(bits: 0xBAD0_0000_0000_0000 + UInt64(number)))
        // No value; a string of U+FFFF; a value under the key "".
        let value =
            number % 4 == 0 ? [0xFF] : number % 2 == 0 ? [6, 3, 0xEF, 0xBF, 0xBF] : Value.integer(number).encoded()
        let entry = Entry(stamp: stamp, n: 1, value: value)
        let key = Key(unchecked: number % 2 == 0 ? "hidden" : "")
        let state = StoreState(entries: [key: entry], vector: VersionVector([stamp.origin: 1]))
        let plan = Join.plan(store, taking: state)
        let change = store.stage(plan, cause: .migrated)
        try process.database.commit()
        if let place { world.hidden[place, default: []].append(key) }
        if !change.keys.isEmpty { world.report("a record that breaks the rules was shown: \(change.keys)") }
    }
}
