// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Glibc
internal import Replication
internal import SDBus

/// Keeps the ``Deaths`` during a kind of work for a user in a file in the user's directory, written before the work and
/// removed after it. The file need not survive a power cut.
@BusActor
final class DeathRecord {
    /// What the service does for a user by itself, and would do again at each start.
    enum Work: String {
        /// A sync cycle.
        case cycle = "sync-cycle"
        /// Opening the database, which may migrate it or replace a damaged one.
        case opening
        /// Making the database that of the account that is signed in.
        case entering

        /// After how many deaths the work waits. Each start begins with opening and entering, so whoever kills the
        /// service a few times in a row is likely to do so during these.
        var mostDeaths: Int { self == .cycle ? 2 : 4 }
    }

    /// Whether the last process died during the work.
    let isOfLastProcess: Bool
    private var deaths: Deaths
    private let work: Work
    private let path: String

    init(of work: Work, in directory: String) {
        self.work = work
        path = directory + "/" + work.rawValue
        let text = Self.read(path)
        let deaths = Deaths(text, boot: Self.read("/proc/sys/kernel/random/boot_id").filter { !$0.isWhitespace })
        isOfLastProcess = deaths.isSuspect && deaths.text != text
        self.deaths = deaths
        if isOfLastProcess { write() }
    }

    /// Whether the process died during the work when it was last done.
    var isSuspect: Bool { deaths.isSuspect }

    /// Why the work has to wait; `nil` if it need not. The error says for how long.
    var obstacle: RemoteError? { deaths.wait(EventLoop.now, after: work.mostDeaths).map(work.obstacle) }

    /// Does the work, and records that it is under way.
    /// - Throws: the work's error, or why it has to wait.
    func run<Result>(_ body: () throws -> Result) throws -> Result {
        if let obstacle { throw obstacle }
        begin()
        defer { end() }
        return try body()
    }

    /// Records that the work begins.
    func begin() {
        deaths.begin(EventLoop.now)
        write()
    }

    /// Records that the work has ended, which clears what it was for.
    func end() {
        deaths = Deaths(boot: deaths.boot)
        unlink(path)
    }

    private static func read(_ path: String) -> String { Files.text(of: path, atMost: 255) ?? "" }

    /// If the file can't be written, the work continues without it.
    private func write() {
        do throws(SystemError) { try Files.overwrite(path, with: deaths.text) } catch {}
    }
}

extension DeathRecord.Work {
    fileprivate func obstacle(_ seconds: Int) -> RemoteError {
        let minutes = (seconds + 59) / 60
        return switch self {
        case .cycle:
            RemoteError(
                .unavailable,
                "The service ended unexpectedly during the last sync cycles of this account. The next one begins in "
                    + "\(minutes) min, or at once with \"ubiquitousctl account sync\".", retryAfter: seconds)
        case .opening:
            RemoteError(
                .device,
                "The service ended unexpectedly when it last opened this user's data. It tries again in \(minutes) min.",
                retryAfter: seconds)
        case .entering:
            RemoteError(
                .device,
                "The service ended unexpectedly when it last entered the account. It can be entered in \(minutes) min.",
                retryAfter: seconds)
        }
    }
}
