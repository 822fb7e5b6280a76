// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import Simulation

/// Which seeds, and what is said of them.
struct SeedOptions: ParsableArguments {
    @Option(help: "How many seeds.") var seeds: UInt64 = 1000
    @Option(help: "The first seed.") var first: UInt64 = 1
    @Flag(help: "Go on after a seed that breaks a rule.") var keepGoing = false
    @Option(help: "Every so many seeds one is run again, to compare the traces; 0: none.") var again: UInt64 = 50

    @Option(help: "Rules that are switched off, with commas; needs a build with the trait RuleSwitches.")
    var without: String?

    func run(_ form: Form) throws {
        try Self.switchOff(without)
        let simulation = Simulation(form)
        let start = Self.time
        var (broken, lastLine) = (0, start)
        for seed in first..<(first + seeds) {
            let outcome = simulation.run(seed: seed)
            if again > 0, seed % again == 0, simulation.run(seed: seed) != outcome {
                print("seed \(seed): another trace when it was run again")
                throw ExitCode.failure
            }
            if let violation = outcome.violation {
                broken += 1
                tell(simulation, form, seed, violation)
                if !keepGoing { throw ExitCode.failure }
            }
            if Self.time - lastLine > 10 {
                lastLine = Self.time
                tellProgress(seed - first + 1, broken, start)
            }
        }
        tellProgress(seeds, broken, start)
        if broken > 0 { throw ExitCode.failure }
    }

    static func switchOff(_ rules: String?) throws {
        let names = rules.map { $0.split(separator: ",").map(String.init) } ?? []
        if let unknown = names.first(where: { !Rules.names.contains($0) }) {
            throw ValidationError("\(unknown) is no rule; rules are: \(Rules.names.joined(separator: ", "))")
        }
        if !Rules.switchOff(names) { throw ValidationError("build with --traits RuleSwitches to switch rules off") }
    }

    private func tell(_ simulation: Simulation, _ form: Form, _ seed: UInt64, _ violation: String) {
        print("seed \(seed): \(violation)")
        fflush(nil)
        if keepGoing { return }
        let kept = simulation.shrink(seed: seed).map(String.init).joined(separator: ",")
        let command = "  simulate replay \(form.rawValue) \(seed) --trace" + (without.map { " --without \($0)" } ?? "")
        print(command)
        print("\(command) --only \(kept.isEmpty ? "none" : kept)")
    }

    private func tellProgress(_ count: UInt64, _ broken: Int, _ start: Double) {
        let seconds = max(Self.time - start, 0.001)
        print("\(count) seeds in \(Int(seconds)) s, \(Int(Double(count) / seconds)) a second, \(broken) broken")
        fflush(nil)
    }

    private static var time: Double {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        return Double(now.tv_sec) + Double(now.tv_nsec) / 1e9
    }
}
