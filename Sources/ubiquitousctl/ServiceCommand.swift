// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import SDBus

/// A command that calls the service.
protocol ServiceCommand: ParsableCommand, Sendable {
    /// Runs the command on this process's event loop.
    @BusActor func perform() async throws
}

extension ServiceCommand {
    /// Runs the command, and throws its exit code.
    mutating func run() throws {
        let command = self
        let code = EventLoop.runOnThisThread {
            do {
                try await command.perform()
                return Output.finish().rawValue
            } catch let ending as ReportedFailure {
                return ending.outcome.rawValue
            } catch {
                let failure = await Failure.explained(error)
                Output.complain(failure.description)
                return failure.outcome.rawValue
            }
        }
        throw ExitCode(code)
    }
}
