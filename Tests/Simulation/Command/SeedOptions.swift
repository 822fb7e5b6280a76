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

    func run(_ form: Form) throws {
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

    private func tell(_ simulation: Simulation, _ form: Form, _ seed: UInt64, _ violation: String) {
        print("seed \(seed): \(violation)")
        if keepGoing { return }
        let kept = simulation.shrink(seed: seed).map(String.init).joined(separator: ",")
        print("  simulate replay \(form.rawValue) \(seed) --trace")
        print("  simulate replay \(form.rawValue) \(seed) --trace --only \(kept.isEmpty ? "none" : kept)")
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
