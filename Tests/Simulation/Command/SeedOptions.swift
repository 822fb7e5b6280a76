// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Foundation
internal import Simulation

/// Which seeds to run, and how.
struct SeedOptions: ParsableArguments {
    @Option(help: "How many seeds.") var seeds: UInt64 = 1000
    @Option(help: "The first seed.") var first: UInt64 = 1
    @Flag(help: "Go on after a seed that breaks a rule.") var keepGoing = false
    @Option(help: "Every so many seeds one is run again, to compare the traces; 0: none.") var again: UInt64 = 50

    @Flag(help: "Pass over seeds whose accounts don't move to keys.") var moving = false

    @Option(help: "How many processes share the seeds.") var jobs: UInt64 = 1

    // The file to which one of these processes writes its tally.
    @Option(help: .hidden) var tally: String?

    @Option(help: "Rules that are switched off, with commas; needs a build with the trait RuleSwitches.")
    var without: String?

    func run(_ form: Form) throws {
        try Self.switchOff(without)
        if jobs > 1 { return try share(form) }
        let simulation = Simulation(form)
        let start = Self.time
        var (broken, lastLine) = (0, start)
        var sum = Tally()
        for seed in first..<(first + seeds) where !moving || simulation.movesToKeys(seed: seed) {
            let outcome = simulation.run(seed: seed)
            sum.add(outcome)
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
        if let tally {
            try JSONEncoder().encode(sum).write(to: URL(filePath: tally))
        } else {
            print(sum.text)
        }
        if broken > 0 { throw ExitCode.failure }
    }

    /// Distributes the seeds evenly over processes, because a simulation is one thread.
    private func share(_ form: Form) throws {
        let name = "simulate-\(ProcessInfo.processInfo.processIdentifier)"
        let folder = FileManager.default.temporaryDirectory.appending(path: name)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let each = max(1, (seeds + jobs - 1) / jobs)
        let runs = try stride(from: first, to: first + seeds, by: Int(each)).map { start in
            let tally = folder.appending(path: "\(start)")
            return (tally, try run(form, min(each, first + seeds - start), from: start, tally: tally.path))
        }
        var sum = Tally()
        for (tally, process) in runs {
            process.waitUntilExit()
            // A process that stops at a seed which breaks a rule has none.
            if let data = try? Data(contentsOf: tally) { sum.add(try JSONDecoder().decode(Tally.self, from: data)) }
        }
        print(sum.text)
        if runs.contains(where: { $0.1.terminationStatus != 0 }) { throw ExitCode.failure }
    }

    /// Starts a process that runs some of the seeds.
    private func run(_ form: Form, _ count: UInt64, from start: UInt64, tally: String) throws -> Process {
        var arguments = [form.rawValue, "--first", "\(start)", "--seeds", "\(count)", "--again", "\(again)"]
        arguments += ["--tally", tally]
        if keepGoing { arguments.append("--keep-going") }
        if moving { arguments.append("--moving") }
        if let without { arguments += ["--without", without] }
        return try Process.run(URL(filePath: "/proc/self/exe").resolvingSymlinksInPath(), arguments: arguments)
    }

    static func switchOff(_ rules: String?) throws {
        let names = rules.map { $0.split(separator: ",").map(String.init) } ?? []
        if let unknown = names.first(where: { !Rules.names.contains($0) }) {
            throw ValidationError("\(unknown) is no rule; rules are: \(Rules.names.joined(separator: ", "))")
        }
        if !Rules.switchOff(names) {
            throw ValidationError("build with --traits default,RuleSwitches to switch rules off")
        }
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
