// SPDX-License-Identifier: Apache-2.0

internal import Simulation

/// What the outcomes of seeds add up to.
struct Tally: Codable {
    private(set) var writes = 0
    /// How often each excuse has counted, by its name.
    private(set) var excused: [String: Int] = [:]

    mutating func add(_ outcome: Outcome) {
        writes += outcome.writes
        for (excuse, count) in outcome.excused { excused[excuse.rawValue, default: 0] += count }
    }

    mutating func add(_ other: Tally) {
        writes += other.writes
        excused.merge(other.excused, uniquingKeysWith: +)
    }

    /// Lines to print.
    var text: String {
        let counts = Excuse.allCases.map(\.rawValue).compactMap { name in excused[name].map { "\(name) \($0)" } }
        let losses = Excuse.allCases.filter(\.isLoss).reduce(0) { $0 + excused[$1.rawValue, default: 0] }
        return """
            \(writes) writes acknowledged, \(losses) of them excused
            excused: \(counts.isEmpty ? "nothing" : counts.joined(separator: ", "))
            """
    }
}
