// SPDX-License-Identifier: Apache-2.0

/// An action on the world. Device numbers count modulo the number of devices.
enum Action: Equatable {
    case write(device: Int, store: Int, key: Int)
    case remove(device: Int, store: Int, key: Int)
    /// Writes a device-local key, and a record that breaks the rules, as another program may publish it.
    case writeLocal(device: Int)
    case syncNow(device: Int)
    case stop(device: Int, StopKind, downtime: UInt64)
    case dieWhileWriting(device: Int, writes: Int)
    case setClock(device: Int, beside: Int64)
    case backUp(device: Int)
    case restore(device: Int)
    /// Saves a machine with its memory, for a later reversion.
    case takeSnapshot(device: Int)
    case revert(device: Int)
    case copy(device: Int, isFork: Bool)
    case newDevice(withDefaults: Bool)
    case leave(device: Int)
    case year(away: Int)
    /// Forgets tombstones long before their time.
    case forget(device: Int)
    case signOut(device: Int, keepsValues: Bool)
    case signIn(device: Int, place: Int)
    case cut(device: Int, place: Int, duration: UInt64)
    case unplug(device: Int, place: Int, duration: UInt64)
    case strike(place: Int, Fault)
    case backUpPlace(place: Int)
    case attack(place: Int, Attack)
    /// A device of an encrypted account loses the file with the key.
    case loseKey(device: Int)
    /// A device gives its account a new key.
    case move(device: Int)
    case chore(device: Int, store: Int, Chore, duration: UInt64)
    case wait
}

extension Action {
    /// Whether it may happen where accounts move. There, ``Plan/addOrdeals(_:)`` empties and rolls back the remotes.
    fileprivate var suitsMoves: Bool {
        switch self {
        case .backUpPlace, .loseKey: false
        case .strike(_, .rolledBackPlace), .chore(_, _, .emptyRemote, _): false
        default: true
        }
    }
}

/// How a process ends.
enum StopKind: String, CaseIterable {
    /// The process is stopped, and closes everything.
    case restart
    /// The process is killed. Everything that it wrote is kept.
    case crash
    /// The machine restarts, so `/run` is empty.
    case reboot
    /// The power is cut. Data that was not synced may be gone, and `/run` is empty.
    case powerCut
}

/// The conditions and steps of a run.
struct Plan {
    struct Step: Equatable {
        /// The time since the previous step, in microseconds.
        var gap: UInt64
        var action: Action
    }

    private(set) var conditions: Conditions
    var steps: [Step]
    /// Whether listings may repeat names, and whether they may be old.
    var repeatsListings = false
    var agesListings = false
    var tags = Tags.none
    /// Whether the accounts are encrypted, and all devices have the keys.
    var isEncrypted = false
    /// Whether an attacker holds the remotes of the encrypted accounts.
    var hasAttacker = false
    /// Whether the accounts move to keys, from an unencrypted form or from a former key.
    var movesToKeys = false
    /// Whether the judgement begins with a month in which devices publish and collect garbage every day.
    var endsWithMonth = false

    init(conditions: Conditions, steps: [Step]) {
        self.conditions = conditions
        self.steps = steps
    }

    /// Makes the plan of a seed. In clusters, a third of the plans have encrypted accounts.
    init(seed: UInt64, inClusters: Bool = false) {
        var chance = Chance(seed: seed, stream: 1)
        var conditions = Conditions(&chance)
        if inClusters { conditions.moveToClusters(&chance) }
        self.conditions = conditions
        steps = (0..<conditions.steps).map { _ in
            Step(gap: Self.gap(&chance), action: Self.action(conditions, &chance))
        }
        addReversions(seed)
        if inClusters {
            var secrecy = Chance(seed: seed, stream: 12)
            isEncrypted = secrecy.happens(1 / 3)
        }
    }

    /// Adds restored backups, and machines reverted with their memory, to some of the plans in which running machines
    /// are copied. A random stream of its own leaves all other plans as they are.
    private mutating func addReversions(_ seed: UInt64) {
        var chance = Chance(seed: seed, stream: 4)
        guard conditions.hazards.contains(.fork), chance.happens(0.3) else { return }
        conditions.hazards.insert(.restore)
        for index in steps.indices where steps[index].action == .wait && chance.happens(0.4) {
            let device = chance.below(8)
            steps[index].action = chance.one(of: [
                .backUp(device: device), .restore(device: device), .takeSnapshot(device: device),
                .revert(device: device), .copy(device: device, isFork: true),
            ])
        }
    }

    /// Makes accounts move to keys in some plans, on one device or on several at once, some of which are killed
    /// meanwhile. A random stream of its own leaves all other plans as they are.
    ///
    /// Actions that remove the only device with a key become waits: the other devices would stop, and only their users
    /// could help.
    mutating func addMoves(_ seed: UInt64) {
        var chance = Chance(seed: seed, stream: 9)
        guard chance.happens(0.25) else { return }
        movesToKeys = true
        isEncrypted = chance.happens(0.5) || hasAttacker
        for index in steps.indices where !steps[index].action.suitsMoves { steps[index].action = .wait }
        for _ in 0..<chance.of(1...3) {
            let (device, start) = (chance.below(8), chance.below(steps.count + 1))
            var moves = [Step(gap: chance.time(second, 20 * minute), action: .move(device: device))]
            if chance.happens(0.4) {
                moves.append(Step(gap: chance.time(millisecond, minute), action: .move(device: device + 1)))
            }
            let ending = chance.happens(0.5) ? StopKind.crash : .powerCut
            let ends = [
                Action.dieWhileWriting(device: device, writes: chance.below(12)),
                .stop(device: device, ending, downtime: chance.time(second, hour)),
            ]
            if conditions.hazards.contains(.crash) {
                moves.append(Step(gap: chance.time(millisecond, minute), action: chance.one(of: ends)))
            }
            steps.insert(contentsOf: moves, at: start)
        }
        addOrdeals(&chance)
    }

    /// Empties a remote, or rolls it back, in some plans whose accounts move: at any time before, during or after the
    /// moves.
    private mutating func addOrdeals(_ chance: inout Chance) {
        guard Chore.emptyRemote.isJudgeable(with: conditions.hazards) else { return }
        func insert(_ action: Action, _ range: Range<Int>) -> Int {
            let index = chance.of(range.lowerBound...range.upperBound - 1)
            steps.insert(Step(gap: chance.time(millisecond, 10 * minute), action: action), at: index)
            return index
        }
        if chance.happens(0.2) {
            let device = chance.below(8)
            _ = insert(.chore(device: device, store: 0, .emptyRemote, duration: 0), 0..<steps.count + 1)
        }
        if !conditions.isFolder, chance.happens(0.3) {
            let saved = insert(.backUpPlace(place: 0), 0..<steps.count + 1)
            _ = insert(.strike(place: 0, .rolledBackPlace), saved + 1..<steps.count + 1)
        }
    }

    private static func gap(_ chance: inout Chance) -> UInt64 {
        chance.happens(0.5) ? UInt64(chance.below(2000)) * millisecond : chance.time(second, 20 * minute)
    }

    private static func action(_ conditions: Conditions, _ chance: inout Chance) -> Action {
        let device = chance.below(8)
        let (store, key) = (chance.below(conditions.stores), chance.below(conditions.keys))
        let choice = chance.below(100)
        if choice < 40 { return .write(device: device, store: store, key: key) }
        if choice < 58 { return .remove(device: device, store: store, key: key) }
        if choice < 68 { return .syncNow(device: device) }
        let hazard =
            conditions.isCluster && chance.happens(0.2) ? .unplugged : chance.one(of: Conditions.Hazard.allCases)
        guard conditions.hazards.contains(hazard) else { return .wait }
        return happening(hazard, device, conditions, &chance)
    }

    private static func happening(
        _ hazard: Conditions.Hazard, _ device: Int, _ conditions: Conditions, _ chance: inout Chance
    ) -> Action {
        let place = chance.below(conditions.places)
        let downtime = chance.time(second, hour)
        switch hazard {
        case .crash:
            if chance.happens(0.6) { return .dieWhileWriting(device: device, writes: chance.below(4)) }
            return .stop(device: device, chance.happens(0.3) ? .restart : .crash, downtime: downtime)
        case .powerCut: return .stop(device: device, .powerCut, downtime: downtime)
        case .reboot: return .stop(device: device, .reboot, downtime: downtime)
        case .clock: return .setClock(device: device, beside: chance.one(of: conditions.clocks))
        case .clone: return .copy(device: device, isFork: false)
        case .fork: return .copy(device: device, isFork: true)
        case .restore: return chance.happens(0.5) ? .backUp(device: device) : .restore(device: device)
        case .leave: return .leave(device: device)
        case .year: return .year(away: device)
        case .newDevice: return .newDevice(withDefaults: chance.happens(0.5))
        case .accounts: return .signIn(device: device, place: place)
        case .signOut:
            return chance.happens(0.5)
                ? .signOut(device: device, keepsValues: true) : .signIn(device: device, place: place)
        case .clear: return .signOut(device: device, keepsValues: false)
        case .localKeys, .hiddenRecords: return .writeLocal(device: device)
        case .offline: return .cut(device: device, place: place, duration: chance.time(minute, 3 * hour))
        case .unplugged where conditions.isCluster: return trouble(place, conditions, &chance)
        case .unplugged: return .unplug(device: device, place: place, duration: chance.time(minute, hour))
        case .faultProfile:
            let fault = chance.one(of: Fault.allCases)
            if fault == .rolledBackPlace, chance.happens(0.5) { return .backUpPlace(place: place) }
            return conditions.allows(fault) ? .strike(place: place, fault) : .wait
        case .forget: return .forget(device: device)
        case .quota: return .wait
        }
    }

    /// Draws a fault for a cluster. `Cluster.strike` gives a meaning to the names of other remotes' faults.
    private static func trouble(_ place: Int, _ conditions: Conditions, _ chance: inout Chance) -> Action {
        let faults: [Fault] = [
            .rolledBackPlace, .rolledBackPlace, .rolledBackObject, .lostObject, .conflictCopy, .junk,
        ]
        let fault = chance.one(of: faults)
        if fault == .rolledBackPlace, chance.happens(0.5) { return .backUpPlace(place: place) }
        return fault == .rolledBackPlace && !conditions.allows(fault) ? .wait : .strike(place: place, fault)
    }
}
