// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Glibc

/// Locks a state directory against a second service, until it is released or the process ends.
///
/// A thread that waits for a file system that never answers can't be killed. Its process keeps its open files until the
/// machine is restarted, and with them the lock, even if everything else of it has ended. So the file names its owner,
/// and the lock of one that has ended doesn't count.
final class StateLock {
    private var descriptor: Int32

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
        for _ in 0..<Self.attempts {
            if let descriptor = try Self.take(path, in: directory) {
                self.descriptor = descriptor
                return
            }
            usleep(Self.pause)
        }
        throw DaemonError(
            "Another ubiquitous-stored uses the state directory \(directory); end it, or name another directory.")
    }

    deinit { release() }

    /// Releases the lock. The process's end needn't do it.
    func release() {
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
    }

    /// Tries to take the lock. Only one process at a time does, as long as it has a lock on the directory itself.
    private static func take(_ path: String, in directory: String) throws(DaemonError) -> Int32? {
        let turn = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard turn >= 0 else {
            throw DaemonError("\(directory) can't be opened: \(String(cString: strerror(errno))).")
        }
        defer { close(turn) }
        if flock(turn, LOCK_EX | LOCK_NB) != 0 { return nil }
        let descriptor = try file(path)
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 {
            ProcessMark.own?.write(to: descriptor)
            return descriptor
        }
        let owner = ProcessMark(reading: descriptor)
        close(descriptor)
        guard owner?.hasEnded == true else { return nil }
        unlink(path + ".new")
        let next = try file(path + ".new")
        guard flock(next, LOCK_EX | LOCK_NB) == 0, rename(path + ".new", path) == 0 else {
            close(next)
            return nil
        }
        ProcessMark.own?.write(to: next)
        return next
    }

    private static func file(_ path: String) throws(DaemonError) -> Int32 {
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
        if descriptor >= 0 { return descriptor }
        throw DaemonError("\(path) can't be opened: \(String(cString: strerror(errno))).")
    }
}

/// Names a process unmistakably: by its id, and the time when it started.
struct ProcessMark: Equatable {
    private let pid: Int32
    /// Clock ticks since the machine's start.
    private let start: UInt64

    init(pid: Int32, start: UInt64) { (self.pid, self.start) = (pid, start) }

    /// This process; `nil` if /proc doesn't say when it started.
    static var own: ProcessMark? { status(of: getpid()).map { ProcessMark(pid: getpid(), start: $0.start) } }

    /// Whether this process has ended: see ``hasEnded(_:)``.
    var hasEnded: Bool { Self.status(of: pid)?.start == start && Self.hasEnded(pid) }

    /// Whether /proc shows a process, and that its first thread has ended, after which only threads that can't be killed
    /// may be left. A process that /proc doesn't show may be one of another container.
    static func hasEnded(_ pid: Int32) -> Bool {
        guard let state = status(of: pid)?.state else { return false }
        return state == "Z" || state == "X"
    }

    /// Returns the state of a process's first thread, and when the process started: proc_pid_stat(5).
    static func status(of pid: Int32) -> (state: Substring, start: UInt64)? {
        guard let text = Files.text(of: "/proc/\(pid)/stat", atMost: 4096), let name = text.lastIndex(of: ")") else {
            return nil
        }
        let fields = text[name...].dropFirst().split(separator: " ")
        guard fields.count > 19, let start = UInt64(fields[19]) else { return nil }
        return (fields[0], start)
    }

    // MARK: In a file

    /// Reads a newly opened file; `nil` if it is empty, or names no process.
    init?(reading descriptor: Int32) {
        guard let bytes = try? Files.read(descriptor, atMost: 64) else { return nil }
        let words = String(decoding: bytes, as: UTF8.self).split(separator: " ")
        guard words.count == 2, let pid = Int32(words[0]), let start = UInt64(words[1]) else { return nil }
        self.init(pid: pid, start: start)
    }

    /// Replaces the contents of a newly opened file. If that fails, for example on a full disk, it names nobody.
    func write(to descriptor: Int32) {
        ftruncate(descriptor, 0)
        do { try Files.write(descriptor, "\(pid) \(start)".utf8) } catch { ftruncate(descriptor, 0) }
    }
}
