// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import SDBus
internal import StoreBus

/// The command line, for the programs that have it in them.
package enum ControlProgram {
    /// Does what the process was called for, and ends it.
    package static func main() { Program.main() }
}

/// The command line for stores and accounts.
struct Program: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ubiquitousctl",
        abstract: "Reads and writes the stores of apps, and looks after the account that syncs them.",
        discussion: """
            A store is named by --store, or by UBIQUITOUS_STORE_IDENTIFIER; the bus by --bus, or by \
            UBIQUITOUS_STORE_BUS.

            Exit codes: 0 done; 1 there is no such value; 2 the command line or a file isn't right; 3 the service \
            refused; 4 the service, or the account's remote, can't be reached. What ends with 2, 3 or 4 changed nothing.
            """,
        version: Release.version,
        groupedSubcommands: [
            CommandGroup(
                name: "Values",
                subcommands: [
                    GetCommand.self, SetCommand.self, RemoveCommand.self, ListCommand.self, WatchCommand.self,
                    ExportCommand.self, ImportCommand.self, HistoryCommand.self, RestoreCommand.self,
                ]),
            CommandGroup(
                name: "Stores and sync",
                subcommands: [
                    StoresCommand.self, UsageCommand.self, SynchronizeCommand.self, StatusCommand.self,
                    AccountCommand.self,
                ]),
            CommandGroup(
                name: "Setting up",
                subcommands: [DoctorCommand.self, IdentifyCommand.self, ManifestCommand.self]),
        ])

    static func main() {
        do {
            var command = try parseAsRoot()
            try command.run()
        } catch {
            end(error)
        }
    }

    /// Ends with what ArgumentParser has to say, and with our codes.
    private static func end(_ error: any Error) -> Never {
        let code = exitCode(for: error)
        let message = fullMessage(for: error)
        if code.isSuccess {
            if !message.isEmpty { Output.print(message) }
            Glibc.exit(Output.finish().rawValue)
        }
        if let failure = error as? Failure {
            Output.complain(failure.description)
            Glibc.exit(failure.outcome.rawValue)
        }
        if !message.isEmpty { Output.write(message + "\n", to: STDERR_FILENO) }
        // ArgumentParser has EX_USAGE (64) for a command line that isn't right.
        Glibc.exit(code == .validationFailure ? Outcome.usage.rawValue : code.rawValue)
    }
}

/// A command that speaks to the service.
protocol ServiceCommand: ParsableCommand, Sendable {
    /// Does it, on the event loop of this process.
    @BusActor func perform() async throws
}

extension ServiceCommand {
    /// Does it and ends with its outcome.
    mutating func run() throws {
        let command = self
        let code = EventLoop.runOnThisThread {
            Interruption.allow()
            do {
                try await command.perform()
                return Output.finish().rawValue
            } catch let ending as Ending {
                return ending.outcome.rawValue
            } catch {
                let failure = Failure(error)
                Output.complain(failure.description)
                return failure.outcome.rawValue
            }
        }
        throw ExitCode(code)
    }
}
