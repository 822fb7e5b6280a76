// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Simulation

/// Switches each rule off, and looks whether that is noticed.
struct RuleTable: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rules", abstract: "Switches each rule off; fails if the simulation does not notice in time.")

    /// Which seeds have to notice each. The figures are those of docs/simulation.md; where the first one that does is far
    /// off, those before it are left out. Other plans have other first seeds: `simulate FORM --without RULE` finds them.
    private static let seeds: [(rule: String, form: Form, seeds: ClosedRange<UInt64>)] = [
        ("vectors", .core, 1...4000), ("causality-first", .core, 1...2000), ("successors", .core, 1...20),
        ("all-at-once", .core, 609_601...609_700),
        ("provisional", .core, 1...200), ("fresh-origins", .core, 1...200), ("record-first", .core, 1...2000),
        ("sync-first", .core, 1...20), ("exact-marks", .core, 1...1000), ("whole-states", .core, 1...100),
        ("segments-first", .core, 1...5000), ("retired-heads", .core, 1...20), ("no-echo", .core, 1...50),
        ("daily-head", .core, 1...6000), ("keep-origins", .core, 1...6000),
        ("counted-heads", .core, 8_532_701...8_532_800), ("seen-replacements", .core, 8_355_701...8_355_800),
        ("keep-pending", .core, 1...500), ("leave-clones", .core, 1...500), ("pass-on", .whole, 1...100),
        ("heads-stay", .whole, 1...40), ("known-heads", .whole, 1...60), ("segments-stay", .whole, 1...40),
        ("named-segments", .whole, 141...180),
        ("one-order", .etcd, 1...50), ("entries-first", .etcd, 1...500), ("read-anew", .etcd, 1...1500),
        ("known-history", .etcd, 1401...1450), ("same-history", .etcd, 1401...1450),
    ]

    func run() throws {
        var isBlind = false
        for (rule, form, seeds) in Self.seeds {
            try SeedOptions.switchOff(rule)
            let simulation = Simulation(form)
            let found = seeds.lazy.compactMap { seed in
                simulation.run(seed: seed).violation.map { (seed, $0) }
            }.first
            isBlind = isBlind || found == nil
            print("\(rule): \(found.map { "seed \($0.0): \($0.1)" } ?? "NOT NOTICED by the seeds \(seeds)")")
        }
        if isBlind { throw ExitCode.failure }
    }
}
