// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Glibc
internal import Synchronization

/// A program that was started; it is killed, by its id, when this is released or this process ends.
public final class ChildProcess: Sendable {
    /// How a program ended.
    public enum Exit: Equatable, Sendable {
        /// By itself, with a code.
        case code(Int32)
        /// By a signal.
        case signal(Int32)
    }

    /// The process id.
    public let pid: Int32
    private let outcome = Mutex<Exit?>(nil)

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - arguments: the program, which is looked for in `PATH`, and what it is given.
    ///   - user: as whom; only root may start programs as somebody else. They have that user's group and no others.
    ///   - environment: all of it; `nil` is this process's.
    ///   - output: files that standard output and standard error are appended to; `nil` throws both away.
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

    /// How the program ended; `nil` as long as it runs.
    public var exit: Exit? { collect(WNOHANG) }

    /// Sends a signal, if the program still runs.
    public func send(_ signal: Int32) {
        outcome.withLock { outcome in
            // Nobody else has the id before it is collected, which is done under this lock.
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
    /// A program of the package that the tests are of, which is built beside them.
    /// - Returns: its path.
    /// - Throws: ``StartFailure`` if it isn't there.
    public static func built(_ name: String) throws(StartFailure) -> String {
        let tests = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let program = URL(filePath: tests ?? "/").deletingLastPathComponent().appending(path: name).path
        guard access(program, X_OK) == 0 else { throw StartFailure(description: "There is no \(program)") }
        return program
    }
}
