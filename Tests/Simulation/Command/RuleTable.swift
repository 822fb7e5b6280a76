// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Foundation
internal import Simulation

/// Switches each rule off in turn, and checks that the simulation notices.
struct RuleTable: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rules", abstract: "Switches each rule off; fails if the simulation does not notice in time.")

    @Option(help: "The directory of the stories.") var stories = "Tests/Simulation/Scenarios"

    /// What has to notice that a rule is off.
    private enum Witness {
        /// A seed of a range.
        case seeds(Form, ClosedRange<UInt64>)
        /// A seed of a range, among those whose accounts move to keys.
        case moves(ClosedRange<UInt64>)
        /// A story, for cases that random plans meet less than once in a hundred thousand seeds.
        case story(String)
    }

    /// The ranges begin with the first seeds that notice, as in docs/simulation.md: without a rule, devices may never
    /// come to rest, so that the seeds before these take minutes. If plans change, so do the first seeds: `simulate FORM
    /// --without RULE` finds them.
    private static let witnesses: [(rule: String, Witness)] = [
        ("vectors", .seeds(.core, 1242...4000)), ("causality-first", .seeds(.core, 1349...2000)),
        ("successors", .seeds(.core, 4...20)), ("all-at-once", .story("old-head-and-late-write")),
        ("provisional", .seeds(.core, 4...200)), ("fresh-origins", .seeds(.core, 10...200)),
        ("record-first", .seeds(.core, 641...2000)), ("sync-first", .seeds(.core, 1...20)),
        ("exact-marks", .seeds(.core, 286...1000)), ("whole-states", .seeds(.core, 1...100)),
        ("segments-first", .seeds(.core, 99...20_000)), ("retired-heads", .seeds(.core, 1...20)),
        ("no-echo", .seeds(.core, 2...50)), ("daily-head", .seeds(.core, 6358...10_000)),
        ("lost-heads", .story("head-lost-with-its-device")), ("keep-origins", .seeds(.core, 15...6000)),
        ("counted-heads", .story("upgrade-amid-upload")),
        ("seen-replacements", .story("alias-lost")), ("keep-pending", .seeds(.core, 6...500)),
        ("leave-clones", .seeds(.core, 20...500)), ("pass-on", .seeds(.whole, 1...100)),
        ("heads-stay", .seeds(.whole, 2...100)), ("known-heads", .seeds(.whole, 43...100)),
        ("replaced-stay", .story("late-head-of-a-lost-device")),
        ("segments-stay", .seeds(.whole, 1...400)), ("named-segments", .seeds(.whole, 173...400)),
        ("one-order", .seeds(.etcd, 1...50)), ("entries-first", .seeds(.etcd, 4...500)),
        ("read-anew", .seeds(.etcd, 2515...5000)), ("known-history", .seeds(.etcd, 1447...10_000)),
        ("same-history", .story("restored-while-read")),
        ("never-plain", .story("key-lost")), ("bound-header", .seeds(.whole, 3...100)),
        ("encrypted-wins", .story("key-lost")), ("proven-links", .story("forged-markers")),
        ("marker-links", .seeds(.keys, 114...1000)), ("give-way", .seeds(.keys, 1...1000)),
        ("proven-successors", .seeds(.keys, 24...1000)), ("former-names", .story("left-before-moves")),
        ("own-names", .story("left-under-another-key")), ("plain-successor", .story("left-before-the-words")),
        ("link-kinds", .story("replaced-in-a-partition")), ("join-again", .story("read-to-its-end")),
        ("own-leftovers", .story("another-accounts-leftovers")), ("key-first", .moves(3...2000)),
    ]

    func run() throws {
        var isBlind = false
        for (rule, witness) in Self.witnesses {
            try SeedOptions.switchOff(rule)
            let notice = try look(witness)
            isBlind = isBlind || notice == nil
            print("\(rule): \(notice ?? "NOT NOTICED by \(witness)")")
        }
        if isBlind { throw ExitCode.failure }
    }

    /// - Returns: the seed or story that has noticed, and how; `nil` if none has.
    private func look(_ witness: Witness) throws -> String? {
        switch witness {
        case .seeds(let form, let seeds): return look(form, seeds)
        case .moves(let seeds):
            let simulation = Simulation(.whole)
            return look(.whole, seeds.lazy.filter { simulation.movesToKeys(seed: $0) })
        case .story(let name):
            let text = try String(contentsOfFile: "\(stories)/\(name).txt", encoding: .utf8)
            return try Scenario(text).play().difference.map { _ in "\(name).txt is seen otherwise" }
        }
    }

    private func look(_ form: Form, _ seeds: some Sequence<UInt64>) -> String? {
        let simulation = Simulation(form)
        for seed in seeds {
            if let violation = simulation.run(seed: seed).violation { return "seed \(seed): \(violation)" }
        }
        return nil
    }
}
