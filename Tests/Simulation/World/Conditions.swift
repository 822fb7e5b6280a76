// SPDX-License-Identifier: Apache-2.0

internal import PropertyList

/// The conditions of a run: how many devices, remotes, stores and keys there are, and what may happen to them.
public struct Conditions: Sendable {
    var isFolder = false
    var isCluster = false
    /// The most operations in one transaction of a publication, and the most transactions that the account's row names.
    var mostOperations = 120
    var mostTokens = 128
    var givesHints = false
    var hasSubscribers = true
    var devices = 2
    var places = 1
    var stores = 1
    var keys = 2
    var hazards: Set<Hazard> = []
    /// The clock errors that devices may have, in milliseconds.
    var clocks: [Int64] = [0]
    var steps = 40
    var limits = Limits.standard

    /// Hazards for devices and their users.
    public enum Hazard: String, CaseIterable, Sendable {
        case crash, powerCut, reboot, clock, clone, restore, leave, year, fork, newDevice, accounts, signOut, clear
        case quota, hiddenRecords, localKeys, offline, unplugged, faultProfile, forget

        /// Whether it may destroy data that only one device holds.
        var losesDevices: Bool { [.powerCut, .restore, .leave, .clear].contains(self) }
    }

    private static let likelihood: [(Hazard, Double)] = [
        (.crash, 0.5), (.powerCut, 0.3), (.reboot, 0.3), (.clock, 0.4), (.clone, 0.3), (.restore, 0.3), (.leave, 0.15),
        (.year, 0.05), (.newDevice, 0.4), (.accounts, 0.15), (.signOut, 0.2), (.clear, 0.05), (.quota, 0.15),
        (.hiddenRecords, 0.2), (.localKeys, 0.15), (.offline, 0.5), (.unplugged, 0.2), (.faultProfile, 0.7),
        (.forget, 0.4),
    ]

    /// Draws the conditions from a seed.
    ///
    /// Some hazards exclude each other. A device that is lost or restored loses data of accounts that it does not show,
    /// which nobody can tell from outside; so runs with two accounts have no such devices. A clone's write can be lost
    /// with a device, or with what was forgotten, before both clones have heard of each other: docs/decisions/0015.
    init(_ chance: inout Chance) {
        isFolder = chance.happens(0.4)
        givesHints = chance.happens(0.4)
        hasSubscribers = chance.happens(0.7)
        devices = chance.one(of: [2, 2, 3, 3, 4])
        stores = chance.one(of: [1, 1, 2])
        keys = chance.one(of: [1, 2, 2, 4, 12])
        steps = chance.happens(0.1) ? chance.of(50...120) : chance.of(5...50)
        for (hazard, rate) in Self.likelihood where chance.happens(rate) { hazards.insert(hazard) }
        if chance.happens(0.1) { hazards.insert(.fork) }
        if hazards.contains(.accounts) {
            places = 2
            hazards.subtract([.powerCut, .restore, .leave, .clear, .fork])
        }
        if hazards.contains(.fork) {
            hazards.subtract([.restore, .leave, .clear, .powerCut, .year, .forget])
        }
        if hazards.contains(.clock) { clocks = [0, 0, -400, 400, 10_000_000, -1_800_000_000_000, 2_000_000_000_000] }
        if hazards.contains(.quota) { limits = Limits(keys: 3, totalBytes: 40) }
    }

    init() {}

    /// Puts the accounts into clusters.
    mutating func moveToClusters(_ chance: inout Chance) {
        (isCluster, isFolder, givesHints) = (true, false, true)
        hazards.insert(.unplugged)
        mostOperations = chance.one(of: [4, 6, 12, 120])
        mostTokens = chance.one(of: [3, 10, 30, 128])
    }

    func allows(_ fault: Fault) -> Bool {
        if !hazards.contains(.faultProfile) { return false }
        if fault.losesObjects, hazards.contains(where: \.losesDevices) || hazards.contains(.fork) { return false }
        return true
    }
}
