// SPDX-License-Identifier: Apache-2.0

/// What only the whole engine has: what a user does besides writing, and what a disk refuses.
enum Chore: String, CaseIterable, Sendable {
    /// Sync rests on a device, or goes on.
    case pause
    /// A store takes no part in the sync, or does again.
    case keepStoreHere
    /// A device forgets a store, which is taken into use again at once.
    case forgetStore
    /// Every key of a store is removed, for all devices.
    case removeStore
    /// Somebody empties the remote; each device that finds it so says after a while that it is right.
    case emptyRemote
    /// Another device is taken off the list; what it left in the remote may go.
    case forgetDevice
    /// A write finds no room on the disk.
    case fullDisk
    /// For a while nothing can be brought to the disk.
    case failingSync
    /// A store is filled: up to its limits, in keys or in bytes.
    case fill
    /// A value that takes a store over what a head has of it, so that there are segments.
    case grow
    /// What is listed comes twice, or as it was before; through a whole run.
    case repeatedListings, olderListings

    /// How likely it is that a run has it.
    var likelihood: Double {
        switch self {
        case .pause, .forgetDevice, .fullDisk, .failingSync: 0.2
        case .keepStoreHere, .forgetStore, .removeStore: 0.1
        case .fill: 0.03
        case .grow: 0.4
        case .emptyRemote: 0.05
        case .repeatedListings, .olderListings: 0.15
        }
    }

    /// Whether it can be told what has to be there in the end.
    func isJudgeable(with hazards: Set<Conditions.Hazard>) -> Bool {
        switch self {
        // Then the remote loses nothing that it has acknowledged.
        case .forgetStore: hazards.contains(where: \.losesDevices) && !hazards.contains(.fork)
        // What is written meanwhile goes to the account that is there when it is over.
        case .keepStoreHere: hazards.isDisjoint(with: [.accounts, .signOut, .clear])
        case .fill, .grow: !hazards.contains(.quota)
        // The devices have what was there; and who is signed out has nothing to resolve, and finds no account.
        case .emptyRemote:
            !hazards.contains { $0.losesDevices || [.fork, .accounts, .signOut].contains($0) }
        default: true
        }
    }
}

extension Plan {
    /// The plan of a seed for the whole engine: the same one, and while it waits there are chores.
    init(wholeSeed seed: UInt64) {
        self.init(seed: seed)
        var chance = Chance(seed: seed, stream: 3)
        var chores: [Chore] = []
        for chore in Chore.allCases where chance.happens(chore.likelihood) {
            if chore.isJudgeable(with: conditions.hazards) { chores.append(chore) }
        }
        (repeatsListings, agesListings) = (chores.contains(.repeatedListings), chores.contains(.olderListings))
        chores.removeAll { [.repeatedListings, .olderListings].contains($0) }
        tags = chance.one(of: [.none, .right, .right, .late, .stuck, .restless])
        endsWithMonth = chance.happens(0.05)
        for index in steps.indices where steps[index].action == .wait && !chores.isEmpty {
            let (device, store) = (chance.below(8), chance.below(conditions.stores))
            steps[index].action = .chore(
                device: device, store: store, chance.one(of: chores), duration: chance.time(second, hour))
        }
        var secrecy = Chance(seed: seed, stream: 4)
        isEncrypted = secrecy.happens(1 / 3)
        hasAttacker = isEncrypted && secrecy.happens(0.6)
        for _ in 0..<(hasAttacker ? secrecy.of(1...10) : 0) {
            let attack = Action.attack(
                place: secrecy.below(conditions.places), secrecy.one(of: Attack.allCases))
            let loss = Action.loseKey(device: secrecy.below(8))
            let step = Step(
                gap: secrecy.time(second, 20 * minute), action: secrecy.happens(0.2) ? loss : attack)
            steps.insert(step, at: secrecy.below(steps.count + 1))
        }
        addMoves(seed)
    }
}
