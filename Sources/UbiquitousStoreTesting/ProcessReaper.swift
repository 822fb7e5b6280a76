// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Synchronization

/// Cleans up what this process leaves behind, however it ends.
///
/// It is a shell at the other end of a pipe. When the pipe closes, because this process has ended or was killed, the
/// shell kills the registered processes, detaches the registered mounts and removes the registered directories.
enum ProcessReaper {
    private static let script = """
        trap '' INT TERM HUP
        pids= mounts= directories=
        while read -r verb what; do
            case $verb in
            process) pids="$pids $what" ;;
            ended) rest=; for pid in $pids; do [ "$pid" = "$what" ] || rest="$rest $pid"; done; pids=$rest ;;
            mount) mounts="$what $mounts" ;;
            directory) directories="$directories $what" ;;
            esac
        done
        for pid in $pids; do kill -KILL "$pid" 2>/dev/null; done
        for mount in $mounts; do umount -l "$mount" 2>/dev/null; done
        for directory in $directories; do rm -rf --one-file-system "$directory"; done
        """

    /// The writing end of the pipe, open as long as this process runs.
    private static let pipe: Mutex<Int32> = {
        var ends: [Int32] = [-1, -1]
        guard Glibc.pipe(&ends) == 0 else { return Mutex(-1) }
        _ = fcntl(ends[1], F_SETFD, FD_CLOEXEC)
        _ = try? Spawn.start(["/bin/sh", "-c", script], environment: nil, input: ends[0], output: nil)
        close(ends[0])
        return Mutex(ends[1])
    }()

    static func note(process pid: Int32) { tell("process \(pid)") }
    static func note(ended pid: Int32) { tell("ended \(pid)") }
    static func note(mount path: String) { tell("mount \(path)") }
    static func note(directory path: String) { tell("directory \(path)") }

    private static func tell(_ line: String) {
        pipe.withLock { pipe in
            let line = line + "\n"
            _ = write(pipe, line, line.utf8.count)
        }
    }
}
