// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Locks a state directory against a second service, for as long as the process lives.
struct StateLock {
    private let descriptor: Int32

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
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            throw DaemonError(
                "Another ubiquitous-stored uses the state directory \(directory); end it, or name another directory.")
        }
    }
}
