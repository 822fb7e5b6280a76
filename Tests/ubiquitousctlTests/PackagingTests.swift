// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import Testing
import UbiquitousStoreTesting

/// Man pages and completions match the programs.
@Suite struct PackagingTests {
    private static let pages = [
        "ubiquitousctl.1", "ubiquitous-stored.8", "ubiquitous-store-manifest.5",
        "ubiquitous-stored.conf.5",
    ]

    @Test(arguments: pages)
    func `a man page has no errors`(page: String) async throws {
        guard try await run(["sh", "-c", "command -v mandoc"]).exit == .code(0) else {
            return print("NOT TESTED: \(page), for mandoc isn't installed here")
        }
        let result = try await run(["mandoc", "-Tlint", "-W", "warning", repositoryFile("packaging/man/\(page)")])
        #expect(result.output == "" && result.exit == .code(0))
    }

    @Test func `JSON keeps its quotes in the man page`() async throws {
        guard try await run(["sh", "-c", "command -v mandoc"]).exit == .code(0) else {
            return print("NOT TESTED: the man page's JSON, for mandoc isn't installed here")
        }
        let page = try await run(["mandoc", "-Tascii", repositoryFile("packaging/man/ubiquitousctl.1")]).output
        let plain = page.replacing(/.\u{8}/, with: "")
        for json in [#"{"$date": "2026"#, #"{"$data": "AAEC"}"#, #"{"$real": "nan"}"#, #"["$date", 1]"#] {
            #expect(plain.contains(json))
        }
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

    @Test func `the service ends with the code of its man page where its command line isn't right`() async throws {
        let result = try await run([Device.program(), "--frob"])
        #expect(result.exit == .code(64) && result.error.contains("Unknown option"))
    }

    @Test func `both programs and the package have the same version`() async throws {
        let version = try await run([Terminal.program, "--version"]).output
        #expect(try await run([Device.program(), "--version"]).output == version)
        let changelog = try String(contentsOfFile: repositoryFile("packaging/debian/changelog"), encoding: .utf8)
        #expect(changelog.hasPrefix("ubiquitous-store (\(version))"))
    }

    @Test(arguments: [("bash", "ubiquitousctl"), ("zsh", "_ubiquitousctl"), ("fish", "ubiquitousctl.fish")])
    func `the completions are those of the program`(shell: String, file: String) async throws {
        let written = try await run([Terminal.program, "--generate-completion-script", shell]).output
        let kept = try String(contentsOfFile: repositoryFile("packaging/completions/\(file)"), encoding: .utf8)
        #expect(written == kept.trimmingCharacters(in: .newlines), "run script/completions")
    }

    /// A shell at a terminal, and the line that sets up completion.
    struct Shell: Sendable, CustomTestStringConvertible {
        let name: String
        let arguments: [String]
        let setup: String

        var testDescription: String { ([name] + arguments).joined(separator: " ") }

        static let all = [
            Shell(name: "bash", arguments: ["--norc", "--noprofile"], setup: "source $C/ubiquitousctl"),
            Shell(name: "bash", arguments: ["--norc", "--noprofile", "-u"], setup: "source $C/ubiquitousctl"),
            Shell(name: "zsh", arguments: ["-f"], setup: "fpath=($C $fpath); autoload -U compinit; compinit -u -D"),
            Shell(name: "fish", arguments: ["--no-config"], setup: "source $C/ubiquitousctl.fish"),
        ]
    }

    @Test(arguments: Shell.all)
    func `Tab completes subcommands, options, stores and keys`(shell: Shell) async throws {
        guard try await run(["sh", "-c", "command -v \(shell.name)"]).exit == .code(0) else {
            return print("NOT TESTED: the completions for \(shell.name), which isn't installed here")
        }
        try await Terminal.with { terminal in
            try await terminal.store().apply([
                "theme": .string("as night"), "a:b": .string("with a colon"),
                "it's \"$HOME\" `(id)`; {b,c} *": .string("of odd signs"),
            ])
            try await BusClient(terminal.bus).domain("org.example.Editor").set("fontName", .string("of an editor"))
            let bin = URL(filePath: Terminal.program).deletingLastPathComponent().path
            let person = try PseudoTerminal(
                [
                    "env", "PATH=\(bin):/usr/bin:/bin", "C=" + repositoryFile("packaging/completions"), "TERM=xterm",
                    "HOME=\(terminal.device.directory.path)", "UBIQUITOUS_STORE_BUS=\(terminal.bus.address)",
                    "UBIQUITOUS_STORE_IDENTIFIER=",
                ] + [shell.name] + shell.arguments)
            person.type("\(shell.setup); echo rea''dy\n")
            try await person.shows("ready")
            // The result of the command shows how each Tab completed the word before it.
            person.type("ubiquitousctl ge\t --sto\torg.example.No\tth\t\n")
            try await person.shows("as night")
            if shell.name == "bash" {
                person.type("ubiquitousctl help synchr\t\n")
                try await person.shows("USAGE: ubiquitousctl synchronize")
            }
            person.type("ubiquitousctl get -s org.example.No\ta\t\n")
            try await person.shows("with a colon")
            if shell.name != "bash" {
                person.type("ubiquitousctl get -s org.example.No\tit\t\n")
                try await person.shows("of odd signs")
            }
            // "show" is left out.
            person.type("ubiquitousctl history --sto\torg.example.No\ta\t\n")
            try await person.shows("no earlier values of \"a:b\"")
            person.type("ubiquitousctl defaults expl\torg.example.Ed\tfo\t\n")
            try await person.shows("of an editor")
            person.type("export UBIQUITOUS_STORE_IDENTIFIER=\(notes)\n")
            person.type("ubiquitousctl history th\t\n")
            try await person.shows("no earlier values of \"theme\"")
            // bash splits an address at its colon and its equals sign.
            person.type("export UBIQUITOUS_STORE_BUS=unix:path=/nonexistent\n")
            person.type("ubiquitousctl list --keys --bus \(terminal.bus.address) --store org.example.No\t\n")
            try await person.shows("a:b\r\n")
        }
    }

    @Test func `what a shell would expand, or take for an option, isn't offered`() async throws {
        try await Terminal.with { terminal in
            let quoted: Set = ["$(touch x)", "`touch x`", "a b", "{a,b}", "plain", "a;b", "~root", "it's"]
            let store = try await terminal.store()
            let others: Set = ["-n", "--check", "a\nb", "a\tb", "a!!b", "a\\b"]
            for key in quoted.union(others) { try await store.set(key, .boolean(true)) }
            for (shell, expected) in [
                ("bash", ["plain"]), ("zsh", quoted), ("fish", quoted.union(["a!!b", "a\\b"])),
            ] as [(String, Set<String>)] {
                let result = try await terminal.ctl(
                    "---completion", "get", "--", "positional@0", "4", "0", "ubiquitousctl", "get", "--store",
                    "org.example.Notes", "", variables: ["SAP_SHELL=\(shell)"])
                let offered = result.output.split(separator: "\n").map(String.init).filter { $0 != " " }
                #expect(Set(offered) == expected && result.error == "", "\(shell): \(result)")
            }
        }
    }

    @Test func `where the service isn't, nothing is completed and nothing is said`() async throws {
        try await Terminal.with(started: false) { terminal in
            let result = try await terminal.ctl(
                "---completion", "get", "--", "positional@0", "2", "0", "ubiquitousctl", "get", "")
            #expect(result.output == "" && result.error == "")
        }
    }

    /// Returns the names of all subcommands and of all long options in a program's `--experimental-dump-help`.
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
