// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import PropertyList
internal import SDBus

/// What a command that changes something may be asked.
struct ChangeOptions: ParsableArguments {
    @Flag(
        name: [.customLong("check"), .customLong("dry-run"), .customShort("n")],
        help: "Change nothing, and say what would change.")
    var check = false

    @Flag(help: "Say what changed as JSON.")
    var json = false

    /// What is asked here or there.
    func joined(with others: ChangeOptions) -> ChangeOptions {
        var options = self
        options.check = check || others.check
        options.json = json || others.json
        return options
    }

    /// Makes a change, unless it is so already.
    ///
    /// - Parameters:
    ///   - what: what is being done, in words, for a person who waits.
    ///   - plan: what is to be done, in words; `nil` if nothing is.
    @BusActor
    func make(
        _ what: Sentence, plan: @BusActor () async throws -> String?, _ body: @BusActor () async throws -> Void
    ) async throws {
        let planned = try await Progress.showing("Waiting for the service") { try await plan() }
        if planned != nil && !check { try await Progress.showing(what) { try await body() } }
        report(planned)
    }

    /// Says what has changed or would.
    func report(_ planned: String?) {
        if json { return Output.print(json: ["changed": .boolean(planned != nil)]) }
        if check { Output.print(planned.map { "would \($0)" } ?? "nothing would change") }
    }
}
