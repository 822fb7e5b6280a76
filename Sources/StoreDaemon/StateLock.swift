// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Locks a state directory against a second service, for as long as the process lives.
struct StateLock {
    private let descriptor: Int32

    /// How often the lock is tried, and the pause between two attempts, in microseconds. The bus may start a service
    /// while the one before it, which had nothing to do, is still ending: that takes five seconds at most.
    private static let (attempts, pause): (Int, UInt32) = (120, 50_000)

    /// Takes the lock, and waits for one that is about to be released.
    init(_ directory: String) throws(DaemonError) {
        guard access(directory, W_OK | X_OK) == 0 else {
            throw DaemonError(
                "The state directory \(directory) can't be written to: \(String(cString: strerror(errno))).")
        }
        let path = directory + "/lock"
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            throw DaemonError("\(path) can't be opened: \(String(cString: strerror(errno))).")
        }
        for _ in 0..<Self.attempts {
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return }
            usleep(Self.pause)
        }
        throw DaemonError(
            "Another ubiquitous-stored uses the state directory \(directory); end it, or name another directory.")
    }
}
