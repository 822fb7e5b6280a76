// SPDX-License-Identifier: Apache-2.0

/// A fault of a request, or of what a remote holds.
public enum Fault: Int, CaseIterable, Sendable {
    // Requests.
    case lostRequest, lostReply, latePut, duplicatePut, slowReply, busy, full
    // What a storage returns.
    case stalePart, partialListing, emptyListing, tornPut, tornRead
    // Stored objects.
    case lostObject, rolledBackObject, rolledBackPlace, undoneDelete, ignoredDelete, conflictCopy, junk

    /// Whether it can undo what was acknowledged. Devices restore that; but if a device may be lost with its data, the
    /// remote must not lose the same data.
    var losesObjects: Bool {
        switch self {
        case .latePut, .duplicatePut, .lostObject, .rolledBackObject, .rolledBackPlace, .undoneDelete: true
        default: false
        }
    }
}

/// The probability of each fault in one run.
struct FaultProfile {
    private(set) var rates: [Double] = Array(repeating: 0, count: Fault.allCases.count)

    /// No faults.
    static let fair = FaultProfile()

    /// Draws some faults, frequent or rare ones.
    init(_ chance: inout Chance, allowing isAllowed: (Fault) -> Bool) {
        let strength = chance.one(of: [0.0, 0.3, 1, 1, 2])
        for fault in Fault.allCases where isAllowed(fault) && chance.happens(0.4) {
            rates[fault.rawValue] = strength * chance.one(of: [0.01, 0.03, 0.06])
        }
    }

    /// Makes these faults happen whenever they can.
    init(always faults: [Fault]) {
        for fault in faults { rates[fault.rawValue] = 1 }
    }

    private init() {}

    func rate(_ fault: Fault) -> Double { rates[fault.rawValue] }
}

/// What happens to a request.
enum Fate {
    /// The request never arrives.
    case lost
    case refused(retryAfter: Int, after: UInt64)
    /// The request takes effect after a while, and is answered a while after that.
    case heard(after: UInt64, answerAfter: UInt64, isAnswerLost: Bool)
}

extension FaultProfile {
    func strikes(_ fault: Fault, _ chance: inout Chance) -> Bool { chance.happens(rate(fault)) }

    func fate(isCut: Bool, _ chance: inout Chance) -> Fate {
        if isCut || strikes(.lostRequest, &chance) { return .lost }
        if strikes(.busy, &chance) {
            return .refused(retryAfter: chance.of(1...120), after: chance.latency())
        }
        let isAnswerLost = strikes(.lostReply, &chance)
        let wait = strikes(.slowReply, &chance) ? chance.time(second, 5 * minute) : chance.latency()
        return .heard(after: chance.latency(), answerAfter: wait, isAnswerLost: isAnswerLost)
    }
}

extension Chance {
    /// The time that a message is under way: 1 to 40 ms, in microseconds.
    mutating func latency() -> UInt64 { UInt64(of(1...40)) * millisecond }
}
