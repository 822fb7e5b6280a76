// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import StoreEngine

/// A form of the simulation.
public enum Form: String, CaseIterable, Sendable {
    /// The service's code below the bus, with SQLite on a file system in memory, and the blob backend.
    case whole
    /// The rules of joins, origins and heads, with entries in memory: many times as fast.
    case core
    /// The core form with the real backend for etcd, and clusters in memory.
    case etcd
    /// Only the keys of an account, which devices replace at any time.
    case keys
}

/// The result of a run.
public struct Outcome: Equatable, Sendable {
    /// The rule that was broken; `nil` if none was.
    public let violation: String?
    /// A hash of all events, equal for equal runs.
    public let trace: UInt64
    /// The number of acknowledged writes.
    public let writes: Int
    /// How often each excuse has counted.
    public let excused: [Excuse: Int]
}

/// The rules that can be switched off, in builds with the trait `RuleSwitches`.
public enum Rules {
    /// The names of the rules.
    public static var names: [String] { Rule.allCases.map(\.rawValue) }

    /// Switches rules off, and all others on.
    /// - Returns: false if there are names, and this build can't switch rules off.
    public static func switchOff(_ names: [String]) -> Bool {
        #if RuleSwitches
            Rule.switchOff(Set(names.compactMap(Rule.init(rawValue:))))
            return true
        #else
            return names.isEmpty
        #endif
    }
}

/// Runs seeds.
public struct Simulation: Sendable {
    private let form: Form

    /// Makes a simulation of a form.
    public init(_ form: Form) {
        self.form = form
    }

    /// Runs a seed.
    /// - Parameters:
    ///   - kept: the indexes of the plan's steps that are taken; `nil` for all.
    ///   - log: called with a line for each event.
    public func run(seed: UInt64, kept: [Int]? = nil, log: ((String) -> Void)? = nil) -> Outcome {
        if form == .keys {
            let trace = Trace(log)
            let world = KeyWorld(seed: seed, trace: trace)
            let violation = world.run()
            return Outcome(violation: violation, trace: trace.hash, writes: 0, excused: world.excused)
        }
        var plan = plan(of: seed)
        if let kept { plan.keep(kept) }
        let trace = Trace(log)
        return switch form {
        case .whole: Self.run(World<WholeDevice>(seed: seed, plan: plan, trace: trace), trace)
        case .core, .etcd, .keys: Self.run(World<CoreDevice>(seed: seed, plan: plan, trace: trace), trace)
        }
    }

    private static func run<Device>(_ world: World<Device>, _ trace: Trace) -> Outcome {
        let violation = world.run()
        return Outcome(
            violation: violation, trace: trace.hash, writes: world.ledger.count, excused: world.ledger.excused)
    }

    /// The number of steps in a seed's plan. In the form ``Form/keys``, 0.
    public func length(of seed: UInt64) -> Int { form == .keys ? 0 : plan(of: seed).steps.count }

    /// Whether a seed's accounts move to keys. Only the form ``Form/whole`` has such plans.
    public func movesToKeys(seed: UInt64) -> Bool { form == .whole && plan(of: seed).movesToKeys }

    private func plan(of seed: UInt64) -> Plan {
        switch form {
        case .whole: Plan(wholeSeed: seed)
        case .core, .keys: Plan(seed: seed)
        case .etcd: Plan(seed: seed, inClusters: true)
        }
    }

    /// Drops steps of a seed's plan as long as the same rule is broken.
    /// - Returns: the indexes of the remaining steps.
    public func shrink(seed: UInt64) -> [Int] {
        var kept = Array(0..<length(of: seed))
        let rule = run(seed: seed).violation.map(Self.rule(of:))
        var size = max(1, kept.count / 2)
        while true {
            var start = 0
            var hasShrunk = false
            while start < kept.count {
                let candidate = Array(kept[..<start] + kept[min(kept.count, start + size)...])
                if let violation = run(seed: seed, kept: candidate).violation, Self.rule(of: violation) == rule {
                    kept = candidate
                    hasShrunk = true
                } else {
                    start += size
                }
            }
            if size == 1, !hasShrunk { return kept }
            size = max(1, size / 2)
        }
    }

    /// The beginning of a violation's sentence, which identifies the rule.
    private static func rule(of violation: String) -> String {
        let start = violation.firstRange(of: /I[0-9]+:/)?.lowerBound ?? violation.startIndex
        return String(violation[start...].prefix(16))
    }
}

extension Plan {
    /// Replaces all other steps by waits, so that the kept ones happen at the same times.
    mutating func keep(_ kept: [Int]) {
        let isKept = Set(kept)
        for index in steps.indices where !isKept.contains(index) { steps[index].action = .wait }
    }
}
