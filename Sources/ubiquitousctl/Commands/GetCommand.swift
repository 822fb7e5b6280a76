// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import PropertyList
internal import PropertyListFiles
internal import UbiquitousStore

/// `get`.
struct GetCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Prints the value of a key.",
        discussion: """
            What is printed is one word that "set" takes for the same value of the same type: JSON, and strings \
            without quotes where nothing else could be meant. What JSON doesn't have is an object with one key: \
            {"$date":"2026-11-21T09:30:00Z"}, {"$data":"AAEC"} (Base64), {"$real":"nan"}.

            Ends with 1 if the store has no value for the key.
            """)

    @OptionGroup var options: StoreOptions

    @Flag(help: "Print JSON, strings in quotes included.")
    var json = false

    @Flag(help: "Print a string or data as it is, without a newline.")
    var raw = false

    @Flag(help: "Print the value's type: string, int, float, bool, date, data, array or dict.")
    var type = false

    @Flag(help: "Look for other devices' changes first, and wait for them; fails where that can't be done.")
    var fresh = false

    @Argument(help: "The key.", completion: .custom { arguments, _, _ in KeyCompletion.keys(arguments) })
    var key: String

    func validate() throws {
        if [json, raw, type].count(where: { $0 }) > 1 {
            throw ValidationError(localized("Only one of --json, --raw and --type can be given."))
        }
    }

    func perform() async throws {
        let value = try await options.withStore { store in
            if fresh { _ = try await store.synchronize(waitingForRemote: true, timeout: Patience.remote) }
            return try await store.value(key)
        }
        guard let value else { throw Failure(.absent, "The store has no value for \(Output.quoted(key)).") }
        if type { return Output.print(value.typeName) }
        if json { return Output.print(json: value) }
        guard raw else { return Output.print(ValueText.word(value)) }
        switch value {
        case .string(let text): Output.write(bytes: Array(text.string.utf8))
        case .data(let bytes): Output.write(bytes: bytes)
        default:
            throw Failure(
                .usage, "--raw is for strings and data, and \(Output.quoted(key)) is of type \(value.typeName).")
        }
    }
}

extension GetCommand {
    /// `get KEY`, or `get --store IDENTIFIER KEY`: what scripts call again and again, without the parser, which takes
    /// longer than the call.
    ///
    /// - Returns: `nil` if the parser has to look at it.
    static func plain(_ words: ArraySlice<String>) -> GetCommand? {
        var rest = words
        guard rest.popFirst() == "get" else { return nil }
        var store: String?
        if let option = rest.first, ["-s", "--store"].contains(option), rest.count > 1 {
            store = rest.dropFirst().first
            rest = rest.dropFirst(2)
        }
        guard rest.count == 1, let key = rest.first, ![key, store ?? key].contains(where: isSpecial) else { return nil }
        // Not in an initializer: there, assigning to a flag says what it is without a value.
        var command = GetCommand()
        command.options = StoreOptions.plain(store: store)
        command.json = false
        command.raw = false
        command.type = false
        command.fresh = false
        command.key = key
        return command
    }

    /// Whether a word may be an option, or nothing.
    private static func isSpecial(_ word: String) -> Bool { word.isEmpty || word.hasPrefix("-") }
}
