// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import PressureTesting
internal import PropertyList
internal import UbiquitousStoreTesting

/// Measures what others notice of an attack.
struct Walls: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Has a user do harm, and says what another one notices, and what the service needs meanwhile.",
        discussion: """
            Fails if the service ends, or if a call of another user takes longer than 250 ms at the 99th percentile, \
            or both longer than 1.5 times what it took before and longer by more than what the bus itself takes.
            """)
    @OptionGroup var options: BusOptions
    @Option(help: "How long to measure without and with each attack.") var seconds = 10
    @Option(help: "Which attacks; all of them.") var attack: [Attack] = Attack.allCases

    func run() async throws {
        say(Measurement.heading)
        var failures: [String] = []
        for attack in attack {
            let verdict = try await run(attack)
            if let verdict { failures.append("\(attack.rawValue): \(verdict)") }
        }
        guard failures.isEmpty else { throw Failure(failures.joined(separator: "\n")) }
    }

    /// - Returns: the rule that does not hold; `nil` if all do.
    private func run(_ attack: Attack) async throws -> String? {
        let site = try await Site(options.bus, policy: options.policy)
        let store = try await BusClient(site.bus, as: Site.attacker).store(Site.store)
        try await store.set("large", .data([UInt8](repeating: 1, count: 1_000_000)))
        let before = try await Measurement(of: site, seconds: seconds)
        let attackers = try await attack.begin(site, await store.path)
        let during = try await Measurement(of: site, seconds: seconds)
        attackers.end()
        say(before.row(attack.words, during))
        if site.device.exit != nil { return "the service ended: \(site.device.log)" }
        return during.flaw(comparedWith: before)
    }
}
