// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// The examples of docs/managed.md, as an administrator uses them.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct ManagedPageTests {
    private let app = "org.example.Editor"
    private static let directory = "/etc/ubiquitous-store/managed.d"

    /// Returns the code blocks of a language, in the page's order.
    private func blocks(_ language: String) throws -> [String] {
        let page = try String(contentsOfFile: repositoryFile("docs/managed.md"), encoding: .utf8)
        return page.components(separatedBy: "```\(language)\n").dropFirst().map {
            $0.components(separatedBy: "\n```")[0] + "\n"
        }
    }

    private func managed(_ machine: Machine) async throws -> [String: Value] {
        try await machine.client().domain(app).managed()
    }

    @Test func `the page's first file forces a value and locks keys`() async throws {
        try await withMachine(started: false) { machine in
            let path = machine.device.managedDirectory + "/10-editor.plist"
            try blocks("xml")[0].write(toFile: path, atomically: true, encoding: .utf8)
            chmod(path, 0o644)
            try await machine.device.start()
            let managed = try await managed(machine)
            #expect(managed["forced"] == .dictionary(["fontSize": .integer(14)]))
            #expect(managed["locked"] == .array([.string("update.*")]))
        }
    }

    @Test func `what Ansible's task copies is in force`() async throws {
        let task = try blocks("yaml")[0].components(separatedBy: "\n")
        func value(_ name: String) throws -> String {
            let line = try #require(task.first { $0.contains(" \(name): ") })
            return line.components(separatedBy: "\(name): ")[1].trimmingCharacters(in: ["\""])
        }
        let start = try #require(task.firstIndex { $0.hasSuffix("content: |") })
        let content = task[(start + 1)...].prefix { $0.hasPrefix("      ") }.map { String($0.dropFirst(6)) }
            .joined(separator: "\n")
        let destination = try value("dest")
        let mode = try #require(mode_t(value("mode"), radix: 8))
        #expect(destination.hasPrefix(Self.directory + "/") && content.contains("<plist"))
        try await withMachine(started: false) { machine in
            let path = machine.device.managedDirectory + destination.dropFirst(Self.directory.count)
            try content.write(toFile: path, atomically: true, encoding: .utf8)
            chmod(path, mode)
            try await machine.device.start()
            let managed = try await managed(machine)
            #expect(managed["recommended"] == .dictionary(["fontSize": .integer(12)]))
            #expect(managed["sources"] == .dictionary(["fontSize": .string(Text(path))]))
        }
    }

    @Test func `a profile that is installed as the page says reaches a program that runs`() async throws {
        let place = try TemporaryDirectory()
        try await withMachine { machine in
            let domain = try machine.client().domain(app)
            try await domain.subscribe()
            let profile = try blocks("xml")[1]
            try profile.write(toFile: place.path + "/editor.mobileconfig", atomically: true, encoding: .utf8)
            let script = try blocks("sh")[0].replacing(Self.directory, with: machine.device.managedDirectory)
            let result = try await run(["sh", "-ec", "cd \"$0\" && \(script)", place.path])
            #expect(result.exit == .code(0), "\(result.error)")
            _ = try await domain.signal("managed") { $0.reason == 32 && Set($0.keys) == ["fontSize", "theme"] }
            let managed = try await managed(machine)
            #expect(managed["forced"] == .dictionary(["fontSize": .integer(16)]))
            #expect(managed["recommended"] == .dictionary(["theme": .string("light")]))
        }
    }
}
