// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication
internal import Sealing
internal import StoreEngine
internal import SyncEngine

/// An origin under which two write since a time, and the number of the last write before that.
struct Sharing {
    let origin: Origin
    let time: UInt64
    let number: Int64
}

/// A device has taken its account to another key.
struct GoingOver {
    let place: Int
    /// The key that the account had; `nil`: it was in plain.
    let from: KeyIdentifier?
    let next: KeyIdentifier
    /// What was published before was read.
    let begun: UInt64
    /// When the device found what it has under the next key.
    var published: UInt64?
}

/// Devices, remotes, and what everybody did: all of one run.
final class World<Device: SimulatedDevice> {
    let seed: UInt64
    let conditions: Conditions
    let timeline = Timeline(now: Timeline.start)
    let trace: Trace
    let executor: SeededExecutor
    private(set) var places: [Place<Device.Blob>] = []
    var devices: [Device] = []
    var ledger = Ledger()
    /// The first rule that was seen broken.
    private(set) var violation: String?
    /// Something was away for longer than tombstones are kept.
    var hasForgotten = false
    /// By account, keys of the first store under which somebody has put a record that breaks the rules.
    var hidden: [Int: [Key]] = [:]
    /// When somebody set a device's clock last.
    var clockSet: [Int: UInt64] = [:]
    /// How often somebody took their own older head for a clone's, or a clone's for what it is.
    var leftOrigins = 0
    var hasLeftOrigin: Bool { leftOrigins > 0 }
    /// Under which two have written.
    var shared: [Origin: Sharing] = [:]
    /// Since when two write under an origin once a device is reverted to what was saved of it.
    var snapshots: [Int: Sharing] = [:]
    /// The numbers of devices that were copied, and of their copies.
    var copied: Set<Int> = []
    /// Somebody has emptied a remote.
    var isEmptied = false
    /// Somebody has put back a backup of a remote whose account moves.
    var isRolledBack = false
    /// Somebody took a device off the list.
    var hasForgottenDevice = false
    /// Somebody finds after a while that a device's sync is paused because the remote is another one, and acts.
    var resolvesByItself = true
    /// Nobody is at home before.
    var homecoming: UInt64 = 0
    /// The faults are over: who is to be there has been started.
    var isWell = false
    var chance: Chance
    /// Told what subscribers are told.
    var onNotice: (_ device: Int, StoreNotice) -> Void = { _, _ in }

    /// Where devices have their files.
    private(set) lazy var root: String = {
        isOnDisk = true
        return DatabaseFiles.makeRoot()
    }()
    private var isOnDisk = false

    private let plan: Plan
    var endsWithMonth: Bool { plan.endsWithMonth }
    /// What a storage has said of a head's version may be wrong, until everything is read again.
    var hasStuckTags: Bool { plan.tags == .stuck }
    private(set) var lastNumber: Int64 = 0
    /// What the accounts' blobs are under; of accounts in plain there are none.
    let keys: [HeldKey]
    /// Accounts move to keys.
    var movesToKeys: Bool { plan.movesToKeys }
    /// By account, the keys whose words everybody has; all that it has had; and which one a device took for another.
    private(set) var told: [[AccountKey]]
    var madeKeys: [[HeldKey]]
    var joinings: [[KeyLink]]
    /// How the account has gone from one form to another.
    var goneOver: [GoingOver] = []
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
            guard conditions.tellsOfChanges else { return }
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

    /// A device that nobody has used yet.
    @discardableResult
    func addDevice() -> Device {
        let device = Device(number: devices.count, world: self)
        device.clock = chance.one(of: conditions.clocks)
        devices.append(device)
        for place in places { place.add(device: device.number) }
        return device
    }

    /// A number for a write, that no other one has.
    func nextNumber() -> Int64 {
        lastNumber += 1
        return lastNumber
    }

    /// A user tells the others the words of the account's key.
    func tell(_ key: AccountKey, of place: Int) { if !told[place].contains(key) { told[place].append(key) } }

    /// A device has found in the remote what it has, under the key to which it has moved the account.
    func notePublished(under key: KeyIdentifier) {
        for index in goneOver.indices where goneOver[index].next == key && goneOver[index].published == nil {
            goneOver[index].published = timeline.now
        }
    }

    /// A rule was seen broken.
    func report(_ violation: String) {
        if self.violation != nil { return }
        self.violation = violation
        trace.note(timeline.now, 0, line: "BROKEN: \(violation)")
        trace.explain(holdings)
    }

    // MARK: What devices tell

    /// A write was accepted.
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
        if let broken = ledger.add(write, to: cell, isFork: conditions.hazards.contains(.fork)) { report(broken) }
    }

    /// The remote has all that a device holds.
    func noteSettled(_ device: Device) {
        guard let place = device.place else { return }
        for store in 0..<conditions.stores where device.isSynchronized(store) {
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

    /// A device enters an account; what its user wrote before becomes the account's.
    func noteEntry(_ device: Device, to place: Int) {
        forEachKey { store, key in
            ledger.move(
                from: Cell(place: Self.unsigned(device), store: store, key: key),
                to: Cell(place: place, store: store, key: key), of: device.number)
        }
    }

    /// What a device has without an account is in its copy as well.
    func noteCopy(of device: Device) {
        forEachKey { store, key in
            ledger.noteCopy(of: Cell(place: Self.unsigned(device), store: store, key: key))
        }
    }

    /// Whether another write may have its dot.
    func isShared(_ write: Write) -> Bool { shared[write.dot.origin].map { write.number > $0.number } ?? false }

    /// Whether a key has a write, perhaps under another dot by now.
    private func isEntry(_ write: Write, of key: Int, in state: StoreState) -> Bool {
        state.entries[names.keys[key]]?.stamp.withoutOrigin == write.stamp.withoutOrigin
    }

    /// A device has lost something; what nobody else has may be gone.
    /// - Parameter before: what its stores held.
    func excuse(
        _ device: Device, for excuse: Excuse, before: [StoreState], place: Int?, after: [StoreState],
        losesPlace: Bool = false
    ) {
        let others = devices.filter { $0 !== device && !$0.isGone && $0.place == place }
        let known = (0..<conditions.stores).map { store in others.map { $0.state(of: store).vector } }
        if let place {
            hidden[place]?.removeAll { key in
                before[0].entries[key] != nil && after[0].entries[key] == nil
                    && !others.contains { $0.state(of: 0).entries[key] != nil }
            }
        }
        forEachKey { store, key in
            func isHeld(_ write: Write, in state: StoreState) -> Bool {
                state.vector.contains(write.dot) || isShared(write) && isEntry(write, of: key, in: state)
            }
            func isLost(_ write: Write) -> Bool {
                isHeld(write, in: before[store]) && !isHeld(write, in: after[store])
            }
            // Without an account no other device has it.
            ledger.update(Cell(place: Self.unsigned(device), store: store, key: key)) { write in
                if place != nil || isLost(write) { write.excuse = excuse }
            }
            guard let place else { return }
            ledger.update(Cell(place: place, store: store, key: key)) { write in
                // Nor does a folder keep two heads under one name.
                let isSafe = write.isPublished && !losesPlace && !(isShared(write) && conditions.isFolder)
                if write.isProvisional, write.device == device.number, !isSafe { write.excuse = excuse }
                // Who has seen a dot that two writes have may have seen the other one.
                let isKnown = !isShared(write) && known[store].contains { $0.contains(write.dot) }
                if isLost(write), !isSafe, !isKnown { write.excuse = excuse }
                guard movesToKeys, isSafe else { return }
                let isOwnDefault = write.isProvisional && write.device == device.number
                if isOwnDefault || isLost(write) && !isKnown { write.excuseUnlessRead = excuse }
            }
        }
    }

    /// In moving plans, whether all that is in the remote is seen by whoever looks.
    private var showsAll: Bool {
        !conditions.isFolder && !conditions.hazards.contains(.faultProfile) && !plan.agesListings && attacker == nil
            && [.none, .right].contains(plan.tags)
    }

    /// Whether what a device published may be lost with it, because the account has left the form that it was in. Where
    /// one may look and not see all, that is not known.
    var mayLosePublished: Bool { movesToKeys && !showsAll }

    /// What was published, and then lost where it came from, is excused if nobody who took the account to another form
    /// has read it.
    func excuseUnread() {
        let present = devices.first { !$0.isGone }?.key
        ledger.updateAll { write in
            guard let excuse = write.excuseUnlessRead else { return }
            let isRead = write.publications.contains { isTaken(along: $0.key, $0.value, to: present) }
            if !isRead { write.excuse = excuse }
        }
    }

    /// Whether what was published in a form of the account has come with it to the present one.
    private func isTaken(along form: KeyIdentifier?, _ time: UInt64, to present: KeyIdentifier?) -> Bool {
        if form == present { return true }
        return goneOver.contains { move in
            // Who has not published it in the next form yet has it, and can't be lost.
            move.from == form && time < move.begun
                && (move.published.map { isTaken(along: move.next, $0, to: present) } ?? true)
        }
    }

    func states(_ device: Device) -> [StoreState] { (0..<conditions.stores).map { device.state(of: $0) } }

    func forEachKey(_ body: (_ store: Int, _ key: Int) -> Void) {
        for store in 0..<conditions.stores { for key in 0..<conditions.keys { body(store, key) } }
    }

    /// Where the writes of somebody count who has never signed in.
    private static func unsigned(_ device: Device) -> Int { -1 - device.number }

    // MARK: The run

    /// Makes everything of the plan happen, then lets all be well, and looks.
    /// - Returns: the rule that was broken.
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
            // One makes the account; the others come at the same time, or later.
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
