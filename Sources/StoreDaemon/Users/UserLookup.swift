// SPDX-License-Identifier: Apache-2.0

// For eventfd.
internal import CSystemd
internal import Glibc
internal import Replication
internal import SDBus
internal import Synchronization

/// Looks up the machine's users for the bus's thread, which answers everybody's calls.
///
/// Users in `/etc/passwd` are found there. For others, a thread asks the system, and so perhaps a directory service
/// that takes half a minute to time out. The bus's thread waits for a moment only, and while an answer is overdue it
/// asks for no other.
final class UserLookup: Sendable {
    static let shared = UserLookup()

    /// What is known of a user within a moment.
    enum Answer: Equatable, Sendable {
        /// The user; `nil` if there is none, or the system can't say.
        case known(UserEntry?)
        /// The answer has not arrived yet. Ask again later.
        case late
    }

    private struct State {
        var local = LocalUsers()
        var isAsking = false
        /// Those that came late, and when.
        var answers: [UserEntry.Key: (entry: UserEntry?, time: UInt64)] = [:]

        mutating func take(_ key: UserEntry.Key, _ now: UInt64) -> (entry: UserEntry?, time: UInt64)? {
            answers = answers.filter { now - min(now, $0.value.time) < UserLookup.longestLife }
            return answers.removeValue(forKey: key)
        }
    }

    /// For how many microseconds a late answer holds.
    private static let longestLife: UInt64 = 60_000_000

    private let state = Mutex(State())
    private let thread = WorkThread(WorkPool(threads: 1))
    private let ask: @Sendable (UserEntry.Key) -> UserEntry?
    private let patience: Int32

    /// - Parameters:
    ///   - patience: how long the bus's thread waits, in milliseconds.
    ///   - ask: asks the system, which may take long.
    init(patience: Int32 = 100, asking ask: @escaping @Sendable (UserEntry.Key) -> UserEntry? = UserEntry.init) {
        (self.patience, self.ask) = (patience, ask)
    }

    /// Returns what is known of a user.
    func entry(_ key: UserEntry.Key) -> Answer {
        if let entry = state.withLock({ $0.local.entry(key) }) { return .known(entry) }
        let (answer, isAsking) = state.withLock { state in
            let answer = state.take(key, EventLoop.now)
            defer { state.isAsking = state.isAsking || answer == nil }
            return (answer, state.isAsking)
        }
        if let answer { return .known(answer.entry) }
        if isAsking { return .late }
        let bell = Bell()
        thread.run { [self] in
            let entry = ask(key)
            state.withLock { state in
                state.isAsking = false
                state.answers[key] = (entry, EventLoop.now)
            }
            bell.ring()
        }
        bell.wait(patience)
        return state.withLock { $0.take(key, EventLoop.now) }.map { .known($0.entry) } ?? .late
    }
}

/// A user of this machine.
struct UserEntry: Hashable, Sendable {
    let name: String
    let uid: UInt32

    /// What a user is looked up by.
    enum Key: Hashable, Sendable {
        case name(String)
        case uid(UInt32)
    }

    init(name: String, uid: UInt32) { (self.name, self.uid) = (name, uid) }

    /// Asks the system, which may take as long as a directory service does. `nil` if there is no such user, or the
    /// system can't say.
    init?(_ key: Key) {
        guard case .success(let entry?) = Self.lookUp(key) else { return nil }
        self = entry
    }

    /// Whether there is such a user, or the system can't say. It may take as long.
    static func mayExist(_ key: Key) -> Bool {
        if case .success(nil) = lookUp(key) { false } else { true }
    }

    /// Why the system can't say whether there is a user.
    private struct Unknown: Error {}

    private static func lookUp(_ key: Key) -> Result<UserEntry?, Unknown> {
        var entry = passwd()
        var result: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 16 << 10)
        let code =
            switch key {
            case .name(let name): getpwnam_r(name, &entry, &buffer, buffer.count, &result)
            case .uid(let uid): getpwuid_r(uid, &entry, &buffer, buffer.count, &result)
            }
        if code == 0, result != nil {
            return .success(UserEntry(name: String(cString: entry.pw_name), uid: entry.pw_uid))
        }
        return absenceCodes.contains(code) ? .success(nil) : .failure(Unknown())
    }

    /// What getpwnam_r(3) and getgrnam_r(3) return, according to their man pages, for users and groups that don't exist.
    static let absenceCodes: Set = [0, ENOENT, ESRCH, EBADF, EPERM]
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
