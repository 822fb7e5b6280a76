// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// The result of `busctl` or another program: what a client in another process sees.
public struct ProgramResult: Equatable, Sendable {
    /// How the program ended; code 0 is success.
    public let exit: ChildProcess.Exit
    /// The program's standard output, without the newline at the end.
    public let output: String
    /// The program's standard error, without the newline at the end.
    public let error: String
}

/// Runs a program to its end.
///
/// - Parameters:
///   - arguments: the program and its arguments.
///   - user: the user to run as; only root may choose another.
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
    ///   - arguments: for example `call`, a service, a path, an interface, a method, and so on.
    ///   - user: the user to run as; only root may choose another.
    /// - Throws: ``StartFailure`` or ``DeadlinePassed``. If the call fails, the result says so.
    public func busctl(_ arguments: String..., as user: UInt32? = nil) async throws -> ProgramResult {
        try await run(["busctl", "--address=\(address)"] + arguments, as: user)
    }
}
