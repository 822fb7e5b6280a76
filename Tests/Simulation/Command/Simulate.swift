// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import Simulation

/// Runs simulations of sync.
@main
struct Simulate: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Runs devices, remotes and everything that goes wrong with them, from seeds.",
        subcommands: [Core.self, Whole.self, Etcd.self, Keys.self, Replay.self, Scenarios.self, RuleTable.self])

    static func main() {
        Hashing.makeEqual()
        self.main(nil)
    }
}

/// Makes dictionaries iterate in the same order in every process, for which the environment has to say so.
enum Hashing {
    static func makeEqual() {
        guard getenv("SWIFT_DETERMINISTIC_HASHING") == nil else { return }
        setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1)
        var arguments = CommandLine.arguments.map { strdup($0) } + [nil]
        execv("/proc/self/exe", &arguments)
        perror("simulate: can't be started anew")
        exit(1)
    }
}

struct Core: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Runs seeds with the rules alone, entries in memory.")
    @OptionGroup var options: SeedOptions

    func run() throws { try options.run(.core) }
}

struct Whole: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Runs seeds with the whole engine.")
    @OptionGroup var options: SeedOptions

    func run() throws { try options.run(.whole) }
}

struct Etcd: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Runs seeds with the rules, and the backend of etcd as it is, on clusters in memory.")
    @OptionGroup var options: SeedOptions

    func run() throws { try options.run(.etcd) }
}

struct Keys: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Runs seeds with devices that encrypt an account and replace its key, without the account.")
    @OptionGroup var options: SeedOptions

    func run() throws { try options.run(.keys) }
}

struct Replay: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Runs one seed, as it ran before.")
    @Argument(help: "whole, core, etcd or keys") var form: String
    @Argument(help: "The seed.") var seed: UInt64
    @Flag(help: "Print what happens.") var trace = false
    @Option(help: "Rules that are switched off, with commas.") var without: String?
    @Option(help: "The steps that are done, with commas; all by default.") var only: String?

    func run() throws {
        guard let form = Form(rawValue: form) else { throw ValidationError("\(form) is no form") }
        try SeedOptions.switchOff(without)
        let kept = only.map { $0.split(separator: ",").compactMap { Int($0) } }
        let outcome = Simulation(form).run(seed: seed, kept: kept, log: trace ? { print($0) } : nil)
        print("trace \(String(outcome.trace, radix: 16)): \(outcome.violation ?? "nothing was broken")")
        if outcome.violation != nil { throw ExitCode.failure }
    }
}
