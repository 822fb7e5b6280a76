// SPDX-License-Identifier: Apache-2.0

// For sigset_t, which this module's headers define first.
internal import CSystemd
internal import Glibc

/// A program that could not be started.
public struct StartFailure: Error, CustomStringConvertible {
    /// The reason, in words.
    public let description: String
}

/// Starts programs. The corresponding C function is ``posix_spawn``.
///
/// It is used instead of Foundation's `Process` because the child must inherit neither the signals blocked in the event
/// loop's thread nor the tests' descriptors.
enum Spawn {
    /// - Parameters:
    ///   - environment: `nil` is this process's.
    ///   - input: standard input; `nil` is `/dev/null`.
    ///   - output: files to append standard output and standard error to; `nil` is `/dev/null`.
    ///   - terminal: a terminal to use for all three, as the program's controlling terminal.
    static func start(
        _ arguments: [String],
        environment: [String: String]?,
        input: Int32? = nil,
        output: (output: String, error: String)? = nil,
        terminal: String? = nil
    ) throws(StartFailure) -> Int32 {
        var actions = posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        if let input {
            posix_spawn_file_actions_adddup2(&actions, input, 0)
        } else {
            posix_spawn_file_actions_addopen(&actions, 0, terminal ?? "/dev/null", O_RDWR, 0)
        }
        let flags = O_WRONLY | O_CREAT | O_APPEND
        posix_spawn_file_actions_addopen(&actions, 1, terminal ?? output?.output ?? "/dev/null", flags, 0o600)
        posix_spawn_file_actions_addopen(&actions, 2, terminal ?? output?.error ?? "/dev/null", flags, 0o600)
        // Foundation's pipes are open in every child, and reading one to its end would wait for this child.
        _ = closeFrom(&actions, 3)
        var (none, all) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        // POSIX_SPAWN_SETSID, which Swift doesn't import. The first terminal that a session opens becomes its
        // controlling terminal.
        let session: Int32 = terminal == nil ? 0 : 0x80
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | session))
        return try start(arguments, environment, actions, attributes)
    }

    private static func start(
        _ arguments: [String],
        _ environment: [String: String]?,
        _ actions: posix_spawn_file_actions_t,
        _ attributes: posix_spawnattr_t
    ) throws(StartFailure) -> Int32 {
        var (actions, attributes) = (actions, attributes)
        let argv = arguments.map { strdup($0) } + [nil]
        var variables = environment.map { $0.map { strdup("\($0.key)=\($0.value)") } + [nil] } ?? []
        defer { for string in argv + variables { free(string) } }
        var pid: pid_t = 0
        let result = variables.withUnsafeMutableBufferPointer {
            posix_spawnp(
                &pid,
                arguments[0],
                &actions,
                &attributes,
                argv,
                environment == nil ? environ : $0.baseAddress
            )
        }
        guard result == 0 else {
            throw StartFailure(description: "\(arguments[0]) can't be started: \(String(cString: strerror(result)))")
        }
        return pid
    }
}

/// A function of <spawn.h>, which declares it only with GNU extensions, so Swift doesn't import it.
@_silgen_name("posix_spawn_file_actions_addclosefrom_np")
private func closeFrom(_ actions: UnsafeMutablePointer<posix_spawn_file_actions_t>, _ first: Int32) -> Int32
