// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication
internal import Sealing
internal import StoreEngine
internal import SyncEngine

/// An origin under which two devices have written since a time, and the number of the last write before that.
struct Sharing {
    let origin: Origin
    let time: UInt64
    let number: Int64
}

/// A device's change of its account to another key.
struct KeyAdoption {
    let place: Int
    /// The key that the account had; `nil` if it was unencrypted.
    let from: KeyIdentifier?
    let next: KeyIdentifier
    /// Everything published before this time was read.
    let begun: UInt64
    /// When the device found its publication under the next key; `nil` if it has not yet.
    var published: UInt64?
}

/// One run: its devices and remotes, and what has happened.
final class World<Device: SimulatedDevice> {
    let seed: UInt64
    let conditions: Conditions
    let timeline = Timeline(now: Timeline.start)
    let trace: Trace
    let executor: SeededExecutor
    private(set) var places: [Place<Device.Blob>] = []
    var devices: [Device] = []
    var ledger = Ledger()
    /// The first broken rule.
    private(set) var violation: String?
    /// Whether devices may have forgotten tombstones.
    var hasForgotten = false
    /// By account, the keys in the first store under which records that break the rules were put.
    var hidden: [Int: [Key]] = [:]
    /// When each device's clock was last set.
    var clockSet: [Int: UInt64] = [:]
    /// How often devices have left an origin: for a clone, or for their own older head, taken for a clone's.
    var leftOrigins = 0
    var hasLeftOrigin: Bool { leftOrigins > 0 }
    /// The origins under which two devices have written.
    var shared: [Origin: Sharing] = [:]
    /// By device, the sharing that a reversion to its snapshot begins.
    var snapshots: [Int: Sharing] = [:]
    /// The origins of devices when they were copied. The copy may remove the head under this name.
    var copiedOrigins: Set<Origin> = []
    /// Whether a remote was emptied.
    var isEmptied = false
    /// Whether a remote whose account moves was put back to a backup.
    var isRolledBack = false
    /// Whether a device was removed from the list.
    var hasForgottenDevice = false
    /// Whether a story is played, in which devices are copied although the conditions have no such hazard.
    var isStory = false
    /// Whether users act, after a while, if sync has stopped because the remote is another one or a key is needed.
    var resolvesByItself = true
    /// Whether the quiet days have begun, on which users only write.
    var isQuiet = false
    /// No device starts before this time.
    var earliestStart: UInt64 = 0
    /// Whether the faults are over, and every remaining device has been started.
    var isWell = false
    var chance: Chance
    /// Called with everything that subscribers are told.
    var onNotice: (_ device: Int, StoreNotice) -> Void = { _, _ in }

    /// The directory of the devices' files.
    private(set) lazy var root: String = {
        isOnDisk = true
        return DatabaseFiles.makeRoot()
    }()
    private var isOnDisk = false

    private let plan: Plan
    var endsWithMonth: Bool { plan.endsWithMonth }
    /// Whether a storage may have reported the former version of a changed head, until everything is read again.
    var hasStuckTags: Bool { plan.tags == .stuck }
    private(set) var lastNumber: Int64 = 0
    /// The keys of the accounts; empty if these are unencrypted.
    let keys: [HeldKey]
    /// Whether accounts move to keys.
    var movesToKeys: Bool { plan.movesToKeys }
    /// By account: the keys whose words all users know, all its keys, and the links of devices that changed keys.
    private(set) var told: [[AccountKey]]
    var madeKeys: [[HeldKey]]
    var joinings: [[KeyLink]]
    /// The changes of accounts from one form to another.
    var keyAdoptions: [KeyAdoption] = []
    /// How keys and values are written.
    let names: Names
    private(set) var attacker: Attacker?

    static var mostDevices: Int { 7 }

    init(seed: UInt64, plan: Plan, isOrderly: Bool = false, trace: Trace) {
        self.seed = seed
        self.plan = plan
        self.trace = trace
        conditions = plan.conditions
        chance = Chance(seed: seed, stream: 2)
        var randomness = Chance(seed: seed, stream: 5)
        keys = (0..<(plan.isEncrypted ? conditions.places : 0)).map { _ in
            HeldKey(time: Timeline.start) { randomness.next() }
        }
        madeKeys = (0..<conditions.places).map { [keys] in keys.isEmpty ? [] : [keys[$0]] }
        told = madeKeys.map { $0.map(\.key) }
        joinings = madeKeys.map { _ in [] }
        names = Names(areSecret: plan.isEncrypted || plan.movesToKeys)
        ledger.names = names
        executor = SeededExecutor(seed: seed, isOrderly: isOrderly)
        for number in 0..<conditions.places { addPlace(number) }
        if plan.hasAttacker, let places = places as? [Place<[UInt8]>] {
            let hazards = conditions.hazards
            attacker = Attacker(
                seed: seed, places: places, keys: keys.map(\.key.identifier), names: names,
                onlyAdds: hazards.contains { $0.losesDevices || $0 == .fork }, executor: executor)
        }
        attacker?.onAlteration = { [unowned self] bytes, place in
            let keys = keys[place].key.blobs
            let opened = (try? SealedBlob(head: bytes, keys)) ?? (try? SealedBlob(segment: bytes, keys))
            if opened != nil { report("I19: what was altered can be opened") }
        }
        if Device.hasTasks || conditions.isCluster { timeline.afterEvent = { [executor] in executor.drain() } }
    }

    private func addPlace(_ number: Int) {
        let kind: Place<Device.Blob>.Kind = conditions.isFolder ? .folder : .server
        let place = Place(number, kind, seed: seed, timeline: timeline, tear: Device.tear)
        let conditions = conditions
        if conditions.hazards.contains(.faultProfile) {
            place.faultProfile = FaultProfile(&chance, allowing: { conditions.allows($0) })
            place.losesObjects = conditions.allows(.lostObject)
        }
        (place.repeatsListings, place.agesListings) = (plan.repeatsListings, plan.agesListings)
        place.tags = plan.tags
        place.onArrival = { [unowned self] device in
            guard conditions.givesHints else { return }
            timeline.after(100 * millisecond) { [unowned self] in
                for other in devices where device == -1 || other.number == device { other.noteHint() }
            }
        }
        place.onHeadPut = { [unowned self] device, name in
            trace.note(timeline.now, 1, UInt64(device), line: "device \(device) has written \(name)")
        }
        if conditions.isCluster { place.cluster = Cluster(place, seed: seed, timeline: timeline) }
        if let eavesdropper = keys.isEmpty ? nil : Eavesdropper(key: keys[number].key.identifier) {
            place.cluster?.onPut = { [unowned self] row, bytes in
                if let found = eavesdropper.find(inRow: row, bytes) { report("\(row) was sent: \(found)") }
            }
        }
        places.append(place)
    }

    /// Adds an unused device.
    @discardableResult
    func addDevice() -> Device {
        let device = Device(number: devices.count, world: self)
        device.clock = chance.one(of: conditions.clocks)
        devices.append(device)
        for place in places { place.add(device: device.number) }
        return device
    }

    /// Returns a new number for a write.
    func nextNumber() -> Int64 {
        lastNumber += 1
        return lastNumber
    }

    /// Tells all users the words of an account's key.
    func tell(_ key: AccountKey, of place: Int) { if !told[place].contains(key) { told[place].append(key) } }

    /// Notes that a device has found its publication under the key to which it has moved the account.
    func notePublished(under key: KeyIdentifier) {
        for index in keyAdoptions.indices where keyAdoptions[index].next == key && keyAdoptions[index].published == nil
        {
            keyAdoptions[index].published = timeline.now
        }
    }

    /// Records a broken rule. Only the first counts.
    func report(_ violation: String) {
        if self.violation != nil { return }
        self.violation = violation
        trace.note(timeline.now, 0, line: "BROKEN: \(violation)")
        trace.explain(holdings)
    }

    // MARK: Reports of devices

    /// Records that a device of the whole form has left its origin, because it took a head or a write for a clone's.
    func noteForeignHead() {
        if conditions.hazards.contains(.fork) || isStory { return }
        // An attacker gives heads other names.
        if attacker != nil { return ledger.excuse(.foreignHead) }
        report("a clone was seen where there is none")
    }

    /// Records an accepted write.
    func acknowledge(
        _ device: Device, store: Int, key: Int, number: Int64, removes: Bool, _ entry: EntryVersion?,
        knowing known: VersionVector
    ) {
        guard let entry else { return report("I7: the write \(number) was acknowledged and is not there") }
        let cell = Cell(place: device.place ?? Self.unsigned(device), store: store, key: key)
        let dot = Dot(origin: entry.stamp.origin, n: entry.n)
        let write = Write(
            number: number, device: device.number, isRemoval: removes, stamp: entry.stamp, dot: dot, known: known)
        trace.note(
            timeline.now, 2, UInt64(number), dot.n, dot.origin.bits,
            line: "device \(device.number) \(removes ? "removes" : "sets") k\(key) of store \(store): \(number)")
        if let broken = ledger.add(write, to: cell, isShared: isShared(write)) { report(broken) }
    }

    /// Records that the remote has everything that a device holds.
    func noteSettled(_ device: Device) {
        guard let place = device.place else { return }
        for store in 0..<conditions.stores where device.isSynchronized(store) && device.hasArrived(store) {
            let state = device.state(of: store)
            for key in 0..<conditions.keys {
                ledger.update(Cell(place: place, store: store, key: key)) {
                    let isThere = isShared($0) ? isEntry($0, of: key, in: state) : state.vector.contains($0.dot)
                    guard isThere else { return }
                    $0.isPublished = true
                    if movesToKeys, $0.publications[device.key] == nil {
                        $0.publications[device.key] = timeline.now
                    }
                }
            }
        }
    }

    /// Records that a device enters an account. What its user wrote before becomes the account's.
    func noteEntry(_ device: Device, to place: Int) {
        forEachKey { store, key in
            ledger.move(
                from: Cell(place: Self.unsigned(device), store: store, key: key),
                to: Cell(place: place, store: store, key: key), of: device.number)
        }
    }

    /// Records that a copy has the values that the device holds without an account.
    func noteCopy(of device: Device) {
        forEachKey { store, key in
            ledger.noteCopy(of: Cell(place: Self.unsigned(device), store: store, key: key))
        }
    }

    /// Whether another write may have the same dot.
    func isShared(_ write: Write) -> Bool { shared[write.dot.origin].map { write.number > $0.number } ?? false }

    /// Whether a store has a write under a key, perhaps under another dot by now.
    private func isEntry(_ write: Write, of key: Int, in state: StoreState) -> Bool {
        state.entries[names.keys[key]]?.stamp.withoutOrigin == write.stamp.withoutOrigin
    }

    /// Excuses writes that may be gone, because a device has lost data that no other device has.
    /// - Parameter before: the states of the device's stores before the loss.
    func excuse(
        _ device: Device, for excuse: Excuse, before: [StoreState], place: Int?, after: [StoreState],
        losesPlace: Bool = false
    ) {
        let others = devices.filter { $0 !== device && !$0.isGone && $0.place == place }
        let known = (0..<conditions.stores).map { store in others.map { $0.state(of: store).vector } }
        if let place {
            let former = hidden[place]?.count ?? 0
            hidden[place]?.removeAll { key in
                before[0].entries[key] != nil && after[0].entries[key] == nil
                    && !others.contains { $0.state(of: 0).entries[key] != nil }
            }
            ledger.excuse(.lostRecord, times: former - (hidden[place]?.count ?? 0))
        }
        forEachKey { store, key in
            func isHeld(_ write: Write, in state: StoreState) -> Bool {
                state.vector.contains(write.dot) || isShared(write) && isEntry(write, of: key, in: state)
            }
            func isLost(_ write: Write) -> Bool {
                isHeld(write, in: before[store]) && !isHeld(write, in: after[store])
            }
            // Without an account, no other device has the write. A machine that was reverted uses a dot again, which may be
            // that of another write after the loss.
            ledger.update(Cell(place: Self.unsigned(device), store: store, key: key)) { write in
                let isGone = isEntry(write, of: key, in: before[store]) && !isEntry(write, of: key, in: after[store])
                if place != nil || isLost(write) || isShared(write) && isGone { write.excuse = excuse }
            }
            guard let place else { return }
            ledger.update(Cell(place: place, store: store, key: key)) { write in
                // A folder does not keep two heads under one name. A copy of the disk may have removed the head, which
                // only its device would have written again.
                let isSafe =
                    write.isPublished && !losesPlace && !copiedOrigins.contains(write.dot.origin)
                    && !(isShared(write) && conditions.isFolder)
                if write.isProvisional, write.device == device.number, !isSafe { write.excuse = excuse }
                // A device that has seen a shared dot may have seen the other write.
                let isKnown = !isShared(write) && known[store].contains { $0.contains(write.dot) }
                if isLost(write), !isSafe, !isKnown { write.excuse = excuse }
                guard movesToKeys, isSafe else { return }
                let isOwnDefault = write.isProvisional && write.device == device.number
                if isOwnDefault || isLost(write) && !isKnown { write.excuseUnlessRead = excuse }
            }
        }
    }

    /// Whether every pull sees everything in the remote. Used where accounts move.
    private var showsAll: Bool {
        !conditions.isFolder && !conditions.hazards.contains(.faultProfile) && !plan.agesListings && attacker == nil
            && [.none, .right].contains(plan.tags)
    }

    /// Whether a device's published writes may be lost with it, because the account has left the form in which they
    /// were published. Unless every pull sees everything, that can't be told.
    var mayLosePublished: Bool { movesToKeys && !showsAll }

    /// Excuses writes that were published and then lost where they came from, unless a device that took the account to
    /// another form has read them.
    func excuseUnread() {
        let present = devices.first { !$0.isGone }?.key
        ledger.updateAll { write in
            guard let excuse = write.excuseUnlessRead else { return }
            let isRead = write.publications.contains { isTaken(along: $0.key, $0.value, to: present) }
            if !isRead { write.excuse = excuse }
        }
    }

    /// Whether what was published at a time in one form of the account has come along to the present form.
    private func isTaken(along form: KeyIdentifier?, _ time: UInt64, to present: KeyIdentifier?) -> Bool {
        if form == present { return true }
        return keyAdoptions.contains { move in
            // A device that has not published it in the next form yet still has it, and can't be lost.
            move.from == form && time < move.begun
                && (move.published.map { isTaken(along: move.next, $0, to: present) } ?? true)
        }
    }

    func states(_ device: Device) -> [StoreState] { (0..<conditions.stores).map { device.state(of: $0) } }

    func forEachKey(_ body: (_ store: Int, _ key: Int) -> Void) {
        for store in 0..<conditions.stores { for key in 0..<conditions.keys { body(store, key) } }
    }

    /// The number that stands for the account of a device that has never signed in.
    private static func unsigned(_ device: Device) -> Int { -1 - device.number }

    // MARK: The run

    /// Carries out the plan, ends the faults, and judges the result.
    /// - Returns: the rule that was broken; `nil` if none was.
    func run() -> String? {
        defer { end() }
        begin()
        for step in plan.steps {
            timeline.run(for: step.gap)
            if violation != nil { return violation }
            perform(step.action)
            executor.drain()
        }
        timeline.run(for: second)
        if violation == nil { healAndJudge() }
        return violation
    }

    private func begin() {
        for index in 0..<conditions.devices {
            let device = addDevice()
            device.start()
            if chance.happens(0.3) { writeDefaults(device) }
            // One device makes the account. The others sign in at the same time, or later.
            let delay = index == 0 ? 0 : chance.happens(0.3) ? 0 : chance.time(second, hour)
            timeline.after(delay) { [unowned self] in
                if device.place == nil, device.isRunning { device.signIn(to: places[0]) }
            }
        }
        timeline.run(for: second)
    }

    func writeDefaults(_ device: Device) {
        forEachKey { store, key in
            if chance.happens(0.5) { device.write(store: store, key: key, number: nextNumber(), removes: false) }
        }
    }

    func end() {
        timeline.clear()
        for device in devices { device.end() }
        executor.drain()
        timeline.run(for: day)
        executor.drain()
        devices = []
        places = []
        if isOnDisk { DatabaseFiles.removeTree(root) }
    }
}
