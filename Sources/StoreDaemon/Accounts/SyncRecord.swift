// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Glibc
internal import SDBus

/// Keeps an account's ``SyncDeaths`` in a file in the user's directory, written before a sync cycle and removed after
/// it. The file need not survive a power cut.
@BusActor
final class SyncRecord {
    private var deaths: SyncDeaths
    private let path: String
    /// The number of cycles under way: a call may join a cycle and return before it ends.
    private var running = 0
    /// Until when a suspected account has its turn, among the suspected ones of all users.
    private static var takenUntil: UInt64 = 0
    /// The longest turn, in microseconds, so that a silent remote doesn't block the others for longer.
    private static let longestTurn: UInt64 = 5_000_000

    init(in directory: String) {
        path = directory + "/sync-cycle"
        deaths = SyncDeaths(
            Self.read(path), boot: Self.read("/proc/sys/kernel/random/boot_id").filter { !$0.isWhitespace })
        if deaths.isSuspect { write() }
    }

    /// How many seconds the account has to wait; `nil` if none.
    var wait: Int? { deaths.wait(EventLoop.now) }

    /// How long to wait for another account's turn; `nil` if there is none.
    var turn: Duration? {
        guard deaths.isSuspect, running == 0, EventLoop.now < Self.takenUntil else { return nil }
        return .microseconds(Int64(Self.takenUntil - EventLoop.now))
    }

    /// Records that a cycle begins.
    func begin() {
        running += 1
        guard running == 1 else { return }
        if deaths.isSuspect { Self.takenUntil = EventLoop.now + Self.longestTurn }
        deaths.begin(EventLoop.now)
        write()
    }

    /// Records that a cycle has ended, which clears the account.
    func end() {
        guard running > 0 else { return }
        running -= 1
        guard running == 0 else { return }
        if deaths.isSuspect { Self.takenUntil = 0 }
        deaths = SyncDeaths(boot: deaths.boot)
        unlink(path)
    }

    /// Records that the service ends normally.
    func stop() { while running > 0 { end() } }

    // MARK: The file

    private static func read(_ path: String) -> String { Files.text(of: path, atMost: 255) ?? "" }

    /// If the file can't be written, sync continues without it.
    private func write() {
        do throws(SystemError) { try Files.overwrite(path, with: deaths.text) } catch {}
    }
}
