// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// Runs of `busctl`, and of other programs: what a client in a process of its own sees.
public struct ProgramResult: Equatable, Sendable {
    /// How it ended; 0 is well.
    public let exit: ChildProcess.Exit
    /// What it wrote to standard output, without the newline at the end.
    public let output: String
    /// What it wrote to standard error, without the newline at the end.
    public let error: String
}

/// Runs a program to its end.
///
/// - Parameters:
///   - arguments: the program, and what it is given.
///   - user: as whom; only root may be somebody else.
/// - Throws: ``StartFailure``, ``DeadlinePassed``.
public func run(_ arguments: [String], as user: UInt32? = nil) async throws -> ProgramResult {
    let directory = try TemporaryDirectory()
    let (output, error) = (directory.path + "/output", directory.path + "/error")
    let exit = try await ChildProcess(arguments, as: user, output: (output, error)).finish()
    func text(_ path: String) -> String {
        String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self)
            .trimmingCharacters(in: .newlines)
    }
    return ProgramResult(exit: exit, output: text(output), error: text(error))
}

extension PrivateBus {
    /// Runs `busctl` on this bus.
    ///
    /// - Parameters:
    ///   - arguments: as `call`, a service, a path, an interface, a method, and so on.
    ///   - user: as whom; only root may be somebody else.
    public func busctl(_ arguments: String..., as user: UInt32? = nil) async throws -> ProgramResult {
        try await run(["busctl", "--address=\(address)"] + arguments, as: user)
    }
}
