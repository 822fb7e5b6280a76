// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Files
internal import Glibc
internal import StoreBus

/// The command line, for the programs that include it.
package enum ControlProgram {
    /// Runs what the process was called for, and ends the process.
    package static func main() {
        StandardStreams.occupy()
        StandardStreams.widen()
        if DefaultsProgram.isCalled(CommandLine.arguments.first) {
            DefaultsProgram.main(Array(CommandLine.arguments.dropFirst()))
        }
        Program.main()
    }
}

/// The command line for stores and accounts.
struct Program: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ubiquitousctl",
        abstract: "Reads and writes apps' stores, and manages the account that syncs them.",
        discussion: """
            --store or UBIQUITOUS_STORE_IDENTIFIER names the store; --bus or UBIQUITOUS_STORE_BUS names the bus.

            Exit status: 0 success; 1 no such value; 2 the command line or a file is invalid; 3 the service refused; 4 \
            the service or the account's remote can't be reached. With 2 nothing was changed, and with 3 nothing \
            except by "admin backup", "admin restore" and "account renew", and if only the report of a change can't be \
            printed. "account encrypt" and "account replace-key" may continue after they have returned 4; see "status".
            """,
        version: Release.version,
        groupedSubcommands: [
            CommandGroup(
                name: "Values",
                subcommands: [
                    GetCommand.self, SetCommand.self, RemoveCommand.self, ListCommand.self, WatchCommand.self,
                    ExportCommand.self, ImportCommand.self, HistoryCommand.self, RestoreCommand.self,
                ]),
            CommandGroup(name: "Settings of this device", subcommands: [DefaultsCommand.self]),
            CommandGroup(
                name: "Stores and sync",
                subcommands: [
                    StoresCommand.self, UsageCommand.self, SynchronizeCommand.self, StatusCommand.self,
                    AccountCommand.self,
                ]),
            CommandGroup(
                name: "Setting up",
                subcommands: [
                    DoctorCommand.self, IdentifyCommand.self, ManifestCommand.self, MetricsCommand.self,
                    AdminCommand.self,
                ]),
        ])

    static func main() {
        do {
            try checkEncoding()
            try checkOrder(CommandLine.arguments.dropFirst())
            try checkSubcommand(CommandLine.arguments.dropFirst(), of: Program.self)
            var command = try parsed(Array(CommandLine.arguments.dropFirst()))
            try command.run()
            Glibc.exit(Output.finish().rawValue)
        } catch {
            end(error)
        }
    }

    /// Parses the command line.
    ///
    /// ArgumentParser takes no word that begins with a hyphen for an option's value, and calls the value missing. A
    /// negative number is given to its option then, so that the command says which numbers it takes.
    private static func parsed(_ words: [String]) throws -> any ParsableCommand {
        do { return try parseAsRoot(words) } catch {
            guard let name = ParserMessage.optionWithoutValue(fullMessage(for: error)),
                let index = words.firstIndex(of: name), index + 1 < words.count,
                words[index + 1].wholeMatch(of: /-[0-9.]+/) != nil
            else { throw error }
            var joined = words
            joined.replaceSubrange(index...(index + 1), with: ["\(name)=\(words[index + 1])"])
            return try parseAsRoot(joined)
        }
    }

    /// Refuses arguments that aren't UTF-8, because Swift would change them.
    private static func checkEncoding() throws {
        for index in 1..<max(2, Int(CommandLine.argc)) {
            guard let argument = CommandLine.unsafeArgv[index], String(validatingCString: argument) == nil else {
                continue
            }
            throw Failure(.usage, "Argument \(index) isn't UTF-8.")
        }
    }

    /// Refuses a subcommand's option that precedes the subcommand. ArgumentParser handles the program's own options.
    private static func checkOrder(_ words: ArraySlice<String>) throws {
        let name = words.first.map { $0.prefix { $0 != "=" } } ?? ""
        guard ["--bus", "--store", "-s", "--user", "--json", "--check"].contains(name) else { return }
        throw precedingOption(String(name))
    }

    private static func precedingOption(_ name: String) -> Failure {
        Failure(
            .usage, "\(Output.quoted(name)) stands where the subcommand belongs.",
            advice: "Options follow the subcommand.")
    }

    /// Refuses a word that isn't a subcommand, and suggests the one that was probably meant.
    /// - Parameter line: the subcommands before the word, each preceded by a space.
    private static func checkSubcommand(
        _ words: ArraySlice<String>, of command: any ParsableCommand.Type, line: String = "", isForHelp: Bool = false
    ) throws {
        // For `history`, a word that isn't a subcommand is a key.
        if command == HistoryCommand.self { return }
        let subcommands = command.configuration.subcommands
        guard let word = words.first else { return }
        if word.hasPrefix("-") {
            let isMeantForSubcommand =
                !line.isEmpty && !subcommands.isEmpty
                && command.configuration.defaultSubcommand == nil && !["-h", "--help", "--version"].contains(word)
            if isMeantForSubcommand { throw precedingOption(String(word.prefix { $0 != "=" })) }
            return
        }
        if word == "help", line.isEmpty, !isForHelp {
            return try checkSubcommand(words.dropFirst(), of: command, isForHelp: true)
        }
        if let named = subcommands.first(where: { $0.configuration.commandName == word }) {
            let line = "\(line) \(word)"
            return try checkSubcommand(words.dropFirst(), of: named, line: line, isForHelp: isForHelp)
        }
        // Further words are the command's arguments, but there is no help for them.
        if subcommands.isEmpty, !isForHelp { return }
        let meant =
            Spelling.nearest(to: word, in: names(of: subcommands))
            ?? nested(word, in: subcommands)
            ?? names(of: configuration.subcommands).first { $0 == word }.map { "ubiquitousctl \($0)" }
        throw Failure(
            .usage, "There is no subcommand \(Output.quoted(word)).",
            advice: meant.map { "Did you mean \"\($0)\"?" }
                ?? (subcommands.isEmpty
                    ? "\"ubiquitousctl\(line) --help\" says what it takes."
                    : "\"ubiquitousctl\(line) --help\" lists the subcommands."))
    }

    private static func names(of commands: [any ParsableCommand.Type]) -> [String] {
        commands.compactMap { $0.configuration.commandName }
    }

    /// Returns a subcommand of a subcommand that was probably meant, as `account sign-in` by "login".
    private static func nested(_ word: String, in commands: [any ParsableCommand.Type]) -> String? {
        // What both `account` and `stores` have, as `sync`, is mostly meant for the account.
        for command in commands.reversed() {
            if let name = Spelling.nearest(to: word, in: names(of: command.configuration.subcommands)) {
                return "\(command.configuration.commandName ?? "") \(name)"
            }
        }
        return nil
    }

    /// Ends the process with ArgumentParser's message and this program's exit codes.
    private static func end(_ error: any Error) -> Never {
        // A command has already printed everything. For an exit code alone, ArgumentParser would generate the help.
        if let code = error as? ExitCode { Glibc.exit(code.isSuccess ? Output.finish().rawValue : code.rawValue) }
        let code = exitCode(for: error)
        let message = fullMessage(for: error)
        if code.isSuccess {
            if !message.isEmpty { Output.print(CompletionScript.completed(message)) }
            Glibc.exit(Output.finish().rawValue)
        }
        if let failure = error as? Failure {
            Output.complain(failure.description)
            Glibc.exit(failure.outcome.rawValue)
        }
        if !message.isEmpty {
            let shown = Output.printable(ParserMessage.translated(message), atMost: 1000)
            Output.write(shown + "\n", to: STDERR_FILENO)
        }
        // ArgumentParser's code for an invalid command line is EX_USAGE (64).
        Glibc.exit(code == .validationFailure ? Outcome.usage.rawValue : code.rawValue)
    }
}
