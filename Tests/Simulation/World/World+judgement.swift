// SPDX-License-Identifier: Apache-2.0

// What has to be so in the end. All is well now: everybody is there and signed in, requests are answered, and what was
// carried has arrived. Then all becomes quiet, and everybody shows the same, which is what the ledger says.

internal import PropertyList
internal import StoreEngine

extension World {
    /// Lets all be well, account by account, and looks.
    func healAndJudge() {
        for place in places { place.heal() }
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
            judge(place)
            if violation != nil { return }
            afterwards(place)
            if violation != nil { return }
        }
    }

    private var hasWeather: Bool { conditions.hazards.contains(.weather) }
    /// That a head or a segment is gone may be noticed at any time: what a forgotten device named may go, too.
    /// And whoever no longer knows the last of the transactions that a cluster names takes it for one that was restored.
    private var mayNoticeLoss: Bool {
        hasWeather || hasForgottenDevice || conditions.isCluster && conditions.mostTokens < 128
    }
    private var present: [Device] { devices.filter { !$0.isGone } }

    /// Waits until nobody writes to the remote any more.
    private func becomesQuiet(_ place: Place<Device.Blob>) -> Bool {
        // That a segment is gone is noticed with every twentieth look.
        let rest = (hasWeather ? Device.looksUntilNoticed : 4) * (conditions.tellsOfChanges ? 16 : 5) * minute
        let start = timeline.now
        // Tombstones that not all have forgotten, and what a remote has lost, are made up for by the daily heads; and
        // with these a twin that saw no stranger's head hears what others believe to have seen of its writes.
        let isDoubtful = hasForgotten || conditions.hazards.contains(.twin)
        if isDoubtful || hasWeather { passDays(isDoubtful ? 2 : 1) }
        for _ in 0..<60 {
            timeline.run(for: 12 * minute)
            if violation != nil { return false }
            let isQuiet = max(place.lastHeadPut, start) + rest < timeline.now
            if isQuiet, present.allSatisfy(\.isSettled) { return true }
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
            timeline.run(for: (conditions.tellsOfChanges ? 33 : 11) * minute)
        }
    }

    private func judge(_ place: Place<Device.Blob>) {
        for device in present { if let broken = device.check() { report("device \(device.number): \(broken)") } }
        for store in 0..<conditions.stores { judge(place, store) }
        judgeHidden(place)
        guard violation == nil, let first = present.first else { return }
        ledger.hasMovedOrigins = hasLeftOrigin || conditions.hazards.contains(.twin)
        for store in 0..<conditions.stores {
            let values = first.values(of: store)
            for key in 0..<conditions.keys {
                let cell = Cell(place: place.number, store: store, key: key)
                let broken = ledger.verdict(cell, found: values[key], keepsTombstones: !hasForgotten)
                if let broken { report(broken) }
            }
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
        let (state, values, overflow) = (first.state(of: store), first.values(of: store), first.overflow(of: store))
        for device in present.dropFirst() {
            let other = device.state(of: store)
            if device.values(of: store) != values {
                report(
                    "I5: devices \(first.number) and \(device.number) show different values in store \(store): \(values) and \(device.values(of: store))"
                )
            } else if other.entries != state.entries, !hasForgotten {
                report("I5: devices \(first.number) and \(device.number) hold different entries of store \(store)")
            }
            if device.overflow(of: store) != overflow { report("I13: the keys that do not fit differ") }
        }
        judgeContext(state, place, store)
    }

    /// What a context has seen is there, or something that came after it.
    private func judgeContext(_ state: StoreState, _ place: Place<Device.Blob>, _ store: Int) {
        if conditions.hazards.contains(.twin) || hasForgotten { return }
        let broken = ledger.verdict(on: state, place: place.number, store: store, keys: conditions.keys)
        if let broken { report(broken) }
    }

    // MARK: And then

    /// What must not do anything does nothing, and what must do something does it.
    private func afterwards(_ place: Place<Device.Blob>) {
        replay(place)
        if violation == nil { welcomeNewDevice(place) }
        if violation == nil { writeOnce(place) }
    }

    /// Old heads turn up again.
    private func replay(_ place: Place<Device.Blob>) {
        let states = (0..<conditions.stores).map { store in present.map { $0.state(of: store) } }
        let (requests, puts, left, due) = (place.requests, place.headPuts, leftOrigins, dailyHeads(place))
        // Not those of the time when two wrote under one origin, one dot of which may name two writes.
        let heads = place.rememberedHeads.indices.filter { index in
            !sharedOrigins.contains { place.rememberedHeads[index] == "h/\($0)" }
        }
        for index in Set([heads.first, heads.dropFirst(heads.count / 2).first].compactMap(\.self)).sorted() {
            place.leaveCopy(of: index)
        }
        timeline.run(for: hour)
        for (store, before) in states.enumerated() {
            for (device, state) in zip(present, before) { judgeReplay(device, store, since: state) }
        }
        // Who learns only from an old head that a twin used the same dots publishes under another origin.
        if place.headPuts - puts > due + leftOrigins - left, !mayNoticeLoss {
            report("I10: somebody published though nobody wrote")
        }
        let most = present.count * 16 * (12 + 4 * place.names(seenBy: present[0].number).count)
        if place.requests - requests > most { report("I16: \(place.requests - requests) requests in an idle hour") }
    }

    private func judgeReplay(_ device: Device, _ store: Int, since before: StoreState) {
        let state = device.state(of: store)
        if state == before { return }
        // Who has left an origin has forgotten that it knew it, and has given what it wrote other dots.
        let (old, new) = (before.entries.mapValues(\.value), state.entries.mapValues(\.value))
        if hasLeftOrigin, old == new { return }
        let keys = Set(new.keys).union(old.keys).filter { new[$0] != old[$0] }
        report("I17: an old head that turned up again changed \(keys.sorted()) of store \(store) on \(device.number)")
    }

    /// How many devices may write their head in the next hours whatever happens, as they do each day. A head that was
    /// on its way when its device's clock was set is of another day.
    private func dailyHeads(_ place: Place<Device.Blob>) -> Int {
        present.count { device in
            let put = place.lastPuts[device.number, default: 0]
            let isOfOtherDay = clockSet[device.number].map { put < $0 + minute } ?? false
            return put + 22 * hour < timeline.now || isOfOtherDay
        }
    }

    /// A new device finds everything that is there.
    private func welcomeNewDevice(_ place: Place<Device.Blob>) {
        guard let first = present.first else { return }
        let (puts, due) = (place.headPuts, dailyHeads(place))
        let device = addDevice()
        place.heal()
        device.start()
        signIn(device, to: place.number)
        timeline.run(for: 20 * minute)
        if !device.isSettled { return report("I11: a new device can't read what is there") }
        for store in 0..<conditions.stores where device.values(of: store) != first.values(of: store) {
            report("I11: a new device finds something else in store \(store)")
        }
        // Once, to say that it is there.
        if place.headPuts > puts + due + 1, !mayNoticeLoss { report("I10: a new device that wrote nothing published") }
    }

    /// One write is published once, and reaches everybody in time.
    private func writeOnce(_ place: Place<Device.Blob>) {
        let (puts, due) = (place.headPuts, dailyHeads(place))
        let number = nextNumber()
        // A removal is never refused; and where nothing is to be removed there is always room.
        let writer = present[chance.below(present.count)]
        writer.write(store: 0, key: 0, number: number, removes: writer.values(of: 0)[0] != nil)
        executor.drain()
        if ledger.writes[Cell(place: place.number, store: 0, key: 0)]?.last?.number != number { return }
        // What is to be forgotten is, but not a removal that the remote does not have.
        timeline.run(for: 100 * millisecond)
        if conditions.hazards.contains(.forget) { _ = writer.forgetTombstones(&chance) }
        // Coalescing, the longest time between two looks, and where something carries files, its time.
        timeline.run(for: (conditions.tellsOfChanges ? 16 : 6) * minute + (conditions.isFolder ? minute : 0))
        let wanted = writer.values(of: 0)[0]
        if present.contains(where: { $0.values(of: 0)[0] != wanted }) { report("I15: a write did not arrive in time") }
        // That a segment or a head is gone may be noticed only now.
        let most = 1 + (mayNoticeLoss || !conditions.hazards.isDisjoint(with: [.clone, .twin]) ? present.count : due)
        let count = place.headPuts - puts
        if count < 1 || count > most { report("I10: one write was published \(count) times") }
    }
}
