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
            The value is printed as one word from which "set" makes the same value of the same type: JSON, with \
            strings unquoted where they can't be mistaken for anything else. A value that JSON doesn't have is an \
            object with one key: {"$date":"2026-11-21T09:30:00Z"}, {"$data":"AAEC"} (Base64), {"$real":"nan"}.

            Exits with 1 if the store has no value for the key.
            """)

    @OptionGroup var options: StoreOptions

    @Flag(help: "Print JSON, strings in quotes included.")
    var json = false

    @Flag(help: "Print a string or data as it is, without a newline.")
    var raw = false

    @Flag(help: "Print the value's type: string, int, float, bool, date, data, array or dict.")
    var type = false

    @Flag(help: "First download other devices' changes; fail if that isn't possible.")
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
            if fresh {
                let account = try await options.service.account()
                try await account.unlessPaused {
                    _ = try await store.synchronize(waitingForRemote: true, timeout: Patience.remote)
                }
                try await account.remarkOnUnread()
            }
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
