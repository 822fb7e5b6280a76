// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import Testing
import UbiquitousStoreTesting

/// The store that the usual manifest declares.
let notes = "org.example.Notes"

/// A private bus with a real service on it, and the real program to call it.
final class Terminal: Sendable {
    let bus: PrivateBus
    let device: Device

    private init(_ kind: PrivateBus.Kind, started isStarted: Bool) async throws {
        bus = try await .start(kind)
        var options = Device.Options()
        options.name = "laptop"
        options.manifests = [ManifestText(notes), ManifestText("org.example.Other")]
        device = try Device(on: bus, options)
        if isStarted { try await device.start() }
    }

    /// Runs a test with its own bus and service.
    static func with(
        _ kind: PrivateBus.Kind = .session, started isStarted: Bool = true, _ body: (Terminal) async throws -> Void
    ) async throws {
        try await Desks.shared.withDesk { try await withMachine(kind, started: isStarted, body) }
    }

    private static func withMachine(
        _ kind: PrivateBus.Kind, started isStarted: Bool, _ body: (Terminal) async throws -> Void
    ) async throws {
        let terminal = try await Terminal(kind, started: isStarted)
        defer {
            terminal.device.signal(SIGCONT)
            terminal.device.kill()
            terminal.bus.end()
        }
        do {
            try await body(terminal)
        } catch {
            Issue.record("\(error)\nThe service said:\n\(terminal.device.log.suffix(2000))")
        }
    }

    /// Returns the path of one of the test's files.
    func file(_ name: String) -> String { device.directory.path + "/" + name }

    func write(_ name: String, _ text: String) throws {
        try Data(text.utf8).write(to: URL(filePath: file(name)))
    }

    /// The tested program, which is built beside the tests.
    static let program = (try? ChildProcess.built("ubiquitousctl")) ?? "ubiquitousctl isn't built"

    /// Runs the program on the usual store.
    ///
    /// - Parameters:
    ///   - arguments: the program's arguments.
    ///   - input: its standard input.
    ///   - variables: environment variables besides those for the bus and the store.
    func ctl(_ arguments: String..., input: String = "", variables: [String] = []) async throws -> ProgramResult {
        try await ctl(arguments: arguments, input: input, variables: variables)
    }

    /// Does the same with the arguments as an array, and possibly with another program.
    func ctl(
        arguments: [String], input: String = "", variables: [String] = [], program: String = program
    ) async throws -> ProgramResult {
        try write("input", input)
        return try await run(command(arguments, variables: variables, input: file("input"), program: program))
    }

    /// Starts the program without waiting for it. It writes to the files `output` and `error`.
    func start(_ arguments: String...) throws -> ChildProcess {
        try ChildProcess(
            command(arguments, variables: [], input: "/dev/null"), output: (file("output"), file("error")))
    }

    /// Returns what a program that ``start(_:)`` started has written.
    func text(_ name: String) -> String {
        String(decoding: FileManager.default.contents(atPath: file(name)) ?? Data(), as: UTF8.self)
    }

    /// Starts the program at a terminal that shows colours.
    func atTerminal(_ arguments: String..., variables: [String] = []) throws -> PseudoTerminal {
        try atTerminal(arguments: arguments, variables: variables)
    }

    /// Does the same with the arguments as an array.
    func atTerminal(arguments: [String], variables: [String] = []) throws -> PseudoTerminal {
        try PseudoTerminal(
            ["env", "-u", "NO_COLOR", "TERM=xterm"] + environment + variables + [Self.program] + arguments)
    }

    /// Starts a shell at a terminal, with the program in its path.
    func shell() throws -> PseudoTerminal {
        let bin = URL(filePath: Self.program).deletingLastPathComponent().path
        return try PseudoTerminal(
            ["env", "TERM=dumb", "PATH=\(bin):/usr/bin:/bin", "PS1=$ "] + environment + ["sh", "-i"])
    }

    /// Runs a shell command, with the program in its path.
    func line(_ text: String) async throws -> ProgramResult {
        try await run(["env", "PATH=\(Self.path)"] + environment + ["sh", "-c", text])
    }

    /// Does the same without waiting for it to end.
    func starting(_ text: String) throws -> ChildProcess {
        try ChildProcess(
            ["env", "PATH=\(Self.path)"] + environment + ["sh", "-c", "exec \(text)"],
            output: (file("output"), file("error")))
    }

    private static let path = URL(filePath: program).deletingLastPathComponent().path + ":/usr/bin:/bin"

    private var environment: [String] {
        // Tests expect messages in English, whatever the locale.
        ["UBIQUITOUS_STORE_BUS=\(bus.address)", "UBIQUITOUS_STORE_IDENTIFIER=\(notes)", "LC_ALL=C.UTF-8"]
    }

    private func command(
        _ arguments: [String], variables: [String], input: String, program: String = program
    ) -> [String] {
        ["env"] + environment + variables + ["sh", "-c", "exec \"$@\" <\"$0\"", input, program] + arguments
    }

    /// Returns the store, as another program would use it.
    @BusActor
    func store(_ identifier: String = notes) throws -> StoreClient { try BusClient(bus).store(identifier) }
}

extension ProgramResult {
    /// The exit code; -1 for a signal.
    var code: Int32 { if case .code(let code) = exit { code } else { -1 } }

    /// Standard error without what says that the program waits, which depends on how busy the machine is.
    var remarks: String { error.split(separator: "\n").filter { !$0.hasSuffix(" …") }.joined(separator: "\n") }
}

/// Expects an exit code, words on standard error, and nothing on standard output.
func expect(
    _ result: ProgramResult, _ code: Int32, _ words: String..., at location: SourceLocation = #_sourceLocation
) {
    #expect(result.code == code, "\(result)", sourceLocation: location)
    #expect(result.output == "", sourceLocation: location)
    for word in words { #expect(result.error.contains(word), sourceLocation: location) }
}

/// Limits the number of terminals: a user may have 128 inotify instances, and each bus and service needs some.
private actor Desks {
    static let shared = Desks()

    private var free = 4
    private var waiting: [CheckedContinuation<Void, Never>] = []

    /// Whether the running test has a desk. One that needs several machines puts them all on it: if it waited for
    /// another desk, tests could wait for each other for ever.
    @TaskLocal private static var isTaken = false

    nonisolated func withDesk(_ body: () async throws -> Void) async throws {
        if Self.isTaken { return try await body() }
        await take()
        defer { Task { await giveBack() } }
        try await Self.$isTaken.withValue(true) { try await body() }
    }

    private func take() async {
        if free > 0 { free -= 1 } else { await withCheckedContinuation { waiting.append($0) } }
    }

    private func giveBack() {
        if waiting.isEmpty { free += 1 } else { waiting.removeFirst().resume() }
    }
}
