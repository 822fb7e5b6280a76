// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Simulation

/// Switches each rule off, and looks whether that is noticed.
struct RuleTable: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rules", abstract: "Switches each rule off; fails if the simulation does not notice in time.")

    /// Within how many seeds each has to be noticed. The figures are those of docs/simulation.md.
    private static let seeds: [(rule: String, form: Form, most: UInt64)] = [
        ("contexts", .core, 4000), ("causality-first", .core, 2000), ("successors", .core, 20),
        ("provisional", .core, 200), ("fresh-origins", .core, 200), ("record-first", .core, 2000),
        ("sync-first", .core, 20), ("exact-marks", .core, 1000), ("whole-states", .core, 100),
        ("segments-first", .core, 5000), ("dead-heads", .core, 20), ("no-echo", .core, 50),
        ("daily-head", .core, 6000), ("keep-origins", .core, 6000),
        ("keep-pending", .core, 500), ("leave-twins", .core, 500), ("pass-on", .whole, 100),
        ("one-order", .etcd, 50), ("entries-first", .etcd, 500), ("read-anew", .etcd, 1500),
        ("known-history", .etcd, 500),
    ]

    func run() throws {
        var isBlind = false
        for (rule, form, most) in Self.seeds {
            try SeedOptions.switchOff(rule)
            let simulation = Simulation(form)
            let found = (1...most).lazy.compactMap { seed in
                simulation.run(seed: seed).violation.map { (seed, $0) }
            }.first
            isBlind = isBlind || found == nil
            print("\(rule): \(found.map { "seed \($0.0): \($0.1)" } ?? "NOT NOTICED within \(most) seeds")")
        }
        if isBlind { throw ExitCode.failure }
    }
}
