// SPDX-License-Identifier: Apache-2.0

/// What can go wrong with a request, or with what a remote holds.
public enum Fault: Int, CaseIterable, Sendable {
    // Requests.
    case lostRequest, lostReply, latePut, duplicatePut, slowReply, busy, full
    // What a storage answers.
    case stalePart, partialListing, emptyListing, tornPut, tornRead
    // What becomes of what was stored.
    case lostObject, rolledBackObject, rolledBackPlace, undoneDelete, ignoredDelete, conflictCopy, junk

    /// Whether it can take away what was acknowledged. The devices bring it back; where a device may be lost with
    /// what it held, the remote may not lose it as well.
    var losesObjects: Bool {
        switch self {
        case .latePut, .duplicatePut, .lostObject, .rolledBackObject, .rolledBackPlace, .undoneDelete: true
        default: false
        }
    }
}

/// How likely what is, in one run.
struct Weather {
    private(set) var rates: [Double] = Array(repeating: 0, count: Fault.allCases.count)

    /// Nothing goes wrong.
    static let fair = Weather()

    /// What a seed makes of it: some faults, often or seldom.
    init(_ chance: inout Chance, allowing isAllowed: (Fault) -> Bool) {
        let strength = chance.one(of: [0.0, 0.3, 1, 1, 2])
        for fault in Fault.allCases where isAllowed(fault) && chance.happens(0.4) {
            rates[fault.rawValue] = strength * chance.one(of: [0.01, 0.03, 0.06])
        }
    }

    private init() {}

    func rate(_ fault: Fault) -> Double { rates[fault.rawValue] }
}
