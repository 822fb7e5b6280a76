// SPDX-License-Identifier: Apache-2.0

// What must hold in the end. All faults are over: every remaining device runs and is signed in, requests are answered,
// and everything carried has arrived. Once all is quiet, all devices must show the same values, namely the ledger's.

internal import PropertyList
internal import Replication
internal import Sealing
internal import StoreEngine

extension World {
    /// Ends all faults, signs the devices in to one account after the other, and judges each account.
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
            guard violation == nil, becomesQuiet(place), arrivesWhole(place) else { return }
            excuseUnread()
            judge(place)
            if violation != nil { return }
            afterwards(place)
            if violation != nil { return }
        }
    }

    var hasFaults: Bool { conditions.hazards.contains(.faultProfile) }
    /// Whether the loss of a head or segment may be noticed at any time. Those of a removed device may go as well.
    var mayNoticeLoss: Bool { hasStuckTags || hasForgottenDevice || hasLostObjects }
    /// Whether the remote has lost acknowledged objects, or may have.
    private var hasLostObjects: Bool { hasFaults || isEmptied || isRolledBack || attacker != nil }
    /// How often, at most, devices publish again because they take the cluster for a restored one: it names only a few
    /// transactions, and they know none of these. If it names three, a single publication has more, and they repeat it.
    var mostMistaken: Int {
        guard conditions.isCluster, conditions.mostTokens < 128 else { return 0 }
        return present.count * (conditions.mostTokens < 10 ? 4 : 1)
    }
    /// Whether the account is in blobs in a cluster, as encrypted accounts are.
    private var isInBlobs: Bool { conditions.isCluster && !keys.isEmpty }
    /// A time in which every device polls at least twice, in microseconds.
    var fewPolls: UInt64 { (conditions.givesHints ? 33 : 11) * minute }
    var present: [Device] { devices.filter { !$0.isGone } }

    /// Waits until no device writes to the remote any more.
    private func becomesQuiet(_ place: Place<Device.Blob>) -> Bool {
        // Every twentieth poll notices that a segment is gone, or that a head has changed under the same version.
        let mayLose = hasFaults || hasStuckTags || attacker != nil || movesToKeys
        let looks = mayLose ? isInBlobs ? WholeDevice.pollsUntilNoticed : Device.pollsUntilNoticed : 4
        let rest = looks * (conditions.givesHints ? 16 : 5) * minute
        let start = timeline.now
        // The daily heads make up for what a remote has lost, and for tombstones that only some have forgotten. From
        // them a clone that saw no foreign head learns that others seem to have seen its writes, and leaves its origin.
        // From the next ones it learns again what it has forgotten with that origin in its other stores.
        let days = conditions.hazards.contains(.fork) ? 3 : hasForgotten ? 2 : hasLostObjects ? 1 : 0
        ledger.excuse(.dayWaited, times: days)
        passDays(days)
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

    /// If a head needs segments that nobody can write again, because they went with a device or a power cut, lets the
    /// month pass after which the head is removed.
    private func arrivesWhole(_ place: Place<Device.Blob>) -> Bool {
        guard conditions.hazards.contains(where: \.losesDevices), present.contains(where: \.lacksParts) else {
            return true
        }
        ledger.excuse(.monthWaited)
        passDays(31)
        return becomesQuiet(place)
    }

    /// Lets days pass by every device's clock, so that daily work is done. They have 28 hours, so that a time from a
    /// clock that was hours ahead is a day old too.
    private func passDays(_ count: Int) {
        for _ in 0..<count {
            for device in present { device.clock += Int64(28 * hour / millisecond) }
            timeline.run(for: fewPolls)
        }
    }

    private func judge(_ place: Place<Device.Blob>) {
        for device in present { if let broken = device.check() { report("device \(device.number): \(broken)") } }
        judgeKeys()
        for store in 0..<conditions.stores { judge(place, store) }
        judgeHidden(place)
        guard violation == nil, let first = present.first else { return }
        ledger.hasSharedOrigins = hasLeftOrigin || conditions.hazards.contains(.fork)
        for store in 0..<conditions.stores {
            let values = first.values(of: store)
            for key in 0..<conditions.keys {
                let cell = Cell(place: place.number, store: store, key: key)
                let broken = ledger.judge(cell, found: values[key], keepsTombstones: !hasForgotten)
                if let broken { report(broken) }
            }
        }
    }

    /// Checks that all devices have one key, and none that was replaced.
    private func judgeKeys() {
        let found = Set(present.map(\.key))
        if found.count > 1 { report("I21: the devices have \(found.count) keys") }
        if let key = found.first ?? nil, keyAdoptions.contains(where: { $0.from == key }) {
            report("I21: the account is under a key that was replaced")
        }
    }

    /// Checks that records which no device may show are still held, except those of which a loss took the only copy.
    private func judgeHidden(_ place: Place<Device.Blob>) {
        guard let keys = hidden[place.number] else { return }
        for device in present {
            let entries = device.state(of: 0).entries
            for key in keys where entries[key] == nil {
                report("I2: device \(device.number) lacks a record that breaks the rules")
            }
        }
    }

    /// Checks that all devices hold and show the same.
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
            } else if other.entries != state.entries {
                judgeDifference("\(first.number) and \(device.number)", store, state.entries, other.entries)
            }
            if device.overflow(of: store) != overflow { report("I13: the keys that do not fit differ") }
        }
        judgeVector(state, place, store)
    }

    /// Judges that two devices which show the same hold different entries.
    private func judgeDifference(_ devices: String, _ store: Int, _ a: [Key: Entry], _ b: [Key: Entry]) {
        if hasForgotten { return ledger.excuse(.forgottenEntries) }
        if kept(a) == kept(b) { return ledger.excuse(.earlyTombstones) }
        report("I5: devices \(devices) hold different entries of store \(store)")
    }

    /// The entries that no device may have forgotten. An engine whose clock is far ahead takes every tombstone for old.
    private func kept(_ entries: [Key: Entry]) -> [Key: Entry] {
        let isEarly = Device.hasTasks && present.contains { $0.clock > Int64(90 * day / millisecond) }
        return isEarly ? entries.filter { $0.value.value != nil } : entries
    }

    /// Checks that each write which the version vector covers is there, or a later one.
    private func judgeVector(_ state: StoreState, _ place: Place<Device.Blob>, _ store: Int) {
        let (place, keys) = (place.number, conditions.keys)
        if ledger.verdict(on: state, place: place, store: store, keys: keys) == nil { return }
        if hasForgotten { return ledger.excuse(.goneAfterForgetting) }
        let unshared = ledger.verdict(on: state, place: place, store: store, keys: keys, isShared: isShared)
        if let unshared { report(unshared) } else { ledger.excuse(.goneAfterFork) }
    }
}
