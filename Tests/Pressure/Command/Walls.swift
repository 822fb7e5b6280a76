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
            answering: these are compared with the time before, less what the bus itself takes longer. What is missed \
            once is measured twice more.
            """)
    @OptionGroup var options: BusOptions
    @Option(help: "How long to measure without and with each attack.") var seconds = 10
    @Option(help: "Which attacks; all of them.") var attack: [Attack] = Attack.allCases
    @Option(help: "The program to compare with: the benchmarks' baseline.") var baseline: String

    func run() async throws {
        say(Measurement.wallsHeading)
        var failures: [String] = []
        for attack in attack {
            guard attack.isPossible(on: options.bus) else {
                say("\(attack.rawValue) isn't possible on \(options.bus)")
                continue
            }
            if let verdict = try await verdict(on: attack) { failures.append("\(attack.rawValue): \(verdict)") }
        }
        guard failures.isEmpty else { throw Failure(failures.joined(separator: "\n")) }
    }

    /// Other work on the machine makes some calls slow, so a goal is missed only if two of three runs miss it.
    /// - Returns: the rule that does not hold; `nil` if all do.
    private func verdict(on attack: Attack) async throws -> String? {
        guard let first = try await run(attack) else { return nil }
        if first.isCertain { return first.text }
        guard let second = try await run(attack) else { return try await run(attack)?.text }
        return second.text
    }

    private func run(_ attack: Attack) async throws -> Flaw? {
        let site = try await Site(options.bus, policy: options.policy, settings: attack.settings)
        let store = try await BusClient(site.bus, as: Site.attacker).store(Site.store)
        try await store.set("large", .data([UInt8](repeating: 1, count: 1_000_000)))
        let before = try await Measurement(of: site, seconds: seconds)
        let (during, isOver) = try await measure(attack, site)
        let ofBaseline = try await measureBaseline(attack)
        say(before.row(attack.words(on: site.bus.program), during, ofBaseline))
        if site.device.exit != nil { return Flaw("the service ended: \(site.device.log)", isCertain: true) }
        if isOver { return Flaw("the attack ended by itself", isCertain: true) }
        return during.flaw(before: before, baseline: ofBaseline.measurement).map { Flaw($0, isCertain: false) }
    }

    /// What is wrong.
    private struct Flaw {
        let text: String
        /// Whether it can't be chance.
        let isCertain: Bool

        init(_ text: String, isCertain: Bool) { (self.text, self.isCertain) = (text, isCertain) }
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
        // If it doesn't answer without an attack, this throws.
        _ = try await Measurement(of: site, seconds: 1, patience: .seconds(10))
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
