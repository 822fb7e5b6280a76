// SPDX-License-Identifier: Apache-2.0

// Checks once all devices are quiet and show what they should: old heads reappear, a device is added, one writes.

internal import PropertyList
internal import Replication
internal import StoreEngine

extension World {
    /// Checks that what must have no effect has none, and that what must have one has it.
    func afterwards(_ place: Place<Device.Blob>) {
        judgeHeads(place)
        replay(place)
        if violation == nil, endsWithMonth, place.number == 0 { passMonth(place) }
        if violation == nil { welcomeNewDevice(place) }
        if violation == nil { writeOnce(place) }
    }

    /// Checks the number of heads. A device has one, and until its next upload one under its former origin. A restored
    /// device does not know all its former origins.
    private func judgeHeads(_ place: Place<Device.Blob>) {
        func heads() -> Int { place.names(seenBy: present[0].number).count { $0.hasPrefix("h/") } }
        if conditions.hazards.contains(where: \.losesDevices) || hasFaults || attacker != nil {
            if heads() > 2 * devices.count { ledger.excuse(.moreHeads) }
            return
        }
        // A head that isn't the last one that a device wrote under an origin that it has left stays for a day.
        for date in 0..<3 where violation == nil && heads() > 2 * devices.count { passDay(date, of: present) }
        let left = heads()
        if left > 2 * devices.count { report("I16: \(devices.count) devices have \(left) heads") }
    }

    /// Makes old heads reappear.
    private func replay(_ place: Place<Device.Blob>) {
        let states = (0..<conditions.stores).map { store in present.map { $0.state(of: store) } }
        let (requests, puts, left, due) = (place.requests, place.headPuts, leftOrigins, dailyHeads(place))
        // Heads of a shared origin count only until two devices wrote under it: one dot may name two writes since,
        // which a device that has left the origin takes for news that others seem to have seen (docs/decisions/0015).
        let remembered = place.rememberedHeads
        let sharedHeads = Dictionary(shared.values.map { ("h/\($0.origin)", $0.time) }) { min($0, $1) }
        let heads = remembered.indices.filter { index in
            let head = remembered[index]
            return sharedHeads[head.name].map { head.time < $0 } ?? true
        }
        ledger.excuse(.unplayedHead, times: remembered.count - heads.count)
        for index in Set([heads.first, heads.dropFirst(heads.count / 2).first].compactMap(\.self)).sorted() {
            place.leaveCopy(of: index)
        }
        timeline.run(for: fewPolls)
        for (store, before) in states.enumerated() {
            for (device, state) in zip(present, before) { judgeReplay(device, place, store, since: state) }
        }
        // A device that learns only from an old head that a clone used the same dots publishes under another origin.
        let count = place.headPuts - puts
        judgePublications(
            count, due: due, more: mayNoticeLoss ? count : leftOrigins - left, "somebody published though nobody wrote")
        let anHour = (place.requests - requests) * Int(hour / fewPolls)
        let most = present.count * 16 * (12 + 4 * place.names(seenBy: present[0].number).count)
        if anHour > most { report("I16: \(anHour) requests in an idle hour") }
    }

    /// Why there may be more publications than are due.
    private var reasonToPublish: Excuse { mayNoticeLoss ? .publishedAfterLoss : .publishedAfterCopy }

    /// Reports more publications than are due, unless there is an excuse for them.
    /// - Parameter more: how many more ``reasonToPublish`` may lead to.
    private func judgePublications(_ count: Int, due: Int, more: Int, _ violation: String) {
        if count <= due { return }
        if count > due + more + mostMistaken { return report("I10: \(violation)") }
        ledger.excuse(count > due + more ? .publishedForShortHistory : reasonToPublish)
    }

    private func judgeReplay(_ device: Device, _ place: Place<Device.Blob>, _ store: Int, since before: StoreState) {
        let state = device.state(of: store)
        if state == before { return }
        // A device that has left an origin no longer covers that origin's dots, and has given its writes new ones.
        let (old, new) = (before.entries.mapValues(\.value), state.entries.mapValues(\.value))
        if hasLeftOrigin, old == new { return ledger.excuse(.otherDots) }
        let keys = Set(new.keys).union(old.keys).filter { new[$0] != old[$0] }
        // An old head may bring back what the remote had lost with it.
        let isNew = { (write: Write) in state.vector.contains(write.dot) && !before.vector.contains(write.dot) }
        let news = ledger.writes(place.number, store: store, where: isNew)
        if keys.isEmpty, !news.isEmpty, news.allSatisfy(\.isExcused) { return ledger.excuse(.lostBack) }
        if !keys.isEmpty, keys.allSatisfy({ mayBeBack($0, place, store, isNew) }) { return ledger.excuse(.lostBack) }
        report("I17: an old head that turned up again changed \(keys.sorted()) of store \(store) on \(device.number)")
    }

    /// Whether an excused write to a key may have come back. Defaults, and writes under an origin that was left, have
    /// other dots by now.
    private func mayBeBack(
        _ key: Key, _ place: Place<Device.Blob>, _ store: Int, _ isNew: (Write) -> Bool
    ) -> Bool {
        guard let index = Names.index(of: key) else { return false }
        let writes = ledger.writes[Cell(place: place.number, store: store, key: index)] ?? []
        return writes.contains { $0.isExcused && (hasLeftOrigin || $0.isProvisional || isNew($0)) }
    }

    /// How many devices may write their daily head in the next hours. A head that was on its way when its device's
    /// clock was set is of another day.
    private func dailyHeads(_ place: Place<Device.Blob>) -> Int {
        present.count { device in
            let put = place.lastPuts[device.number, default: 0]
            let isOfOtherDay = clockSet[device.number].map { put < $0 + minute } ?? false
            return put + 22 * hour < timeline.now || isOfOtherDay
        }
    }

    /// Adds a device, and checks that it finds everything.
    private func welcomeNewDevice(_ place: Place<Device.Blob>) {
        guard let first = present.first else { return }
        let (puts, due) = (place.headPuts, dailyHeads(place))
        let device = addDevice()
        device.start()
        signIn(device, to: place.number)
        timeline.run(for: fewPolls)
        if !device.isSettled { return report("I11: a new device can't read what is there") }
        for store in 0..<conditions.stores where device.values(of: store) != first.values(of: store) {
            report("I11: a new device finds something else in store \(store)")
        }
        // The device publishes once, to show that it exists.
        let count = place.headPuts - puts
        judgePublications(
            count, due: 1 + due, more: mayNoticeLoss ? count : 0, "a new device that wrote nothing published")
    }

    /// Makes one write, and checks that it is published once and reaches all devices in time.
    private func writeOnce(_ place: Place<Device.Blob>) {
        let (puts, due) = (place.headPuts, dailyHeads(place))
        let number = nextNumber()
        // A removal is never refused, and if there is nothing to remove there is room for a value.
        let writer = present[chance.below(present.count)]
        writer.write(store: 0, key: 0, number: number, removes: writer.values(of: 0)[0] != nil)
        executor.drain()
        if ledger.writes[Cell(place: place.number, store: 0, key: 0)]?.last?.number != number { return }
        // Tombstones may be forgotten now, except one that the remote does not have yet.
        timeline.run(for: 100 * millisecond)
        if conditions.hazards.contains(.forget) { _ = writer.forgetTombstones(&chance) }
        // Coalescing, and the longest time between two polls. A folder also needs time to carry files.
        timeline.run(for: (conditions.givesHints ? 16 : 6) * minute + (conditions.isFolder ? minute : 0))
        let wanted = writer.values(of: 0)[0]
        if present.contains(where: { $0.values(of: 0)[0] != wanted }) { report("I15: a write did not arrive in time") }
        // The loss of a segment or a head may be noticed only now.
        let mayBeAll = mayNoticeLoss || !conditions.hazards.isDisjoint(with: [.clone, .fork])
        let count = place.headPuts - puts
        if count < 1 { report("I10: one write was not published") }
        judgePublications(
            count, due: 1 + due, more: mayBeAll ? present.count - due : 0, "one write was published \(count) times")
    }
}
