// SPDX-License-Identifier: Apache-2.0

/// What happens in the whole form only: what a user does besides writing, and disk faults.
enum Chore: String, CaseIterable, Sendable {
    /// A user pauses sync on a device, or resumes it.
    case pause
    /// A store is excluded from sync, or included again.
    case keepStoreHere
    /// A device forgets a store, which is used again at once.
    case forgetStore
    /// Every key of a store is removed, for all devices.
    case removeStore
    /// The remote is emptied. Each device that finds it empty declares its own state right after a while.
    case emptyRemote
    /// Another device is removed from the list. What it left in the remote may be removed.
    case forgetDevice
    /// A write finds no room on the disk.
    case fullDisk
    /// The disk can't be synced for a while.
    case failingSync
    /// A store is filled up to its limits, in keys or in bytes.
    case fill
    /// A value is written that is too large for a head, so that the store needs segments.
    case grow
    /// Listings repeat names, or are old, for a whole run.
    case repeatedListings, olderListings

    /// The probability that a run has it.
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

    /// Whether the judgement can still tell what has to be there in the end.
    func isJudgeable(with hazards: Set<Conditions.Hazard>) -> Bool {
        switch self {
        // In such runs the remote loses nothing that it has acknowledged.
        case .forgetStore: hazards.contains(where: \.losesDevices) && !hazards.contains(.fork)
        // Writes made meanwhile go to the account that is present when the store is included again.
        case .keepStoreHere: hazards.isDisjoint(with: [.accounts, .signOut, .clear])
        case .fill, .grow: !hazards.contains(.quota)
        // The devices can restore the contents. A signed-out device has nothing to resolve, and would find no account.
        case .emptyRemote:
            !hazards.contains { $0.losesDevices || [.fork, .accounts, .signOut].contains($0) }
        default: true
        }
    }
}

extension Plan {
    /// Makes the plan of a seed for the whole form. It is the same plan with chores in place of waiting.
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
