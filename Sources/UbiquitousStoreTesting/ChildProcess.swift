// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Glibc
internal import Synchronization

/// A running program. It is killed by its id when this object is released or this process ends.
public final class ChildProcess: Sendable {
    /// How a program ended.
    public enum Exit: Equatable, Sendable {
        /// It exited with a code.
        case code(Int32)
        /// A signal ended it.
        case signal(Int32)
    }

    /// The process id.
    public let pid: Int32
    private let outcome = Mutex<Exit?>(nil)

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - arguments: the program, which is searched for in `PATH`, and its arguments.
    ///   - user: the user to run as; only root may choose another. The program gets that user's group and no others.
    ///   - environment: the whole environment; `nil` is this process's.
    ///   - output: files to append standard output and standard error to; `nil` discards both.
    /// - Throws: ``StartFailure``.
    public init(
        _ arguments: [String],
        as user: UInt32? = nil,
        environment: [String: String]? = nil,
        output: (output: String, error: String)? = nil
    ) throws {
        pid = try Spawn.start(
            Self.prefix(user) + arguments,
            environment: environment,
            output: output
        )
        ProcessReaper.note(process: pid)
    }

    /// Starts a program at a terminal.
    init(_ arguments: [String], environment: [String: String]?, terminal: String) throws {
        pid = try Spawn.start(arguments, environment: environment, terminal: terminal)
        ProcessReaper.note(process: pid)
    }

    deinit {
        if exit == nil { kill() }
    }

    private static func prefix(_ user: UInt32?) -> [String] {
        guard let user, user != geteuid() else { return [] }
        let group = getpwuid(user).map { $0.pointee.pw_gid } ?? user
        return ["setpriv", "--reuid=\(user)", "--regid=\(group)", "--clear-groups", "--"]
    }

    /// How the program ended; `nil` while it runs.
    public var exit: Exit? { collect(WNOHANG) }

    /// Sends a signal, if the program still runs.
    public func send(_ signal: Int32) {
        outcome.withLock { outcome in
            // The id can't be reused before the process is reaped, which happens under this lock.
            if outcome == nil { _ = Glibc.kill(pid, signal) }
        }
    }

    /// Kills the program, and waits until it is gone.
    public func kill() {
        send(SIGKILL)
        collect(0)
    }

    /// Waits until the program has ended.
    /// - Throws: ``DeadlinePassed``.
    public func finish() async throws -> Exit {
        var end: Exit?
        try await eventually("process \(pid) ends") {
            end = exit
            return end != nil
        }
        return end ?? .code(-1)
    }

    @discardableResult
    private func collect(_ options: Int32) -> Exit? {
        outcome.withLock { outcome in
            if outcome != nil { return outcome }
            var status: Int32 = 0
            guard waitpid(pid, &status, options) == pid else { return nil }
            outcome = status & 0x7f == 0 ? .code(status >> 8 & 0xff) : .signal(status & 0x7f)
            ProcessReaper.note(ended: pid)
            return outcome
        }
    }
}

extension ChildProcess {
    /// Finds a program of the tested package, built beside the tests.
    /// - Returns: its path.
    /// - Throws: ``StartFailure`` if it is missing.
    public static func built(_ name: String) throws(StartFailure) -> String {
        let tests = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let program = URL(filePath: tests ?? "/").deletingLastPathComponent().appending(path: name).path
        guard access(program, X_OK) == 0 else { throw StartFailure(description: "There is no \(program)") }
        return program
    }
}
