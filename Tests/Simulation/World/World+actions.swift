// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import StoreEngine

extension World {
    /// Carries out one action of a plan.
    func perform(_ action: Action) {
        trace.note(timeline.now, 3, line: "\(action)")
        switch action {
        case .write(let index, let store, let key): write(index, store, key, removes: false)
        case .remove(let index, let store, let key): write(index, store, key, removes: true)
        case .writeLocal(let index):
            running(index)?.writeLocal(number: nextNumber())
            write(index, 0, 0, removes: false)
        case .syncNow(let index): running(index)?.syncNow()
        case .stop(let index, let ending, let downtime): stop(index, ending, downtime: downtime)
        case .dieWhileWriting(let index, let writes): running(index)?.dieAfter(writes: writes)
        case .setClock(let index, let clock): if let device = device(index) { setClock(device, clock) }
        case .backUp(let index): device(index)?.backUp()
        case .restore(let index): restore(index)
        case .takeSnapshot(let index): takeSnapshot(index)
        case .revert(let index): revert(index)
        case .copy(let index, let isFork): copy(index, isFork: isFork)
        case .newDevice(let withDefaults): addNewDevice(withDefaults: withDefaults)
        case .leave(let index): leave(index)
        case .year(let index): passYear(away: index)
        case .forget(let index):
            if let device = running(index), device.forgetTombstones(&chance) { hasForgotten = true }
        case .signOut(let index, let keepsValues): signOut(index, keepsValues: keepsValues)
        case .signIn(let index, let place): if let device = running(index) { signIn(device, to: place) }
        case .cut(let index, let place, let duration): cut(index, place, duration)
        case .unplug(let index, let place, let duration):
            if let device = device(index) { places[place].unpluggedUntil[device.number] = timeline.now + duration }
        case .strike(let place, let fault): strike(places[place], fault)
        case .backUpPlace(let place): places[place].backUp()
        case .attack(let place, let attack): attacker?.perform(attack, at: place)
        case .loseKey(let index): running(index)?.loseKey()
        case .move(let index): running(index)?.moveToKey()
        case .chore(let index, let store, let chore, let duration):
            running(index)?.perform(chore, store: store, duration: duration)
        case .wait: break
        }
    }

    /// The device with a plan's index; `nil` if it is gone.
    private func device(_ index: Int) -> Device? {
        let device = devices[index % devices.count]
        return device.isGone ? nil : device
    }

    private func running(_ index: Int) -> Device? {
        device(index).flatMap { $0.isRunning ? $0 : nil }
    }

    private func write(_ index: Int, _ store: Int, _ key: Int, removes: Bool) {
        running(index)?.write(store: store, key: key, number: nextNumber(), removes: removes)
    }

    private func setClock(_ device: Device, _ clock: Int64) {
        device.clock = clock
        clockSet[device.number] = timeline.now
    }

    private func stop(_ index: Int, _ ending: StopKind, downtime: UInt64) {
        guard let device = running(index) else { return }
        stop(device, ending)
        startLater(device, downtime)
    }

    private func stop(_ device: Device, _ ending: StopKind) {
        let (before, place) = (states(device), device.place)
        device.stop(ending)
        executor.drain()
        if ending == .powerCut {
            device.start()
            excuse(device, for: .powerCut, before: before, place: place, after: states(device))
            device.stop(.crash)
        }
    }

    /// Starts a device's process after a while.
    func startLater(_ device: Device, _ downtime: UInt64) {
        let start = max(timeline.now + downtime, earliestStart)
        timeline.after(start - timeline.now) { [unowned self, unowned device] in
            if timeline.now < earliestStart { return startLater(device, 0) }
            if !isWell, !device.isGone, !device.isRunning { device.start() }
        }
    }

    private func restore(_ index: Int) {
        guard let device = running(index), !device.isMoving else { return }
        let (before, place) = (states(device), device.place)
        // Without a reboot, so that only the database shows the restoration.
        device.stop(.restart)
        executor.drain()
        let isRestored = device.restore()
        device.start()
        if isRestored {
            excuse(
                device, for: .restoredBackup, before: before, place: place, after: states(device),
                losesPlace: mayLosePublished)
        }
    }

    private func takeSnapshot(_ index: Int) {
        guard let device = running(index) else { return }
        device.takeSnapshot()
        snapshots[device.number] = sharing(of: device)
    }

    private func revert(_ index: Int) {
        guard let device = running(index), !device.isMoving, let sharing = snapshots[device.number] else { return }
        let (before, place) = (states(device), device.place)
        device.revert()
        note(sharing)
        excuse(
            device, for: .revertedMachine, before: before, place: place, after: states(device),
            losesPlace: mayLosePublished)
    }

    private func sharing(of device: Device) -> Sharing? {
        device.origin.map { Sharing(origin: $0, time: timeline.now, number: lastNumber) }
    }

    private func note(_ sharing: Sharing?) {
        guard let sharing else { return }
        if let known = shared[sharing.origin], known.number <= sharing.number { return }
        shared[sharing.origin] = sharing
    }

    private func copy(_ index: Int, isFork: Bool) {
        guard let original = running(index), devices.count < Self.mostDevices else { return }
        let device = addDevice()
        device.clock = original.clock
        device.copyDisk(of: original, isFork: isFork)
        if let origin = original.origin { copiedOrigins.insert(origin) }
        if isFork { note(sharing(of: original)) }
        noteCopy(of: original)
        for place in places { place.copyView(of: original.number, to: device.number) }
        if !device.isRunning { device.start() }
    }

    @discardableResult
    private func addNewDevice(withDefaults: Bool) -> Device? {
        guard devices.count < Self.mostDevices else { return nil }
        let device = addDevice()
        device.start()
        if withDefaults { writeDefaults(device) }
        signIn(device, to: 0)
        return device
    }

    /// Throws a device away, if more than two are left.
    private func leave(_ index: Int) {
        guard let device = device(index), !device.isMoving, devices.filter({ !$0.isGone }).count > 2 else { return }
        if !device.isRunning { device.start() }
        let (before, place) = (states(device), device.place)
        device.stop(.crash)
        device.isGone = true
        let nothing = before.map { _ in StoreState() }
        excuse(
            device, for: .lostDevice, before: before, place: place, after: nothing,
            losesPlace: conditions.isFolder || mayLosePublished)
    }

    /// Stops all devices for 400 days. One of them starts two hours after the others.
    private func passYear(away index: Int) {
        let travellers = devices.filter { !$0.isGone && $0.isRunning }
        for device in travellers { device.stop(.restart) }
        executor.drain()
        earliestStart = timeline.now + 400 * day
        timeline.run(for: 400 * day)
        hasForgotten = true
        for device in travellers where !device.isRunning {
            if device.number == index % devices.count { startLater(device, 2 * hour) } else { device.start() }
        }
        timeline.run(for: hour)
    }

    private func signOut(_ index: Int, keepsValues: Bool) {
        guard let device = running(index), device.isSignedIn, !device.isMoving else { return }
        let (before, place) = (states(device), device.place)
        device.signOut(keepingValues: keepsValues)
        if keepsValues { return }
        excuse(
            device, for: .clearedAccount, before: before, place: place, after: before.map { _ in StoreState() },
            losesPlace: mayLosePublished)
    }

    func signIn(_ device: Device, to place: Int) {
        device.signIn(to: places[place])
    }

    private func cut(_ index: Int, _ place: Int, _ duration: UInt64) {
        guard let device = device(index) else { return }
        places[place].cutUntil[device.number] = timeline.now + duration
    }

    private func strike(_ place: Place<Device.Blob>, _ fault: Fault) {
        if let cluster = place.cluster { return cluster.strike(fault) }
        switch fault {
        case .lostObject: place.loseObject(chance.happens(0.7) ? "h/" : "s/")
        case .rolledBackObject: place.rollBackObject()
        case .rolledBackPlace:
            place.restoreBackup()
            isRolledBack = isRolledBack || movesToKeys
        case .conflictCopy: place.leaveCopy()
        case .junk: place.leaveJunk(Device.junk)
        default: break
        }
    }
}
