// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import Testing
import UbiquitousStoreTesting

/// Man pages and completions say what the program does.
@Suite struct PackagingTests {
    private static let pages = ["ubiquitousctl.1", "ubiquitous-stored.8", "ubiquitous-store-manifest.5"]

    @Test(arguments: pages)
    func `a man page has no errors`(page: String) async throws {
        guard try await run(["sh", "-c", "command -v mandoc"]).exit == .code(0) else {
            return print("NOT TESTED: \(page), for mandoc isn't installed here")
        }
        let result = try await run(["mandoc", "-Tlint", "-W", "warning", repositoryFile("packaging/man/\(page)")])
        #expect(result.output == "" && result.exit == .code(0))
    }

    @Test func `every subcommand and every option is in the man page`() async throws {
        let page = try String(contentsOfFile: repositoryFile("packaging/man/ubiquitousctl.1"), encoding: .utf8)
        let dump = try await run([Terminal.program, "--experimental-dump-help"]).output
        let (names, options) = try Self.words(dump)
        #expect(names.count > 25 && options.count > 20)
        for name in names { #expect(page.contains(name), "the subcommand \(name)") }
        for option in options { #expect(page.contains("Fl -\(option)"), "the option --\(option)") }
    }

    @Test func `every option of the service is in its man page`() async throws {
        let page = try String(contentsOfFile: repositoryFile("packaging/man/ubiquitous-stored.8"), encoding: .utf8)
        let dump = try await run([Device.program(), "--experimental-dump-help"]).output
        for option in try Self.words(dump).options { #expect(page.contains("Fl -\(option)"), "the option --\(option)") }
    }

    @Test(arguments: [("bash", "ubiquitousctl"), ("zsh", "_ubiquitousctl"), ("fish", "ubiquitousctl.fish")])
    func `the completions are those of the program`(shell: String, file: String) async throws {
        let written = try await run([Terminal.program, "--generate-completion-script", shell]).output
        let kept = try String(contentsOfFile: repositoryFile("packaging/completions/\(file)"), encoding: .utf8)
        #expect(written == kept.trimmingCharacters(in: .newlines), "run script/completions")
    }

    @Test func `stores and keys are completed`() async throws {
        try await Terminal.with { terminal in
            try await terminal.store().apply(["theme": .string("dark"), "size": .integer(12)])
            // As the completion scripts ask.
            let stores = try await terminal.complete(
                "---completion", "get", "--", "--store", "2", "0", "ubiquitousctl", "get", "--store", "")
            #expect(stores.contains(notes) && stores.contains("org.example.Other"), "\(stores)")
            let keys = try await terminal.complete(
                "---completion", "get", "--", "positional@0", "4", "0", "ubiquitousctl", "get", "--store", notes, "")
            #expect(keys == "size\ntheme", "\(keys)")
        }
    }

    @Test func `where the service isn't, nothing is completed and nothing is said`() async throws {
        try await Terminal.with(started: false) { terminal in
            let result = try await terminal.ctl(
                "---completion", "get", "--", "positional@0", "2", "0", "ubiquitousctl", "get", "")
            #expect(result.output == "" && result.error == "")
        }
    }

    /// The names of all subcommands, and of all long options, of what a program says of itself.
    private static func words(_ dump: String) throws -> (names: Set<String>, options: Set<String>) {
        var (names, options): (Set<String>, Set<String>) = ([], [])
        func visit(_ object: Any) {
            if let list = object as? [Any] { list.forEach(visit) }
            guard let object = object as? [String: Any] else { return }
            if let name = object["commandName"] as? String, name != "help" { names.insert(name) }
            if object["kind"] as? String == "long", let name = object["name"] as? String { options.insert(name) }
            object.values.forEach(visit)
        }
        visit(try JSONSerialization.jsonObject(with: Data(dump.utf8)))
        return (names, options)
    }
}

extension Terminal {
    fileprivate func complete(_ arguments: String...) async throws -> String {
        try await run(["env", "UBIQUITOUS_STORE_BUS=\(bus.address)", Self.program] + arguments).output
    }
}
