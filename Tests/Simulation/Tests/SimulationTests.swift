// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// The command `simulate`, as it was built beside the tests.
///
/// It runs in a process of its own, because a simulation is one thread, and because the order of a dictionary has to be
/// the same in every run. `script/test` runs more seeds, with optimisation.
struct SimulationTests {
    @Test func `the core keeps every rule`() throws {
        let run = try simulate("core", "--seeds", "200", "--again", "20")
        #expect(run.status == 0, "\(run.output)")
    }

    @Test func `the whole engine keeps every rule`() throws {
        let run = try simulate("whole", "--seeds", "8", "--again", "4")
        #expect(run.status == 0, "\(run.output)")
    }

    @Test func `the backend of etcd keeps every rule`() throws {
        let run = try simulate("etcd", "--seeds", "60", "--again", "20")
        #expect(run.status == 0, "\(run.output)")
    }

    @Test func `an account that moves to keys ends with one`() throws {
        let run = try simulate("keys", "--seeds", "300", "--again", "20")
        #expect(run.status == 0, "\(run.output)")
    }

    @Test func `processes that share the seeds add up what is excused`() throws {
        let alone = try simulate("core", "--seeds", "60", "--again", "0").output
        let shared = try simulate("core", "--seeds", "60", "--again", "0", "--jobs", "3").output
        #expect(alone.contains("excused: power cut "))
        #expect(alone.split(separator: "\n").suffix(2) == shared.split(separator: "\n").suffix(2))
    }

    @Test func `the stories read as they are written`() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Scenarios").path
        let files = try FileManager.default.contentsOfDirectory(atPath: folder).sorted().map { "\(folder)/\($0)" }
        #expect(files.count > 12)
        let run = try simulate(["scenarios"] + files)
        #expect(run.status == 0, "\(run.output)")
    }

    @Test(arguments: [
        ("# A story\n\ndevice laptop\nlaptop signs in\n", 3, "not followed by ----"),
        ("device laptop\n----\nok\n\nlaptop sings in\n----\nok\n", 5, "laptop sings in: this is nothing that laptop"),
        ("device laptop\ndesktop signs in\n----\nok\n", 2, "there is no desktop"),
        ("device laptop\nwait 1 fortnight\n----\nok\n", 2, "1 fortnight is no time"),
        ("device laptop\n----\nok\n----\nok\n", 4, "second dashes"),
    ])
    func `a story that makes no sense is refused with its line, and left as it is`(
        text: String, line: Int, clause: String
    ) throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "story-\(UUID().uuidString).txt")
        try text.write(to: file, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(at: file) }
        let run = try simulate("scenarios", "--rewrite", file.path)
        #expect(run.status != 0)
        #expect(run.output.contains("\(file.path):\(line): "), "\(run.output)")
        #expect(run.output.contains(clause), "\(run.output)")
        #expect(try String(contentsOf: file, encoding: .utf8) == text)
    }

    @Test func `a seed does the same whenever it is run`() throws {
        let first = try simulate("replay", "whole", "3", "--trace")
        #expect(first.output.utf8.count > 1000)
        #expect(try simulate("replay", "whole", "3", "--trace").output == first.output)
    }

    /// Runs the command to its end.
    private func simulate(_ arguments: String...) throws -> (status: Int32, output: String) {
        try simulate(arguments)
    }

    private func simulate(_ arguments: [String]) throws -> (status: Int32, output: String) {
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let process = Process()
        process.executableURL = URL(filePath: tests).deletingLastPathComponent().appending(path: "simulate")
        process.arguments = arguments
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: output, as: UTF8.self))
    }
}
