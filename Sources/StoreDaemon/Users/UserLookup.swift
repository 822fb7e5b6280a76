// SPDX-License-Identifier: Apache-2.0

// For eventfd.
internal import CSystemd
internal import Files
internal import Glibc
internal import Replication
internal import SDBus
internal import Synchronization

/// Looks up the machine's users for the bus's thread, which answers everybody's calls.
///
/// Users in `/etc/passwd` are found there. For others, a thread asks the system, and so perhaps a directory service
/// that takes half a minute to time out. The bus's thread waits for a moment only, a tenth of the time in sum, and while
/// an answer is overdue it asks for no other.
final class UserLookup: Sendable {
    static let shared = UserLookup()

    private struct State {
        var local = LocalUsers()
        var isAsking = false
        /// Those that came late, and when.
        var answers: [UserEntry.Key: (answer: UserEntry.Answer, time: UInt64)] = [:]
        /// For how long the bus's thread may still wait, in microseconds.
        var waiting: TokenBucket

        mutating func take(_ key: UserEntry.Key, _ now: UInt64) -> UserEntry.Answer? {
            answers = answers.filter { now - min(now, $0.value.time) < UserLookup.longestLife }
            return answers.removeValue(forKey: key)?.answer
        }
    }

    /// For how many microseconds a late answer holds, and how many are kept.
    private static let (longestLife, mostAnswers) = (60_000_000 as UInt64, 1024)

    private let state: Mutex<State>
    private let thread = WorkThread(WorkPool(threads: 1))
    private let ask: @Sendable (UserEntry.Key) -> UserEntry.Answer
    private let patience: UInt64

    /// - Parameters:
    ///   - patience: how long the bus's thread waits, in milliseconds; in sum for all lookups, in ten times that time.
    ///   - ask: asks the system, which may take long.
    init(
        patience: UInt64 = 100, asking ask: @escaping @Sendable (UserEntry.Key) -> UserEntry.Answer = UserEntry.lookUp
    ) {
        (self.patience, self.ask) = (patience, ask)
        state = Mutex(State(waiting: TokenBucket(capacity: patience * 1000, interval: 10)))
    }

    /// Returns what is known of a user.
    func entry(_ key: UserEntry.Key) -> UserEntry.Answer {
        if let entry = state.withLock({ $0.local.entry(key) }) { return .known(entry) }
        let start = EventLoop.now
        let (answer, isAsking, spent) = state.withLock { state in
            let answer = state.take(key, start)
            defer { state.isAsking = state.isAsking || answer == nil }
            return (answer, state.isAsking, state.waiting.missing(start) / 1000)
        }
        if let answer { return answer }
        if isAsking { return .unknown }
        let bell = Bell()
        thread.run { [self] in
            let answer = ask(key)
            state.withLock { state in
                state.isAsking = false
                if state.answers.count >= Self.mostAnswers {
                    state.answers.min { $0.value.time < $1.value.time }.map { state.answers[$0.key] = nil }
                }
                state.answers[key] = (answer, EventLoop.now)
            }
            bell.ring()
        }
        let rest = patience - min(patience, spent)
        bell.wait(Int32(clamping: rest))
        return state.withLock { state in
            let now = EventLoop.now
            state.waiting.take(now, now - min(now, start))
            return state.take(key, now) ?? (rest < patience / 2 ? .busy : .unknown)
        }
    }
}

/// The users in `/etc/passwd`, read again when the file has changed.
private struct LocalUsers {
    private var file = StampedFile("/etc/passwd")
    private var entries: [UserEntry.Key: UserEntry] = [:]

    mutating func entry(_ key: UserEntry.Key) -> UserEntry? {
        if let text = file.news() { read(text) }
        return entries[key]
    }

    private mutating func read(_ text: String) {
        entries = [:]
        for line in text.split(separator: "\n") {
            let fields = line.split(separator: ":", omittingEmptySubsequences: false)
            guard fields.count == 7, let uid = UInt32(fields[2]) else { continue }
            let entry = UserEntry(name: String(fields[0]), uid: uid)
            // The first line of a user counts.
            for key in [UserEntry.Key.name(entry.name), .uid(uid)] where entries[key] == nil { entries[key] = entry }
        }
    }
}

/// A signal from one thread to another, sent once.
private final class Bell: Sendable {
    private let descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))

    deinit { if descriptor >= 0 { close(descriptor) } }

    func ring() { eventfd_write(descriptor, 1) }

    /// Waits for at most this many milliseconds.
    func wait(_ milliseconds: Int32) {
        var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        poll(&ready, 1, milliseconds)
    }
}
