// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Synchronization

/// The server processes of tests.
enum ServerProcess {
    private static let living = Mutex<Set<pid_t>>([])
    /// Kills all of them at exit, because objects that the last tests hold may never be released.
    private static let ends: Void = {
        atexit { for pid in ServerProcess.living.withLock(\.self) { kill(-pid, SIGKILL) } }
    }()

    /// Starts a program in a group of its own, with its output in a file.
    static func spawn(_ arguments: [String], log: String) throws -> pid_t {
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        // A group of its own, so that its workers end with it, and no blocked signals.
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK))
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        // Every child inherits Foundation's open pipes. A reader that waits for a pipe's end would wait for this child.
        _ = closeFrom(&actions, 3)
        var pid = pid_t()
        var argv: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        var environment: [UnsafeMutablePointer<CChar>?] = [
            strdup("PATH=/usr/sbin:/usr/bin:/bin"), strdup("HOME=/nonexistent"), nil,
        ]
        defer { for pointer in argv + environment { free(pointer) } }
        let result = posix_spawn(&pid, arguments[0], &actions, &attributes, &argv, &environment)
        guard result == 0 else { throw SocketError(result) }
        _ = ends
        let started = pid
        living.withLock { _ = $0.insert(started) }
        return pid
    }

    /// Ends a program, and everything that it has started.
    static func end(_ pid: pid_t, _ signal: Int32 = SIGKILL) {
        kill(-pid, signal)
        var status: Int32 = 0
        waitpid(pid, &status, 0)
        living.withLock { _ = $0.remove(pid) }
    }
}

/// The function of this name in <spawn.h>, which declares it only with GNU's extensions. Swift doesn't enable these.
@_silgen_name("posix_spawn_file_actions_addclosefrom_np")
private func closeFrom(_ actions: UnsafeMutablePointer<posix_spawn_file_actions_t>, _ first: Int32) -> Int32
