// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import PropertyList
internal import UbiquitousStore

/// `history`.
struct HistoryCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "history",
        abstract: "Prints earlier values of a key, the newest first.",
        discussion: """
            Each has the number that "restore" takes, when it ceased to be the value, and why: replaced, removed, \
            initial-sync, account or merge. Ends with 1 if there are none.
            """)

    @OptionGroup var options: StoreOptions

    @Flag(help: "Print an array of JSON.")
    var json = false

    @Argument(help: "The key.", completion: .custom { arguments, _, _ in Completions.keys(arguments) })
    var key: String

    func perform() async throws {
        let history = try await options.withStore { try await $0.history(key) }
        if history.isEmpty { throw Failure(.absent, "There are no earlier values of \"\(key)\"") }
        if json { return Output.print(json: .array(history.map(\.json))) }
        let style = Style(for: 1)
        for (index, former) in history.enumerated() {
            let origin = former.originDevice.isEmpty ? "" : " \(former.originDevice)"
            let heading = "\(index + 1)  \(TimeText.local(former.time))  \(former.why)\(origin)"
            Output.print("\(style.dim(Output.printable(heading)))  \(ValueText.word(former.value))")
        }
    }
}

extension HistoryEntry {
    fileprivate var json: Value {
        var entry: [Text: Value] = [
            "value": value, "why": .string(Text(why)), "device": .string(Text(originDevice)),
        ]
        entry["when"] = TimeText.value(time)
        return .dictionary(entry)
    }
}
