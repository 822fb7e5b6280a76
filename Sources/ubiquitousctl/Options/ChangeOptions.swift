// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import PropertyList
internal import SDBus

/// The options of a command that changes something.
struct ChangeOptions: ParsableArguments {
    @Flag(
        name: [.customLong("check"), .customLong("dry-run"), .customShort("n")],
        help: "Change nothing, and say what would change.")
    var check = false

    @Flag(help: "Say what changed as JSON.")
    var json = false

    /// Returns options in which a flag is set if it is set in either.
    func joined(with others: ChangeOptions) -> ChangeOptions {
        var options = self
        options.check = check || others.check
        options.json = json || others.json
        return options
    }

    /// Makes a change, unless nothing would change.
    ///
    /// - Parameters:
    ///   - what: what is being done, for the progress message.
    ///   - plan: returns what is to be done, in words; `nil` if nothing is.
    @BusActor
    func make(
        _ what: Sentence, plan: @BusActor () async throws -> String?, _ body: @BusActor () async throws -> Void
    ) async throws {
        let planned = try await Progress.showing("Waiting for the service") { try await plan() }
        if planned != nil && !check { try await Progress.showing(what) { try await body() } }
        report(planned)
    }

    /// Prints what has changed or would change, if `--json` or `--check` asks for it.
    func report(_ planned: String?) {
        if planned != nil, !check { Output.noteChange() }
        if json { return Output.print(json: ["changed": .boolean(planned != nil)]) }
        if check { Output.print(planned.map { "would \(Output.printableWord($0))" } ?? "nothing would change") }
    }
}
