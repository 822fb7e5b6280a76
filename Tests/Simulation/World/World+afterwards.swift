// SPDX-License-Identifier: Apache-2.0

// What comes after all are quiet and show what they should: old heads, a new device, another write.

internal import PropertyList
internal import Replication
internal import StoreEngine

extension World {
    /// What must not do anything does nothing, and what must do something does it.
    func afterwards(_ place: Place<Device.Blob>) {
        judgeHeads(place)
        replay(place)
        if violation == nil, endsWithMonth, place.number == 0 { passMonth(place) }
        if violation == nil { welcomeNewDevice(place) }
        if violation == nil { writeOnce(place) }
    }

    /// A device has one head, and one under the origin before until it uploads again. One that was put back does not know
    /// of all under which it wrote.
    private func judgeHeads(_ place: Place<Device.Blob>) {
        if conditions.hazards.contains(where: \.losesDevices) { return }
        let heads = place.names(seenBy: present[0].number).count { $0.hasPrefix("h/") }
        if hasFaults || attacker != nil { return }
        if heads > 2 * devices.count { report("I16: \(devices.count) devices have \(heads) heads") }
    }

    /// Old heads turn up again.
    private func replay(_ place: Place<Device.Blob>) {
        let states = (0..<conditions.stores).map { store in present.map { $0.state(of: store) } }
        let (requests, puts, left, due) = (place.requests, place.headPuts, leftOrigins, dailyHeads(place))
        // Not those of the time when two wrote under one origin, one dot of which may name two writes: who has left it
        // takes them for news that others believe to have seen (docs/decisions/0015).
        let remembered = place.rememberedHeads
        let sharedHeads = Dictionary(shared.values.map { ("h/\($0.origin)", $0.time) }) { min($0, $1) }
        let heads = remembered.indices.filter { index in
            let head = remembered[index]
            return sharedHeads[head.name].map { head.time < $0 } ?? true
        }
        for index in Set([heads.first, heads.dropFirst(heads.count / 2).first].compactMap(\.self)).sorted() {
            place.leaveCopy(of: index)
        }
        timeline.run(for: fewLooks)
        for (store, before) in states.enumerated() {
            for (device, state) in zip(present, before) { judgeReplay(device, place, store, since: state) }
        }
        // Who learns only from an old head that a clone used the same dots publishes under another origin.
        if place.headPuts - puts > due + leftOrigins - left + mostMistaken, !mayNoticeLoss {
            report("I10: somebody published though nobody wrote")
        }
        let anHour = (place.requests - requests) * Int(hour / fewLooks)
        let most = present.count * 16 * (12 + 4 * place.names(seenBy: present[0].number).count)
        if anHour > most { report("I16: \(anHour) requests in an idle hour") }
    }

    private func judgeReplay(_ device: Device, _ place: Place<Device.Blob>, _ store: Int, since before: StoreState) {
        let state = device.state(of: store)
        if state == before { return }
        // Who has left an origin has forgotten that it knew it, and has given what it wrote other dots.
        let (old, new) = (before.entries.mapValues(\.value), state.entries.mapValues(\.value))
        if hasLeftOrigin, old == new { return }
        let keys = Set(new.keys).union(old.keys).filter { new[$0] != old[$0] }
        // A head that a remote had lost, with what only it had, may bring that back.
        let isNew = { (write: Write) in state.vector.contains(write.dot) && !before.vector.contains(write.dot) }
        let news = ledger.writes(place.number, store: store, where: isNew)
        if keys.isEmpty, !news.isEmpty, news.allSatisfy(\.isExcused) { return }
        if !keys.isEmpty, keys.allSatisfy({ mayBeBack($0, place, store, isNew) }) { return }
        report("I17: an old head that turned up again changed \(keys.sorted()) of store \(store) on \(device.number)")
    }

    /// Whether an excused write under a key was heard of again. A default, and what was written under an origin that was
    /// left, has another dot by now.
    private func mayBeBack(
        _ key: Key, _ place: Place<Device.Blob>, _ store: Int, _ isNew: (Write) -> Bool
    ) -> Bool {
        guard let index = Names.index(of: key) else { return false }
        let writes = ledger.writes[Cell(place: place.number, store: store, key: index)] ?? []
        return writes.contains { $0.isExcused && (hasLeftOrigin || $0.isProvisional || isNew($0)) }
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
        device.start()
        signIn(device, to: place.number)
        timeline.run(for: fewLooks)
        if !device.isSettled { return report("I11: a new device can't read what is there") }
        for store in 0..<conditions.stores where device.values(of: store) != first.values(of: store) {
            report("I11: a new device finds something else in store \(store)")
        }
        // Once, to say that it is there.
        if place.headPuts > puts + due + 1 + mostMistaken, !mayNoticeLoss {
            report("I10: a new device that wrote nothing published")
        }
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
        let mayBeAll = mayNoticeLoss || !conditions.hazards.isDisjoint(with: [.clone, .fork])
        let most = 1 + (mayBeAll ? present.count : due) + mostMistaken
        let count = place.headPuts - puts
        if count < 1 || count > most { report("I10: one write was published \(count) times") }
    }
}
