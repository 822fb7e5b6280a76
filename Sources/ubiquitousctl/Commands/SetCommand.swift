// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import PropertyList

/// `set`.
struct SetCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Sets the value of a key.",
        usage: """
            ubiquitousctl set [OPTIONS] KEY VALUE
            ubiquitousctl set [OPTIONS] KEY -string TEXT | -int N | -float X | -bool B | -date TIME | -data HEX
            ubiquitousctl set [OPTIONS] KEY -array VALUE...
            ubiquitousctl set [OPTIONS] KEY -dict KEY VALUE...
            """,
        discussion: """
            Options go before the key. A value without a type is what it is in JSON (true, 12, 1.5, "12", [1, 2], \
            {"a": 1}) and a string otherwise; see "get" for what JSON doesn't have. The values of -array and -dict may \
            have types of their own, and take all that follows. The value "-" is read from standard input.

            A value that the key has already is no change: nothing is written, and nothing synced.
            """)

    @OptionGroup var options: StoreOptions
    @OptionGroup var change: ChangeOptions

    @Argument(
        parsing: .captureForPassthrough, help: ArgumentHelp("The key and its value.", valueName: "key-and-value"),
        completion: .custom { arguments, _, _ in Completions.keys(arguments) })
    var words: [String]

    func validate() throws {
        if words.first == "--help" || words.first == "-h" { throw CleanExit.helpRequest(self) }
        do {
            _ = try assignment()
        } catch let failure as Failure {
            throw ValidationError(failure.description)
        }
    }

    /// The key, and its value unless it comes from standard input.
    private func assignment() throws -> (key: String, value: Value?) {
        var words = words[...]
        let isEndOfOptions = words.first == "--"
        if isEndOfOptions { words.removeFirst() }
        guard let key = words.popFirst() else { throw ValidationError("The key is missing") }
        if !isEndOfOptions && key.hasPrefix("-") {
            throw ValidationError("There is no option \(key); put -- before a key that begins with -")
        }
        if words.first == "-" && words.count == 1 { return (key, nil) }
        let (value, rest) = try TypedWords.value(words)
        if let word = rest.first {
            let advice = word.hasPrefix("--") ? "options go before the key" : "put quotes around a value with spaces"
            throw ValidationError("\"\(word)\" follows the value; \(advice)")
        }
        return (key, value)
    }

    func perform() async throws {
        let (key, given) = try assignment()
        let value = try given ?? ValueText.value(try StandardInput.text())
        try await options.withStore { store in
            try await Change(store: store, options: change).make { _ in [Text(key): value] }
        }
    }
}
