// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import SDBus

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
                let failure = await ServiceUnit.explained(Failure(error))
                Output.complain(failure.description)
                return failure.outcome.rawValue
            }
        }
        throw ExitCode(code)
    }
}
