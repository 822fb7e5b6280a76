// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Foundation
internal import Simulation

/// Plays stories.
struct Scenarios: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Plays stories, and compares what is seen.")
    @Argument(help: "Files.") var files: [String]
    @Flag(help: "Write what is seen into the files.") var rewrite = false
    @Option(help: "Rules that are switched off, with commas; needs a build with the trait RuleSwitches.")
    var without: String?

    func run() throws {
        try SeedOptions.switchOff(without)
        var differences = 0
        for file in files {
            let text = try String(contentsOfFile: file, encoding: .utf8)
            let (seen, difference): (String, String?)
            do throws(Scenario.Flaw) { (seen, difference) = try Scenario(text).play() } catch {
                throw ValidationError("\(file):\(error.line): \(error.sentence)")
            }
            if rewrite { try seen.write(toFile: file, atomically: true, encoding: .utf8) }
            guard let difference, !rewrite else { continue }
            differences += 1
            print("\(file): \(difference)")
        }
        if differences > 0 { throw ExitCode.failure }
    }
}
