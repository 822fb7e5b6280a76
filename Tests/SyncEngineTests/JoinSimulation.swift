// SPDX-License-Identifier: Apache-2.0

// A person's devices and one place where they leave their states, with everything that goes wrong: uploads that
// are lost, late or torn, objects that vanish, crashes, cloned disks, restored backups, clocks that jump. First
// there are faults, then everything heals, and then all devices have to agree on the right answer.
//
// A device's process has an origin of its own, held in memory only; what it publishes is named for it.

import PropertyList
import StoreEngine
import SyncEngine

struct JoinSimulation {
    /// A rule that is switched off.
    enum Flaw: CaseIterable {
        /// Contexts are not looked at: what is absent was never there.
        case ignoresContext
        /// A write's stamp is the clock's.
        case noSuccessor
        /// A device keeps its origin, and its count of writes on its disk.
        case persistentOrigin
        /// A state that lacks a part is joined, with its whole context.
        case joinsParts
    }

    /// A write that was acknowledged.
    private struct Write {
        let stamp: Stamp
        let dot: Dot
        let isRemoval: Bool
        let known: Context
    }

    private struct Head {
        let name: Origin
        let state: StoreState
        let version: Int
    }

    private struct Disk {
        var state = StoreState()
        var origin: Origin?
        var n: UInt64 = 0
    }

    private struct Device {
        var disk = Disk()
        var backup: Disk?
        var origin = Origin(bits: 0)
        var n: UInt64 = 0
        var skew: Int64 = 0
        var published: (state: StoreState, version: Int)?
    }

    private let flaw: Flaw?
    private var random: SplitMix
    private var devices: [Device] = []
    private var store: [Origin: Head?] = [:]
    private var late: [(time: Int64, head: Head)] = []
    private var time: Int64 = 1000
    private var versions = 0
    private var values = 0
    private var acknowledged: [Key: [Write]] = [:]
    private var everStored: Set<Dot> = []
    private var excused: Set<Dot> = []
    private var ignoredWrite = false
    private let keys: [Key]
    private var (clones, restores, loses, forgets) = (false, false, false, false)

    init(seed: UInt64, flaw: Flaw? = nil) {
        self.flaw = flaw
        random = SplitMix(state: seed &* 0x2545_F491_4F6C_DD1D)
        keys = (0..<[1, 2, 4][Int.random(in: 0..<3, using: &random)]).map { Key(unchecked: "k\($0)") }
        clones = chance(0.4)
        restores = chance(0.4)
        loses = chance(0.3) && !restores
        forgets = flaw == .ignoresContext || chance(0.6)
        for _ in 0..<pick(2, 3, 3, 4) { add(Disk()) }
    }

    private mutating func chance(_ probability: Double) -> Bool {
        Double.random(in: 0..<1, using: &random) < probability
    }

    private mutating func pick<T>(_ choices: T...) -> T { choices[Int.random(in: 0..<choices.count, using: &random)] }

    private mutating func add(_ disk: Disk) {
        devices.append(Device(disk: disk, skew: pick(0, 0, -400, 400, 10_000_000)))
        start(devices.count - 1)
    }

    private mutating func start(_ index: Int) {
        devices[index].origin = Origin(bits: random.next())
        devices[index].n = 0
        devices[index].published = nil
        guard flaw == .persistentOrigin else { return }
        if let origin = devices[index].disk.origin {
            devices[index].origin = origin
            devices[index].n = devices[index].disk.n
        } else {
            devices[index].disk.origin = devices[index].origin
        }
    }

    // MARK: What devices do

    private mutating func write(_ index: Int, _ key: Key, removes: Bool) {
        var device = devices[index]
        let old = device.disk.state.entries[key]
        let wall = UInt64(max(0, time + device.skew))
        let previous = flaw == .noSuccessor ? nil : old?.stamp
        let stamp = Stamp(after: previous, wall: wall, origin: device.origin, isProvisional: false)
        device.n += 1
        values += 1
        device.disk.n = device.n
        let entry = Entry(
            stamp: stamp,
            n: device.n,
            value: removes ? nil : Value.integer(Int64(values)).encoded()
        )
        acknowledged[key, default: []].append(
            Write(stamp: stamp, dot: entry.dot, isRemoval: removes, known: device.disk.state.context)
        )
        if let old, stamp < old.stamp { ignoredWrite = true } else { device.disk.state.entries[key] = entry }
        device.disk.state.context.insert(entry.dot)
        devices[index] = device
    }

    private mutating func pull(_ index: Int, faults: Bool) {
        for (name, head) in listing(faults: faults) {
            guard let head else { continue }
            if name == devices[index].origin, head.version == devices[index].published?.version { continue }
            if flaw == .joinsParts, faults, !head.state.entries.isEmpty, chance(0.3) {
                var part = head.state
                let missing = part.entries.keys.sorted()
                part.entries[missing[Int.random(in: 0..<missing.count, using: &random)]] = nil
                joinPart(part, to: index)
            } else {
                join(head.state, to: index)
            }
        }
    }

    private mutating func listing(faults: Bool) -> [(Origin, Head?)] {
        store.sorted { $0.key < $1.key }.filter { _ in !(faults && chance(0.05)) }.map { ($0.key, $0.value) }
    }

    private mutating func publish(_ index: Int, faults: Bool, isLazy: Bool = false) -> Bool {
        let device = devices[index]
        let own = listing(faults: faults).first { $0.0 == device.origin }?.1
        if let published = device.published, own?.version == published.version {
            if published.state == device.disk.state { return false }
            let hasNews = device.disk.state.entries.contains {
                $0.value.stamp.origin == device.origin && published.state.entries[$0.key] != $0.value
            }
            if !isLazy, !hasNews, chance(0.7) { return false }
        }
        versions += 1
        let head = Head(name: device.origin, state: device.disk.state, version: versions)
        devices[index].published = (head.state, head.version)
        if faults, chance(0.03) {
            start(index)
            return true
        }
        let isAcknowledged = put(head, faults: faults)
        if faults, chance(0.03) {
            start(index)
            return true
        }
        if isAcknowledged, chance(0.5), !(faults && restores) { tidy(after: head, faults: faults) }
        return true
    }

    /// Removes heads that nobody goes on with and that say nothing which this one does not.
    private mutating func tidy(after head: Head, faults: Bool) {
        let inUse = Set(devices.map(\.origin))
        for (name, other) in listing(faults: faults) {
            guard let other, name != head.name, !inUse.contains(name) else { continue }
            if head.state.context.isSuperset(of: other.state.context) { store[name] = nil }
        }
    }

    private mutating func put(_ head: Head, faults: Bool) -> Bool {
        var fate = faults ? Double.random(in: 0..<1, using: &random) : 1
        if fate < 0.06 { return false }
        if restores { fate = max(fate, 0.14) }
        if fate < 0.10 {
            late.append((time + Int64.random(in: 1...80, using: &random), head))
            return false
        }
        if fate < 0.13 {
            store[head.name] = .some(nil)
            return false
        }
        keep(head)
        return !(faults && chance(0.06))
    }

    private mutating func keep(_ head: Head) {
        store[head.name] = head
        everStored.formUnion(head.state.entries.values.map(\.dot))
    }

    private mutating func forgetTombstones(_ index: Int) {
        for (key, entry) in devices[index].disk.state.entries.sorted(by: { $0.key < $1.key })
        where entry.value == nil && chance(0.7) {
            devices[index].disk.state.entries[key] = nil
        }
    }

    private mutating func restore(_ index: Int) {
        guard let backup = devices[index].backup else { return }
        for write in acknowledged.values.joined() {
            let isLost =
                devices[index].disk.state.context.contains(write.dot) && !backup.state.context.contains(write.dot)
                && !everStored.contains(write.dot)
            let isElsewhere = devices.indices.contains {
                $0 != index && devices[$0].disk.state.context.contains(write.dot)
            }
            if isLost && !isElsewhere { excused.insert(write.dot) }
        }
        devices[index].disk = backup
        start(index)
    }

    // MARK: The join

    private mutating func join(_ other: StoreState, to index: Int) {
        if flaw == .ignoresContext {
            joinBlindly(other, to: index)
        } else {
            devices[index].disk.state.join(other)
        }
    }

    /// The greater stamp wins, and what is absent was never there.
    private mutating func joinBlindly(_ other: StoreState, to index: Int) {
        for (key, theirs) in other.entries {
            if let mine = devices[index].disk.state.entries[key], theirs.stamp < mine.stamp { continue }
            devices[index].disk.state.entries[key] = theirs
        }
        devices[index].disk.state.context.formUnion(other.context)
    }

    /// Joins what there is of a state as if it were all, but does not take absence for a removal.
    private mutating func joinPart(_ part: StoreState, to index: Int) {
        let state = devices[index].disk.state
        for (key, theirs) in part.entries where !state.context.contains(theirs.dot) {
            if let mine = state.entries[key], !part.context.contains(mine.dot), theirs.stamp < mine.stamp { continue }
            devices[index].disk.state.entries[key] = theirs
        }
        devices[index].disk.state.context.formUnion(part.context)
    }

    // MARK: The run

    /// - Returns: what went wrong, if anything did.
    mutating func run() -> String? {
        for _ in 0..<Int.random(in: 30...200, using: &random) { step() }
        for (_, head) in late { keep(head) }
        guard heal() else { return "never quiet" }
        if ignoredWrite { return "an acknowledged write was ignored" }
        let views = devices.map { $0.disk.state.entries.filter { $0.value.value != nil } }
        if views.contains(where: { $0 != views[0] }) { return "devices differ" }
        for key in keys {
            if let violation = violation(of: key, found: views[0][key]) { return violation }
        }
        return nil
    }

    private mutating func step() {
        time += Int64.random(in: 0...5, using: &random)
        for (due, head) in late where due <= time { keep(head) }
        late.removeAll { $0.time <= time }
        let index = Int.random(in: 0..<devices.count, using: &random)
        switch Double.random(in: 0..<1, using: &random) {
        case ..<0.24: write(index, keys[Int.random(in: 0..<keys.count, using: &random)], removes: chance(0.4))
        case ..<0.48: pull(index, faults: true)
        case ..<0.74:
            pull(index, faults: true)
            _ = publish(index, faults: true)
        case ..<0.79: start(index)
        case ..<0.81: devices[index].skew = pick(0, -500, 500, 10_000_000)
        case ..<0.83: if devices.count < 7 { add(Disk()) }
        case ..<0.86: devices[index].backup = devices[index].disk
        case ..<0.88: if restores { restore(index) }
        case ..<0.90: if clones, devices.count < 7 { add(devices[index].disk) }
        case ..<0.93: if forgets { forgetTombstones(index) }
        case ..<0.94:
            if loses, let name = store.keys.sorted().randomElement(using: &random) { store[name] = nil }
        default: break
        }
    }

    private mutating func heal() -> Bool {
        var quietRounds = 0
        for _ in 0..<60 {
            time += 1
            var isQuiet = true
            for index in devices.indices {
                pull(index, faults: false)
                if publish(index, faults: false, isLazy: true) { isQuiet = false }
            }
            quietRounds = isQuiet ? quietRounds + 1 : 0
            if quietRounds >= 2 { return true }
        }
        return false
    }

    private func violation(of key: Key, found: Entry?) -> String? {
        let writes = acknowledged[key] ?? []
        let counted = writes.filter { !excused.contains($0.dot) }
        guard !counted.isEmpty else { return nil }
        if let found {
            if excused.contains(found.dot) { return nil }
            if counted.contains(where: { $0.isRemoval && $0.known.contains(found.dot) }) { return "\(key) came back" }
        }
        // A write that nothing which did not know of it beats.
        let unbeaten = counted.first { write in
            writes.allSatisfy { $0.dot == write.dot || write.known.contains($0.dot) || $0.stamp < write.stamp }
        }
        guard let unbeaten else { return nil }
        if unbeaten.isRemoval { return found != nil && !forgets ? "\(key)'s removal was lost" : nil }
        guard let found else { return "\(key) was lost" }
        return found.dot == unbeaten.dot ? nil : "\(key) has the wrong winner"
    }
}

private struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
