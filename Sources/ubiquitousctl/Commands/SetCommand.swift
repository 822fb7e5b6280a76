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
            ubiquitousctl set [OPTIONS] KEY --string TEXT | -
            ubiquitousctl set [OPTIONS] KEY -array VALUE...
            ubiquitousctl set [OPTIONS] KEY -dict KEY VALUE...
            """,
        discussion: """
            A value without a type is read as JSON (true, 12, 1.5, "12", [1, 2], {"a": 1}) if it is JSON, and as a \
            string otherwise; "get" explains what stands for values that JSON doesn't have. -array and -dict take \
            everything that follows, so put options before them; their elements may have types of their own. The value \
            "-" is read from standard input, with --string as text, whatever it looks like.

            If the key already has the value, nothing is written and nothing is synced.
            """)

    @OptionGroup var options: StoreOptions
    @OptionGroup var change: ChangeOptions
    @OptionGroup var form: ValueForm

    @Argument(
        parsing: .captureForPassthrough, help: ArgumentHelp("The key and its value.", valueName: "key-and-value"),
        completion: .custom { arguments, index, _ in KeyCompletion.assignment(arguments, index) })
    var words: [String]

    func validate() throws {
        if words.first == "--help" || words.first == "-h" { throw CleanExit.helpRequest(self) }
        do {
            _ = try assignment()
        } catch let exit as CleanExit {
            throw exit
        } catch let failure as Failure {
            throw ValidationError(failure.description)
        }
    }

    /// How the value is read.
    struct ValueForm: ParsableArguments {
        @Flag(
            help: """
                Take the value, or standard input, as text, whatever it looks like. Put it before the value, and -- \
                before a value that begins with a hyphen.
                """)
        var string = false
    }

    /// A parsed command line.
    private struct Assignment {
        let key: String
        let value: Source
        let options: StoreOptions
        let change: ChangeOptions
    }

    /// Where the value comes from.
    private enum Source {
        case word(Value)
        case standardInput(isText: Bool)

        func read() throws -> Value {
            switch self {
            case .word(let value): value
            case .standardInput(isText: true): .string(Text(try StandardInput.text()))
            case .standardInput(isText: false): try ValueText.value(try StandardInput.text())
            }
        }
    }

    /// The options that stand before or after the value. Options may also precede the key.
    private struct FurtherOptions: ParsableArguments {
        @OptionGroup var options: StoreOptions
        @OptionGroup var change: ChangeOptions
        @OptionGroup var form: ValueForm

        static func read(_ words: [String]) throws -> Self {
            do { return try parse(words) } catch { throw ValidationError(message(for: error)) }
        }
    }

    private func assignment() throws -> Assignment {
        var words = words[...]
        let isEndOfOptions = words.first == "--"
        if isEndOfOptions { words.removeFirst() }
        guard let key = words.popFirst() else { throw ValidationError(localized("The key is missing.")) }
        if !isEndOfOptions && key.hasPrefix("-") {
            throw ValidationError(localized("There is no option \(key); put -- before a key that begins with -."))
        }
        var further = OptionWords.take(from: &words)
        if !Set(further).isDisjoint(with: ["-h", "--help"]) { throw CleanExit.helpRequest(self) }
        if words.isEmpty, let sign = key.firstIndex(of: "="), sign != key.startIndex {
            let (name, value) = (key[..<sign], key[key.index(after: sign)...])
            throw ValidationError(
                localized("A value is missing; if \(name) is the key, write \"set \(name) \(value)\"."))
        }
        let isText = form.string || further.contains("--string")
        let isOperand = words.first == "--" && words.count > 1
        if isOperand { words.removeFirst() }
        let value = try Self.value(&words, isText: isText, isOperand: isOperand)
        let last = isOperand ? [] : OptionWords.take(from: &words)
        if last.contains("--string") { throw ValidationError(localized("--string goes before the value.")) }
        further += last
        if let word = words.first {
            throw ValidationError(
                localized(
                    "\(Output.quoted(word)) follows the value; put quotes around a value with spaces, and --store before a store."
                ))
        }
        let parsed = try FurtherOptions.read(further)
        return Assignment(
            key: key, value: value, options: options.replaced(by: parsed.options),
            change: change.joined(with: parsed.change))
    }

    /// - Parameter isOperand: whether the value follows `--`, so that it isn't a type.
    private static func value(
        _ words: inout ArraySlice<String>, isText: Bool, isOperand: Bool
    ) throws -> Source {
        if words.first == "-" {
            words.removeFirst()
            return .standardInput(isText: isText)
        }
        if isText || isOperand, let word = words.popFirst() {
            return .word(isText ? .string(Text(word)) : try ValueText.value(word))
        }
        let (value, rest) = try TypedWords.value(words)
        words = rest
        return .word(value)
    }

    func perform() async throws {
        let said = try assignment()
        let value = try said.value.read()
        try await said.options.withStore { store in
            try await Change(store: store, options: said.change).make { _ in [Text(said.key): value] }
        }
    }
}
