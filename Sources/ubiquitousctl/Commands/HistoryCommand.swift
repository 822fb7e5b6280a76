// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import PropertyList
internal import SDBus
internal import UbiquitousStore

/// `history`.
struct HistoryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "history",
        abstract: "Prints earlier values of a key, the newest first, or removes those of all keys.",
        subcommands: [ShowHistoryCommand.self, TrimHistoryCommand.self],
        defaultSubcommand: ShowHistoryCommand.self)
}

/// `history trim`.
struct TrimHistoryCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "trim",
        abstract: "Removes the earlier values of all stores and settings.",
        discussion: """
            Changes nothing on other devices, and no present values. The service drops earlier values by itself when \
            the database is full. Use this to free disk space, or to erase them. "ubiquitousctl usage" shows how much \
            they take. At a terminal it asks first.
            """)

    @OptionGroup var service: ServiceOptions
    @OptionGroup var change: ChangeOptions

    func perform() async throws {
        let account = try await service.account()
        let bytes = try await Progress.showing("Waiting for the service") { try await account.usage().historyBytes }
        if bytes > 0, isatty(STDIN_FILENO) == 1, !change.check, !change.json {
            let question = Question(
                "Remove the earlier values of all stores and settings? [y/N]", default: false, advice: "Answer y or n.")
            guard try question.isYes() else { throw Failure(.refused, "Nothing was changed.") }
        }
        try await change.make("Removing earlier values") {
            bytes == 0 ? nil : "remove earlier values that take about \(SizeText.text(bytes))"
        } _: {
            _ = try await account.trimHistory()
        }
    }
}

/// `history show`.
struct ShowHistoryCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Prints earlier values of a key, the newest first.",
        discussion: """
            "show" can be left out, unless the key is called "trim". Each value is printed with the number that \
            "restore" takes, the time when it was replaced, and the reason: replaced, removed, initial-sync, account \
            or merge. Exits with 1 if there are none.
            """)

    @OptionGroup var options: StoreOptions

    @Flag(help: "Print an array of JSON.")
    var json = false

    @Argument(help: "The key.", completion: .custom { arguments, _, _ in KeyCompletion.keys(arguments) })
    var key: String

    func perform() async throws {
        var names: [String: String] = [:]
        let history = try await options.withStore { store in
            let history = try await store.history(key)
            if !history.isEmpty { names = await deviceNames(store.connection) }
            return history
        }
        if json { Output.print(json: .array(history.map { $0.json(by: names[$0.originDevice]) })) }
        if history.isEmpty { throw Failure(.absent, "There are no earlier values of \(Output.quoted(key)).") }
        if json { return }
        let style = Style(for: 1)
        for (index, former) in history.enumerated() {
            let heading = [
                "\(index + 1)", TimeText.local(former.time), former.why,
                names[former.originDevice] ?? former.originDevice,
            ].filter { !$0.isEmpty }.map(Output.printableWord)
            Output.print(lines: heading.map(style.dim) + [ValueText.word(former.value)])
        }
    }

    /// Returns the names of the account's devices by identifier; none if the service doesn't return them.
    @BusActor
    private func deviceNames(_ connection: ServiceConnection) async -> [String: String] {
        guard let uid = try? options.service.uid(),
            let devices = try? await connection.account(ofUser: uid).devices()
        else { return [:] }
        return Dictionary(devices.map { ($0.identifier, $0.name) }) { $1 }
    }
}

extension HistoryEntry {
    /// - Parameter device: the name of the device; `nil` if the account doesn't list it.
    fileprivate func json(by device: String?) -> Value {
        var entry: [Text: Value] = [
            "value": value, "why": .string(Text(why)), "device": .string(Text(originDevice)),
        ]
        entry["when"] = TimeText.value(time)
        entry["device-name"] = device.map { .string(Text($0)) }
        return .dictionary(entry)
    }
}
