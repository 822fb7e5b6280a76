// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Synchronization
import Testing
import UbiquitousStoreTesting

@testable import StoreDaemon

@Suite struct StateLockTests {
    @Test func `a lock is nobody else's until it is released`() throws {
        let directory = try TemporaryDirectory()
        // Only the thread uses it from now on.
        nonisolated(unsafe) let lock = try StateLock(directory.path)
        let isReleased = Mutex(false)
        Thread.detachNewThread {
            usleep(300_000)
            isReleased.withLock { $0 = true }
            lock.release()
        }
        // It waits.
        try StateLock(directory.path).release()
        #expect(isReleased.withLock { $0 })
    }

    /// A process that has ended and still has its files open is played by one that nobody has waited for, whose lock this
    /// process holds.
    @Test(arguments: ["ended", "running", "another", "none"])
    func `a lock that only a process holds that has ended is taken away`(owner: String) async throws {
        let directory = try TemporaryDirectory()
        let file = directory.path + "/lock"
        let ended = try #require(Spawned(owner == "running" ? ["sleep", "60"] : ["true"]))
        defer { ended.end() }
        if owner != "running" {
            try await eventually("it has ended") { ProcessMark.status(of: ended.pid)?.state == "Z" }
        }
        let start = try #require(ProcessMark.status(of: ended.pid)).start
        let descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        defer { close(descriptor) }
        #expect(flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        if owner != "none" {
            ProcessMark(pid: ended.pid, start: owner == "another" ? start + 1 : start).write(to: descriptor)
        }
        guard owner == "ended" else {
            #expect(throws: DaemonError.self) { try StateLock(directory.path) }
            return
        }
        let lock = try StateLock(directory.path)
        // Its own lock is one, too.
        let again = open(file, O_RDWR | O_CLOEXEC)
        defer { close(again) }
        #expect(flock(again, LOCK_EX | LOCK_NB) != 0 && ProcessMark(reading: again) == .own)
        lock.release()
        #expect(flock(again, LOCK_EX | LOCK_NB) == 0)
    }
}

/// A program that has ended stays in the table of processes until ``end()``.
private final class Spawned: Sendable {
    let pid: pid_t

    init?(_ words: [String]) {
        var pid: pid_t = 0
        var arguments = words.map { strdup($0) } + [nil]
        defer { arguments.forEach { free($0) } }
        guard posix_spawnp(&pid, words[0], nil, nil, &arguments, environ) == 0 else { return nil }
        self.pid = pid
    }

    func end() {
        kill(pid, SIGKILL)
        waitpid(pid, nil, 0)
    }
}
