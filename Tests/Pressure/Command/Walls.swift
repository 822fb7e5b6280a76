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
            The same attack is made on a program that stores nothing, on a bus of its own. Fails if the service ends, \
            or if calls of another user take more than 250 ms at the 99th percentile, or more than 1.5 times what they \
            take of that program and 1 ms longer. Some attacks need more than that program has, or keep it from \
            answering: these are compared with the time before, less what the bus itself takes longer.
            """)
    @OptionGroup var options: BusOptions
    @Option(help: "How long to measure without and with each attack.") var seconds = 10
    @Option(help: "Which attacks; all of them.") var attack: [Attack] = Attack.allCases
    @Option(help: "The program to compare with: the benchmarks' baseline.") var baseline: String

    func run() async throws {
        say(Measurement.wallsHeading)
        var failures: [String] = []
        for attack in attack {
            let verdict = try await run(attack)
            if let verdict { failures.append("\(attack.rawValue): \(verdict)") }
        }
        guard failures.isEmpty else { throw Failure(failures.joined(separator: "\n")) }
    }

    /// - Returns: the rule that does not hold; `nil` if all do.
    private func run(_ attack: Attack) async throws -> String? {
        let site = try await Site(options.bus, policy: options.policy, settings: attack.settings)
        let store = try await BusClient(site.bus, as: Site.attacker).store(Site.store)
        try await store.set("large", .data([UInt8](repeating: 1, count: 1_000_000)))
        let before = try await Measurement(of: site, seconds: seconds)
        let (during, isOver) = try await measure(attack, site)
        let ofBaseline = try await measureBaseline(attack)
        say(before.row(attack.words(on: site.bus.program), during, ofBaseline))
        if site.device.exit != nil { return "the service ended: \(site.device.log)" }
        if isOver { return "the attack ended by itself" }
        return during.flaw(before: before, baseline: ofBaseline.measurement)
    }

    /// Measures while a user attacks.
    /// - Returns: what was measured, and whether the attack has ended by itself.
    private func measure(
        _ attack: Attack, _ site: Site, patience: Duration = .seconds(60)
    ) async throws -> (Measurement, isOver: Bool) {
        let attackers = try await attack.begin(site, try Site.path(of: Site.attacker))
        defer { attackers.end() }
        let measurement = try await Measurement(of: site, seconds: seconds, patience: patience)
        return (measurement, attackers.process?.exit != nil)
    }

    private func measureBaseline(_ attack: Attack) async throws -> BaselineResult {
        guard !attack.needsService else { return .pointless }
        let site = try await Site(options.bus, policy: options.policy, baseline: baseline)
        do {
            return .measured(try await measure(attack, site, patience: .seconds(10)).0)
        } catch is Failure {
            // The bus takes nothing more from a program that leaves too much unread, or refuses calls to it.
            return .fallen
        }
    }
}

/// What became of the baseline under an attack.
enum BaselineResult {
    case measured(Measurement)
    /// Calls to it were not answered.
    case fallen
    /// The attack is on something that it does not have.
    case pointless

    var measurement: Measurement? {
        if case .measured(let measurement) = self { measurement } else { nil }
    }
}
