// SPDX-License-Identifier: Apache-2.0

// A month in which all devices collect garbage: what is not needed must go, and nothing else may.

internal import PropertyList
internal import Replication
internal import StoreEngine

extension World {
    /// Lets a month pass, in which one device is away, and now and then another one writes something large.
    func passMonth(_ place: Place<Device.Blob>) {
        guard present.count > 2, let away = present.last else { return passDays(of: present, place) }
        let others = Array(present.dropLast())
        // The other devices exclude the store meanwhile, so that only the absent one has published its values.
        let isOnlyThere = Chore.keepStoreHere.isJudgeable(with: conditions.hazards) && chance.happens(0.5)
        let store = conditions.stores - 1
        if isOnlyThere {
            for device in others { device.perform(.keepStoreHere, store: store, duration: 0) }
            away.write(store: store, key: 0, number: nextNumber(), removes: away.values(of: store)[0] != nil)
            away.syncNow()
            timeline.run(for: fewPolls)
        }
        let wanted = away.values(of: store)
        away.stop(.restart)
        executor.drain()
        passDays(of: others, place)
        judgeHeads(place, of: others.count + (isOnlyThere ? 1 : 0))
        if isOnlyThere {
            for device in others { device.endChores() }
            timeline.run(for: fewPolls)
            if others.contains(where: { $0.values(of: store) != wanted }) {
                report("I2: what only a device that is away had published is gone")
            }
        }
        away.start()
        timeline.run(for: fewPolls)
    }

    private func judgeHeads(_ place: Place<Device.Blob>, of most: Int) {
        let names = place.names(seenBy: present[0].number).filter { $0.hasPrefix("h/") }
        let heads = names.filter { Origin($0.dropFirst(2)) != nil && !Device.junk.map(\.0).contains($0) }
        if heads.count <= most { return }
        // No device removes what an attacker has planted.
        if attacker != nil { return ledger.excuse(.moreHeads) }
        report("I16: \(heads.count) heads after a month, of \(most) devices")
    }

    /// Lets days pass, on each of which every device publishes and collects garbage.
    private func passDays(of devices: [Device], _ place: Place<Device.Blob>) {
        isQuiet = true
        let (settling, days) = (4, 38)
        // The first days settle what the run has left unnoticed.
        for date in 0..<settling where violation == nil { passDay(date, of: devices) }
        let puts = place.headPuts
        for date in settling..<days where violation == nil { passDay(date, of: devices) }
        let most = (days - settling) * (devices.count + 1)
        if place.headPuts - puts > most { report("I10: what was published was removed, and published again") }
    }

    /// Lets every device poll twice. What one of them has written before must be everywhere then.
    func passDay(_ date: Int, of devices: [Device]) {
        for device in devices { device.clock += Int64(28 * hour / millisecond) }
        let writer = devices[chance.below(devices.count)]
        if date % 2 == 0, writer.isSynchronized(0) {
            writer.perform(.grow, store: 0, duration: UInt64(chance.below(3000)))
        }
        let written = writer.state(of: 0).vector
        for _ in 0..<2 {
            for device in devices { device.syncNow() }
            timeline.run(for: minute)
        }
        // A device that has excluded the store from sync keeps its pending changes.
        if date > 3, devices.allSatisfy({ $0.isSynchronized(0) }),
            devices.contains(where: { !$0.state(of: 0).vector.isSuperset(of: written) })
        {
            report("I15: what was written on a quiet day did not arrive")
        }
    }
}
