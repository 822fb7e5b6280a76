// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import StoreEngine

/// A form of the simulation.
public enum Form: String, CaseIterable, Sendable {
    /// The engine as it is, with SQLite on a file system in memory, and the blob backend.
    case whole
    /// The rules of the merge, the origins and the heads, with entries in memory: a hundred times as fast.
    case core
    /// The core with the backend of etcd as it is, and clusters in memory.
    case etcd
    /// The keys of accounts that move to keys at any time: nothing else is there.
    case keys
}

/// What a run came to.
public struct Outcome: Equatable, Sendable {
    /// The rule that was broken, if one was.
    public let violation: String?
    /// Equal for equal runs.
    public let trace: UInt64
    /// How many writes were acknowledged.
    public let writes: Int
    /// How many of these may be gone for reasons that no rule can do anything about.
    public let excused: [Excuse: Int]
}

/// The rules that can be switched off, in builds with the trait `RuleSwitches`.
public enum Rules {
    /// Their names.
    public static var names: [String] { Rule.allCases.map(\.rawValue) }

    /// Switches rules off, and all others on.
    /// - Returns: whether this build can.
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

    /// Runs of a form.
    public init(_ form: Form) {
        self.form = form
    }

    /// Runs a seed.
    /// - Parameters:
    ///   - kept: the steps of its plan that are done; `nil`: all.
    ///   - log: takes a line for everything that happens.
    public func run(seed: UInt64, kept: [Int]? = nil, log: ((String) -> Void)? = nil) -> Outcome {
        if form == .keys {
            let trace = Trace(log)
            let violation = KeyWorld(seed: seed, trace: trace).run()
            return Outcome(violation: violation, trace: trace.hash, writes: 0, excused: [:])
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
        let (writes, excused) = world.ledger.counts
        return Outcome(violation: violation, trace: trace.hash, writes: writes, excused: excused)
    }

    /// How many steps a seed's plan has.
    public func length(of seed: UInt64) -> Int { form == .keys ? 0 : plan(of: seed).steps.count }

    /// Whether a seed's accounts move to keys.
    public func movesToKeys(seed: UInt64) -> Bool { form == .whole && plan(of: seed).movesToKeys }

    private func plan(of seed: UInt64) -> Plan {
        switch form {
        case .whole: Plan(wholeSeed: seed)
        case .core, .keys: Plan(seed: seed)
        case .etcd: Plan(seed: seed, inClusters: true)
        }
    }

    /// Drops steps of a seed that breaks a rule, as long as it breaks one.
    /// - Returns: the steps that are left.
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

    /// What a sentence about a broken rule says before its details.
    private static func rule(of violation: String) -> String {
        let start = violation.firstRange(of: /I[0-9]+:/)?.lowerBound ?? violation.startIndex
        return String(violation[start...].prefix(16))
    }
}

extension Plan {
    /// Leaves steps out; those that are kept happen when they would have.
    mutating func keep(_ kept: [Int]) {
        let isKept = Set(kept)
        for index in steps.indices where !isKept.contains(index) { steps[index].action = .wait }
    }
}
