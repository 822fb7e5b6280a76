// SPDX-License-Identifier: Apache-2.0

// What has to be so in the end. All is well now: everybody is there and signed in, requests are answered, and what was
// carried has arrived. Then all becomes quiet, and everybody shows the same, which is what the ledger says.

internal import PropertyList
internal import Replication
internal import Sealing
internal import StoreEngine

extension World {
    /// Lets all be well, account by account, and looks.
    func healAndJudge() {
        isWell = true
        for place in places {
            attacker?.end(keys[place.number].marker, at: place.number)
            place.heal()
        }
        for device in devices where !device.isGone {
            device.dieAfter(writes: nil)
            if !device.isRunning { device.start() }
            device.endChores()
        }
        for place in places {
            trace.note(timeline.now, 4, line: "all is well, and everybody is signed in to account \(place.number)")
            for device in devices where !device.isGone { signIn(device, to: place.number) }
            timeline.run(for: minute)
            for device in devices where !device.isGone { device.syncNow() }
            guard violation == nil, becomesQuiet(place) else { return }
            excuseUnread()
            judge(place)
            if violation != nil { return }
            afterwards(place)
            if violation != nil { return }
        }
    }

    var hasFaults: Bool { conditions.hazards.contains(.faultProfile) }
    /// That a head or a segment is gone may be noticed at any time: what a forgotten device named may go, too.
    var mayNoticeLoss: Bool { hasStuckTags || hasForgottenDevice || hasLostObjects }
    /// The remote has lost what was acknowledged, or may have.
    private var hasLostObjects: Bool { hasFaults || isEmptied || isRolledBack || attacker != nil }
    /// So many publish once more, at most, since they know none of the few transactions that a cluster names, and take
    /// it for one that was restored. Where it names three, one publication is more than that, and they go on for a while.
    var mostMistaken: Int {
        guard conditions.isCluster, conditions.mostTokens < 128 else { return 0 }
        return present.count * (conditions.mostTokens < 10 ? 4 : 1)
    }
    /// Blobs are in a cluster where the account is encrypted.
    private var isInBlobs: Bool { conditions.isCluster && !keys.isEmpty }
    /// In which everybody looks at the remote at least twice.
    var fewLooks: UInt64 { (conditions.tellsOfChanges ? 33 : 11) * minute }
    var present: [Device] { devices.filter { !$0.isGone } }

    /// Waits until nobody writes to the remote any more.
    private func becomesQuiet(_ place: Place<Device.Blob>) -> Bool {
        // That a segment is gone, or a head another one under the same tag, is noticed with every twentieth look.
        let mayLose = hasFaults || hasStuckTags || attacker != nil || movesToKeys
        let looks = mayLose ? isInBlobs ? WholeDevice.looksUntilNoticed : Device.looksUntilNoticed : 4
        let rest = looks * (conditions.tellsOfChanges ? 16 : 5) * minute
        let start = timeline.now
        // Tombstones that not all have forgotten, and what a remote has lost, are made up for by the daily heads. With
        // these a clone that saw no stranger's head hears what others believe to have seen of its writes, leaves its
        // origin, and with the next ones learns again what it has forgotten with that of its other stores.
        if conditions.hazards.contains(.fork) {
            passDays(3)
        } else if hasForgotten {
            passDays(2)
        } else if hasLostObjects {
            passDays(1)
        }
        for _ in 0..<60 {
            timeline.run(for: 12 * minute)
            if violation != nil { return false }
            let isQuiet = max(place.lastHeadPut, start) + rest < timeline.now
            if isQuiet, present.allSatisfy({ $0.isSettled && !$0.isMoving }) { return true }
        }
        let restless = present.filter { !$0.isSettled }.map { "device \($0.number)" }
        report(
            "I10: never quiet; \(restless.isEmpty ? "heads are written again and again" : "\(restless) not settled")")
        return false
    }

    /// Days pass by everybody's clock, and what waits for the next day is done. What a clock that was hours ahead has
    /// dated is a day old, too.
    private func passDays(_ count: Int) {
        for _ in 0..<count {
            for device in present { device.clock += Int64(28 * hour / millisecond) }
            timeline.run(for: fewLooks)
        }
    }

    private func judge(_ place: Place<Device.Blob>) {
        for device in present { if let broken = device.check() { report("device \(device.number): \(broken)") } }
        judgeKeys()
        for store in 0..<conditions.stores { judge(place, store) }
        judgeHidden(place)
        guard violation == nil, let first = present.first else { return }
        ledger.hasMovedOrigins = hasLeftOrigin || conditions.hazards.contains(.fork)
        for store in 0..<conditions.stores {
            let values = first.values(of: store)
            for key in 0..<conditions.keys {
                let cell = Cell(place: place.number, store: store, key: key)
                let broken = ledger.verdict(cell, found: values[key], keepsTombstones: !hasForgotten)
                if let broken { report(broken) }
            }
        }
    }

    /// All have one key, and none that was replaced.
    private func judgeKeys() {
        let found = Set(present.map(\.key))
        if found.count > 1 { report("I21: the devices have \(found.count) keys") }
        if let key = found.first ?? nil, goneOver.contains(where: { $0.from == key }) {
            report("I21: the account is under a key that was replaced")
        }
    }

    /// What nobody may show is there all the same.
    private func judgeHidden(_ place: Place<Device.Blob>) {
        if conditions.hazards.contains(where: \.losesDevices) { return }
        for device in present {
            let entries = device.state(of: 0).entries
            for key in hidden[place.number, default: []] where entries[key] == nil {
                report("I2: device \(device.number) lacks a record that breaks the rules")
            }
        }
    }

    /// All have the same.
    private func judge(_ place: Place<Device.Blob>, _ store: Int) {
        guard let first = present.first else { return }
        let forged = attacker?.origins ?? []
        if present.contains(where: { $0.state(of: store).vector.dots.contains { forged.contains($0.origin) } }) {
            report("I19: what an attacker made was joined in store \(store)")
        }
        let (state, values, overflow) = (first.state(of: store), first.values(of: store), first.overflow(of: store))
        for device in present.dropFirst() {
            let other = device.state(of: store)
            if device.values(of: store) != values {
                report(
                    "I5: devices \(first.number) and \(device.number) show different values in store \(store): \(values) and \(device.values(of: store))"
                )
            } else if kept(other.entries) != kept(state.entries), !hasForgotten {
                report("I5: devices \(first.number) and \(device.number) hold different entries of store \(store)")
            }
            if device.overflow(of: store) != overflow { report("I13: the keys that do not fit differ") }
        }
        judgeVector(state, place, store)
    }

    /// The entries that nobody may have forgotten: an engine whose clock is years ahead takes every tombstone for old.
    private func kept(_ entries: [Key: Entry]) -> [Key: Entry] {
        let isEarly = Device.hasTasks && present.contains { $0.clock > Int64(90 * day / millisecond) }
        return isEarly ? entries.filter { $0.value.value != nil } : entries
    }

    /// What a version vector has seen is there, or something that came after it.
    private func judgeVector(_ state: StoreState, _ place: Place<Device.Blob>, _ store: Int) {
        if conditions.hazards.contains(.fork) || hasForgotten { return }
        let broken = ledger.verdict(on: state, place: place.number, store: store, keys: conditions.keys)
        if let broken { report(broken) }
    }
}
